"""Mean scores over severities (``tables/severity.csv``) and rates by metadata columns (``tables/strata.csv``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from medtest.cases import UNCHANGED
from medtest.results import efr, statistics
from medtest.results.records_io import Records
from medtest.suite.model import Criterion

if TYPE_CHECKING:
    import pandas as pd

SEVERITY_COLUMNS: tuple[str, ...] = (
    "dataset",
    "relation",
    "group",
    "severity",
    "scale",
    "score",
    "against",
    "cases",
    "mean",
    "ci_low",
    "ci_high",
    "source_mean",
)
STRATA_COLUMNS: tuple[str, ...] = (
    "stratum",
    "value",
    "dataset",
    "relation",
    "score",
    "threshold",
    "against",
    "cases",
    "violations",
    "efr_percent",
    "ci_low",
    "ci_high",
    "ci_method",
)


def severity_table(
    records: Records, scores: Sequence[str], against: Sequence[str], relation_order: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the mean of each score at each severity, with a bootstrap interval over clusters.

    Only cases count whose source was scored too, so that ``source_mean`` is the mean of the same seeds.

    Args:
        records: Records of one system.
        scores: Score columns.
        against: ``truth`` (the score itself) and ``source`` (``self_<score>``, where the source's mean is 1).
        relation_order: Ids in the suite's order.
    """
    import pandas as pd

    rows: list[dict[str, object]] = []
    if records.followups.empty:
        return pd.DataFrame(columns=list(SEVERITY_COLUMNS))
    place = efr.axes(records, relation_order)
    scale = records.floats("scale")
    offsets = np.concatenate([[0], np.cumsum(place.clusters)])[:-1]
    cluster = place.cluster + offsets[place.dataset]
    for reference in against:
        for score in scores:
            after = records.floats(score if reference == "truth" else f"self_{score}")
            before = records.floats(f"source_{score}") if reference == "truth" else np.ones_like(after)
            known = ~np.isnan(after) & ~np.isnan(before)
            if not known.any():
                continue
            for number, dataset in [*enumerate(place.datasets), (-1, efr.ALL)]:
                inside = known if number < 0 else known & (place.dataset == number)
                rows += _cells(place, inside, (after, before, scale), cluster, (dataset, score, reference))
    return pd.DataFrame(rows, columns=list(SEVERITY_COLUMNS))


def _cells(
    place: efr.Axes,
    inside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    values: tuple[np.ndarray[tuple[int, ...], np.dtype[np.float64]], ...],
    cluster: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    names: tuple[str, str, str],
) -> list[dict[str, object]]:
    after, before, scale = values
    dataset, score, reference = names
    rows: list[dict[str, object]] = []
    order = np.argsort(place.cell[inside], kind="stable")
    members = np.flatnonzero(inside)[order]
    cells, starts = np.unique(place.cell[members], return_index=True)
    for cell, chosen in zip(cells, np.split(members, starts[1:]), strict=True):
        relation, severity = divmod(int(cell), len(place.severities))
        codes, _ = statistics.group_numbers(cluster[chosen])
        mean, low, high = statistics.cluster_means(after[chosen, None], codes, dataset, replicates=1000)
        rows.append(
            {
                "dataset": dataset,
                "relation": place.relations[relation],
                "group": place.groups[relation],
                "severity": place.severities[severity],
                "scale": round(float(np.nanmean(scale[chosen])), 6),
                "score": score,
                "against": reference,
                "cases": len(chosen),
                "mean": round(float(mean[0]), 6),
                "ci_low": round(float(low[0]), 6),
                "ci_high": round(float(high[0]), 6),
                "source_mean": round(float(before[chosen].mean()), 6),
            }
        )
    return rows


def strata_table(records: Records, primary: Criterion, relation_order: Sequence[str] = ()) -> pd.DataFrame:
    """Return rates under one criterion for every value of every metadata column, data sets pooled.

    Args:
        records: Records of one system, with ``stratum_`` columns.
        primary: The criterion.
        relation_order: Ids in the suite's order.
    """
    import pandas as pd

    wanted = efr.Criteria(scores=(primary.score,), thresholds=(primary.threshold,), against=(primary.against,))
    parts: list[pd.DataFrame] = []
    for stratum in records.strata:
        column = records.texts(f"stratum_{stratum}")
        for value in sorted({str(text) for text in column}):
            chosen = Records(followups=records.followups.loc[column == value], sources=records.sources)
            table = efr.efr_table(chosen, wanted, relation_order)
            if table.empty:
                continue
            kept = table.loc[((table["severity"] == efr.ALL) & (table["relation"] != UNCHANGED)).to_numpy()]
            parts.append(kept.assign(stratum=stratum, value=value or "(empty)"))
    if not parts:
        return pd.DataFrame(columns=list(STRATA_COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(STRATA_COLUMNS)]
