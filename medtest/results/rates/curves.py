"""Mean scores over severities (``tables/severity.csv``) and rates by metadata columns (``tables/strata.csv``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import UNCHANGED
from medtest.core.oracles.criteria import compared_columns
from medtest.results.columns import columns_in
from medtest.results.cube.axes import Axes, axes, with_all
from medtest.results.cube.intervals import percentile_interval
from medtest.results.cube.rates import decimals, table
from medtest.results.rates import efr
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = NDArray[np.float64]

SEVERITY_COLUMNS = columns_in(__file__, "severity")
STRATA_COLUMNS = columns_in(__file__, "strata")


def severity_table(
    records: Records, scores: Sequence[str], against: Sequence[str], place: Axes | None = None
) -> pd.DataFrame:
    """Return the mean of each score at each severity, with a bootstrap interval over clusters.

    Only cases count whose source was scored too, so that ``source_mean`` is the mean of the same seeds.

    Args:
        records: Records of one system.
        scores: Score columns.
        against: ``truth`` (the score itself) and ``source`` (``self_<score>``, where the source's mean is 1, or
            what :data:`medtest.core.oracles.criteria.ORIGINALS` names).
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
    """
    import pandas as pd

    if records.followups.empty:
        return pd.DataFrame(columns=list(SEVERITY_COLUMNS))
    found = axes(records) if place is None else place
    scale = records.floats("scale")
    measured: list[tuple[dict[str, str], _Sums]] = []
    for reference in against:
        for score in scores:
            name, origin = compared_columns(score, reference)
            after = records.floats(name)
            before = np.ones_like(after) if origin is None else records.floats(origin)
            known = ~np.isnan(after) & ~np.isnan(before)
            if known.any():
                made = _Sums.of(found.take(known), after[known], before[known], scale[known])
                measured.append(({"score": score, "against": reference}, made))
    drawn = found.drawn_of_each([made.clusters for _, made in measured])
    rows = [_means(found, made, own).assign(**head) for (head, made), own in zip(measured, drawn, strict=True)]
    empty = pd.DataFrame(columns=list(SEVERITY_COLUMNS))
    return pd.concat(rows, ignore_index=True)[list(SEVERITY_COLUMNS)] if rows else empty


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sums:
    """Sums of the cases of one score.

    Attributes:
        clusters: For each data set clusters × 2 × cells: the cases and their scores.
        scale: Of the scales, (data sets + all) × cells.
        before: Of the sources' scores, likewise.
    """

    clusters: list[Floats]
    scale: Floats
    before: Floats

    @classmethod
    def of(cls, place: Axes, after: Floats, before: Floats, scale: Floats) -> _Sums:
        sums = place.sums(np.ones(len(after)), after)
        return cls(clusters=sums, scale=place.totals(scale), before=place.totals(before))


def _means(place: Axes, sums: _Sums, drawn: Sequence[Floats]) -> pd.DataFrame:
    """Return a row for each cell of each data set, and of all together."""
    total = with_all(np.stack([one.sum(0) for one in sums.clusters]), 0)
    number, means = total[:, 0], total[:, 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        ends = [percentile_interval(one[:, 1] / one[:, 0]) for one in (*drawn, sum(drawn[1:], drawn[0]))]
        shown = {
            name: decimals(value / number)
            for name, value in (("scale", sums.scale), ("mean", means), ("source_mean", sums.before))
        }
    several = np.array([*place.clusters, sum(place.clusters)])[:, None, None] > 1
    low, high = (np.where(several, decimals(np.stack([end[side] for end in ends])), np.nan) for side in (0, 1))
    datasets, relations, _ = place.names()
    names = (datasets, relations, {"severity": place.severities})
    made = table(names, {**shown, "cases": number.astype(np.int64), "ci_low": low, "ci_high": high}, number > 0)
    return made.astype({"severity": np.int64})


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
            chosen = Records(
                followups=records.followups.loc[column == value].reset_index(drop=True), sources=records.sources
            )
            if chosen.followups.empty:
                continue
            made = efr.efr_table(chosen, wanted, axes(chosen, relation_order))
            kept = made.loc[((made["severity"] == efr.ALL) & (made["relation"] != UNCHANGED)).to_numpy()]
            parts.append(kept.assign(stratum=stratum, value=value or "(empty)"))
    if not parts:
        return pd.DataFrame(columns=list(STRATA_COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(STRATA_COLUMNS)]
