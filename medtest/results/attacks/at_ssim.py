"""Ranking of relations by error-finding rate at equal image similarity: ``tables/efr_at_ssim.csv``.

Severities of different relations are not comparable; the mean structural similarity of a follow-up to its source (SSIM,
Z. Wang et al., 2004) is. Cases are grouped into bands of SSIM. Within a band, relations are ranked by their error
finding rate under the primary criterion, and the difference of each to the first has an interval (combined as in G. Y.
Zou and A. Donner, 2008, since two relations in a band do not share their cases).

Cases of calibrated relations are not in bands: they are ranked at each target, which is in ``target``; ``ssim`` is then
over the field. Their differences have the same intervals, which are wider than those of paired cases.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.relations.calibration.relation import CALIBRATED, target_of
from medtest.relations.calibration.settings import TOLERANCE
from medtest.results.attacks.settings import NATURAL, Setting
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, Axes
from medtest.results.cube.rates import rates
from medtest.results.records.records_io import Records
from medtest.results.records.status import status
from medtest.suite.model import Criterion

Floats: TypeAlias = NDArray[np.float64]

COLUMNS = columns_in(__file__, "efr_at_ssim")
BANDS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
"""Edges of the bands; the first band also includes values below 0."""


def ssim_table(records: Records, place: Axes, settings: Sequence[Setting], primary: Criterion) -> pd.DataFrame:
    """Return the table, with :data:`COLUMNS`; one row for each relation and band with cases.

    Args:
        records: Records of one system.
        place: Axes of the records.
        settings: Settings from :func:`medtest.results.attacks.settings.settings_of`.
        primary: The suite's primary criterion.
    """
    ssim, target = _similarities(records, settings)
    state = status(records, primary)
    role = {setting.relation: setting.role for setting in settings if setting.relation != UNCHANGED}
    if len(role) < 2 or not {name for name in role.values() if name != NATURAL}:
        ssim = np.where(np.isnan(target), np.nan, ssim)  # bands compare with attacks
    counted = ~np.isnan(ssim) & state.case & place.pooled[place.relation]
    rows = np.flatnonzero(counted)
    if not rows.size:
        return pd.DataFrame(columns=list(COLUMNS))
    targets = np.unique(target[rows][~np.isnan(target[rows])])[::-1]
    cells: list[tuple[float, float, float | None]] = [(low, high, None) for low, high in pairwise(BANDS)]
    cells += [(float(at) - TOLERANCE, float(at) + TOLERANCE, float(at)) for at in targets]
    band = np.clip(np.searchsorted(BANDS, ssim[rows], side="right") - 1, 0, len(BANDS) - 2)
    for number, at in enumerate(targets, len(BANDS) - 1):
        band[target[rows] == at] = number
    inside = place.take(rows)
    places = inside.with_cells(inside.relation * len(cells) + band, (len(place.relations), len(cells)))
    efr = rates(places, state.violated[rows], np.ones(len(rows)), independent=True)
    means = places.totals(ssim[rows])
    out: list[dict[str, Any]] = []
    for dataset, name in enumerate((*place.datasets, ALL)):
        for number, (lowest, highest, aimed) in enumerate(cells):
            ranked = [
                (relation, (dataset, at, number))
                for at, relation in enumerate(place.relations)
                if efr.whole[dataset, at, number] > 0
            ]
            ranked.sort(key=lambda pair: -float(efr.rate[pair[1]]))
            for rank, (relation, at) in enumerate(ranked, 1):
                first = ranked[0][1]
                difference, low, high = efr.difference(at, first)
                alone = rank == 1
                out.append(
                    {
                        "dataset": name,
                        "target": aimed,
                        "ssim_from": round(lowest, 6),
                        "ssim_to": round(highest, 6),
                        "rank": rank if len(ranked) > 1 else None,
                        "relation": relation,
                        "group": place.groups[at[1]],
                        "role": role.get(relation, ""),
                        "score": primary.score,
                        "threshold": primary.threshold,
                        "against": primary.against,
                        **efr.row(at),
                        "ssim": round(float(means[at] / efr.whole[at]), 6),
                        "difference": None if alone else round(100 * difference, 4),
                        "difference_low": None if alone else round(100 * low, 4),
                        "difference_high": None if alone else round(100 * high, 4),
                    }
                )
    table = pd.DataFrame(out, columns=list(COLUMNS))
    return table.astype({"rank": "Int64", **dict.fromkeys(("target", *COLUMNS[-3:]), "float64")})


def has_targets(settings: Sequence[Setting]) -> bool:
    """Return True if any of the relations is calibrated."""
    return any(target_of(setting.params) is not None for setting in settings)


def _similarities(records: Records, settings: Sequence[Setting]) -> tuple[Floats, Floats]:
    """Return similarity and target of each follow-up; NaN where it has none."""
    ssim = records.floats("ssim").copy()
    target = np.full(len(ssim), np.nan)
    if has_targets(settings):
        params = records.texts("params")
        for setting in settings:
            if target_of(setting.params) is None:
                continue
            for row in setting.rows:
                solved = json.loads(params[row] or "{}").get(CALIBRATED)
                if isinstance(solved, dict):
                    ssim[row], target[row] = solved["ssim"], solved["target"]
    return ssim, target
