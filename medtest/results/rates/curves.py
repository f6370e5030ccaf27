"""Mean scores over severities (``tables/severity.csv``) and rates by metadata columns (``tables/strata.csv``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.results.cube.axes import Axes, axes, with_all
from medtest.results.cube.intervals import percentile_interval
from medtest.results.cube.rates import decimals, table
from medtest.results.rates import efr
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion

Floats: TypeAlias = NDArray[np.float64]

SEVERITY_COLUMNS = columns_in(__file__, "severity")
STRATA_COLUMNS = columns_in(__file__, "strata")


def severity_table(
    records: Records, scores: Sequence[str], against: Sequence[str], place: Axes | None = None
) -> pd.DataFrame:
    """Return the mean of each score at each severity, with a bootstrap interval over clusters.

    Only cases with a scored source count, so that ``source_mean`` is the mean of the same seeds.

    Args:
        records: Records of one system.
        scores: Score columns.
        against: ``truth`` (the score itself) and ``source`` (``self_<score>``, where the mean of the source is 1, or
            the
            column in :data:`medtest.core.oracles.criteria.ORIGINALS`).
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
    """
    if records.followups.empty:
        return pd.DataFrame(columns=list(SEVERITY_COLUMNS))
    cells = axes(records) if place is None else place
    scale = records.floats("scale")
    sums_of: list[tuple[dict[str, str], _Sums]] = []
    for reference in against:
        for score in scores:
            scores_before, scores_after = records.compared(score, reference)
            scored = ~np.isnan(scores_after) & ~np.isnan(scores_before)
            if scored.any():
                sums = _Sums.of(cells.take(scored), scores_after[scored], scores_before[scored], scale[scored])
                sums_of.append(({"score": score, "against": reference}, sums))
    drawn = cells.drawn_of_each([sums.clusters for _, sums in sums_of])
    rows = [_means(cells, sums, draws).assign(**head) for (head, sums), draws in zip(sums_of, drawn, strict=True)]
    empty = pd.DataFrame(columns=list(SEVERITY_COLUMNS))
    return pd.concat(rows, ignore_index=True)[list(SEVERITY_COLUMNS)] if rows else empty


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sums:
    """Sums over the cases of one score.

    Attributes:
        clusters: For each data set clusters × 2 × cells: the number of cases and the sum of their scores.
        scale: Sums of the scales, (data sets + all) × cells.
        before: Sums of the sources' scores, (data sets + all) × cells.
    """

    clusters: list[Floats]
    scale: Floats
    before: Floats

    @classmethod
    def of(cls, place: Axes, after: Floats, before: Floats, scale: Floats) -> _Sums:
        sums = place.sums(np.ones(len(after)), after)
        return cls(clusters=sums, scale=place.totals(scale), before=place.totals(before))


def _means(place: Axes, sums: _Sums, drawn: Sequence[Floats]) -> pd.DataFrame:
    """Return one row for each cell of each data set, and of all together."""
    total = with_all(np.stack([block.sum(0) for block in sums.clusters]), 0)
    number, means = total[:, 0], total[:, 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        together = [sum(drawn[1:], drawn[0])] if len(drawn) > 1 else []
        ends = [percentile_interval(draws[:, 1] / draws[:, 0]) for draws in (*drawn, *together)]
        ends += [] if together else ends  # all data sets are the only one
        means_by_name = {
            name: decimals(value / number)
            for name, value in (("scale", sums.scale), ("mean", means), ("source_mean", sums.before))
        }
    has_interval = np.array([*place.clusters, sum(place.clusters)])[:, None, None] > 1
    low, high = (np.where(has_interval, decimals(np.stack([end[side] for end in ends])), np.nan) for side in (0, 1))
    datasets, relations, _ = place.names()
    names = (datasets, relations, {"severity": place.severities})
    frame = table(
        names, {**means_by_name, "cases": number.astype(np.int64), "ci_low": low, "ci_high": high}, number > 0
    )
    frame["severity"] = frame["severity"].astype(np.int64)
    return frame


def strata_table(records: Records, primary: Criterion, relation_order: Sequence[str] = ()) -> pd.DataFrame:
    """Return rates under one criterion for every value of every metadata column, data sets pooled.

    Args:
        records: Records of one system, with ``stratum_`` columns.
        primary: Criterion of a violation.
        relation_order: Ids in the suite's order.
    """
    selected = efr.Criteria(scores=(primary.score,), thresholds=(primary.threshold,), against=(primary.against,))
    parts: list[pd.DataFrame] = []
    for stratum in records.strata:
        column = records.texts(f"stratum_{stratum}")
        for value in sorted({str(text) for text in column}):
            subset = Records(
                followups=records.followups.loc[column == value].reset_index(drop=True), sources=records.sources
            )
            if subset.followups.empty:
                continue
            frame = efr.efr_table(subset, selected, axes(subset, relation_order))
            pooled = frame.loc[((frame["severity"] == efr.ALL) & (frame["relation"] != UNCHANGED)).to_numpy()]
            parts.append(pooled.assign(stratum=stratum, value=value or "(empty)"))
    if not parts:
        return pd.DataFrame(columns=list(STRATA_COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(STRATA_COLUMNS)]
