"""Which relations harm most at like similarity: ``tables/efr_at_ssim.csv``.

Severities of unlike relations are of unlike measures; how like a follow-up is to its source (mean structural
similarity, Z. Wang et al., 2004) is one that all share. Cases fall into bands of SSIM; within a band relations are
ranked by the error finding rate under the primary criterion, and the difference of each to the first has an interval
(ends joined as G. Y. Zou and A. Donner, 2008: the cases of two relations in a band are not the same).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.core.cases import UNCHANGED
from medtest.results.attacks.settings import NATURAL, Setting
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, Axes, Places
from medtest.results.cube.intervals import joined
from medtest.results.cube.rates import rates
from medtest.results.records.records_io import Records
from medtest.results.records.status import status
from medtest.suite.model import Criterion

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = columns_in(__file__, "efr_at_ssim")
BANDS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
"""Ends of the bands; the last one holds 1, and the first what is below 0."""


def ssim_table(records: Records, place: Axes, settings: Sequence[Setting], primary: Criterion) -> pd.DataFrame:
    """Return the table, with :data:`COLUMNS`; one row for each relation in each band that holds cases of it.

    Args:
        records: Records of one system.
        place: Their axes.
        settings: What :func:`medtest.results.attacks.settings.settings_of` gave.
        primary: The suite's primary criterion.
    """
    import pandas as pd

    role = {setting.relation: setting.role for setting in settings if setting.relation != UNCHANGED}
    if len(role) < 2 or not {one for one in role.values() if one != NATURAL}:
        return pd.DataFrame(columns=list(COLUMNS))
    ssim = records.floats("ssim")
    found = status(records, score=primary.score, threshold=primary.threshold, against=primary.against)
    rows = np.flatnonzero(~np.isnan(ssim) & found.case & place.pooled[place.relation])
    band = np.clip(np.searchsorted(BANDS, ssim[rows], side="right") - 1, 0, len(BANDS) - 2)
    inside = place.take(rows)
    places = Places(
        shape=(len(place.relations), len(BANDS) - 1),
        dataset=inside.dataset,
        cell=inside.relation * (len(BANDS) - 1) + band,
        cluster=inside.cluster,
        resamplers=inside.resamplers,
    )
    made = rates(places, found.violated[rows], np.ones(len(rows)), independent=True)
    means = places.totals(ssim[rows])
    out: list[dict[str, Any]] = []
    for dataset, name in enumerate((*place.datasets, ALL)):
        for number in range(len(BANDS) - 1):
            cells = [
                (relation, (dataset, at, number))
                for at, relation in enumerate(place.relations)
                if made.whole[dataset, at, number] > 0
            ]
            cells.sort(key=lambda pair: -float(made.rate[pair[1]]))
            for rank, (relation, at) in enumerate(cells, 1):
                first = cells[0][1]
                low, high = joined(
                    float(made.rate[at]),
                    (float(made.low[at]), float(made.high[at])),
                    float(made.rate[first]),
                    (float(made.low[first]), float(made.high[first])),
                )
                alone = rank == 1
                out.append(
                    {
                        "dataset": name,
                        "ssim_from": BANDS[number],
                        "ssim_to": BANDS[number + 1],
                        "rank": rank if len(cells) > 1 else None,
                        "relation": relation,
                        "group": place.groups[at[1]],
                        "role": role.get(relation, ""),
                        "score": primary.score,
                        "threshold": primary.threshold,
                        "against": primary.against,
                        "cases": int(made.whole[at]),
                        "clusters": int(made.clusters[at]),
                        "violations": int(made.part[at]),
                        "efr_percent": round(100 * float(made.rate[at]), 4),
                        "ci_low": round(100 * float(made.low[at]), 4),
                        "ci_high": round(100 * float(made.high[at]), 4),
                        "ci_method": made.method[at],
                        "ssim": round(float(means[at] / made.whole[at]), 6),
                        "difference": None if alone else round(100 * float(made.rate[at] - made.rate[first]), 4),
                        "difference_low": None if alone else round(100 * low, 4),
                        "difference_high": None if alone else round(100 * high, 4),
                    }
                )
    table = pd.DataFrame(out, columns=list(COLUMNS))
    return table.astype({"rank": "Int64", **dict.fromkeys(COLUMNS[-3:], "float64")})
