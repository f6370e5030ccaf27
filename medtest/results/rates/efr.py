"""Error-finding rates (MedTest report, equation 3) from records: ``tables/efr.csv``.

Every executed follow-up of a row is counted exactly once: ``generated = cases + errors + skipped + source_failed``.

- ``errors``: the system or the relation failed.
- ``source_failed``: the follow-up was answered, but the source case is an ERROR or its score is zero, so that equation
    6 would divide by zero.
- ``skipped``: everything else without a verdict (no room for the object, no prediction, no expected answer).

Pools: ``overall`` over all cases of all relations but ``unchanged``; ``overall_cells`` the mean of the cells'
percentages, where a cell is one relation on one data set (at one severity, or at all); pooled data sets are ``all``.
Intervals: see :mod:`medtest.results.cube`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.core.oracles import criteria
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, OVERALL, OVERALL_CELLS, Axes, axes
from medtest.results.cube.rates import BOOTSTRAP, CASES, CELLS, WILSON, WILSON_CLUSTERS, Rates, margins, rates, table
from medtest.results.records.records_io import Records
from medtest.results.records.status import status
from medtest.suite.model import Against, Criterion, Gate

COLUMNS = columns_in(__file__, "efr")
__all__ = [
    "ALL",
    "BOOTSTRAP",
    "COLUMNS",
    "OVERALL",
    "OVERALL_CELLS",
    "WILSON",
    "WILSON_CLUSTERS",
    "Criteria",
    "available",
    "efr_table",
    "of_criterion",
]


@dataclass(frozen=True, kw_only=True)
class Criteria:
    """Criteria of an EFR table: every score at every threshold against every reference.

    A rule without a threshold is covered once, at 0; its threshold is empty in the table.
    """

    scores: tuple[str, ...]
    thresholds: tuple[float, ...]
    against: tuple[Against, ...]

    def __iter__(self) -> Iterator[Criterion]:
        for against in self.against:
            for score in self.scores:
                for threshold in (0.0,) if score in criteria.NO_THRESHOLD else self.thresholds:
                    yield Criterion(score=score, threshold=threshold, against=against)


def available(records: Records, selected: Criteria) -> Iterator[Criterion]:
    """Yield the criteria whose columns contain any number."""
    has_values: dict[str, bool] = {}
    for criterion in selected:
        needed = criteria.columns_needed(criterion.score, criterion.against)
        for name in needed:
            if name not in has_values:
                has_values[name] = bool((~np.isnan(records.floats(name))).any())
        if all(has_values[name] for name in needed):
            yield criterion


def of_criterion(table: pd.DataFrame, criterion: Criterion | Gate) -> NDArray[np.bool_]:
    """Return a mask of a table's rows under a criterion; rules without a threshold have an empty one."""
    limits = table["threshold"].to_numpy(dtype=np.float64)
    rule = criterion.score in criteria.NO_THRESHOLD
    at_limit = np.isnan(limits) if rule else np.isclose(limits, criterion.threshold, rtol=0, atol=1e-12)
    same = (table["score"] == criterion.score) & (table["against"] == criterion.against)
    return np.asarray(same.to_numpy(dtype=bool) & at_limit, dtype=np.bool_)


def efr_table(records: Records, selected: Criteria, place: Axes | None = None) -> pd.DataFrame:
    """Return the table of error-finding rates, with exactly :data:`COLUMNS`.

    Args:
        records: Records of one system.
        selected: Scores, thresholds and references.
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
    """
    if records.followups.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    cells = axes(records) if place is None else place
    cache: dict[bytes, Rates] = {}
    parts = [_one_criterion(records, cells, cache, criterion) for criterion in available(records, selected)]
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)] if parts else pd.DataFrame(columns=list(COLUMNS))


def _one_criterion(records: Records, place: Axes, cache: dict[bytes, Rates], criterion: Criterion) -> pd.DataFrame:
    state = status(records, criterion)
    # Two scores often yield the same violations as one of them; equal violations share their intervals.
    key = hashlib.sha256(state.case.tobytes() + state.violated.tobytes()).digest()
    if key not in cache:
        cache[key] = rates(
            place, state.violated, state.case, pools=(CASES, CELLS), pooled=place.pooled, independent=True
        )
    efr = cache[key]
    lost = {
        name: margins(place.totals(where), place.pooled, pools=2).astype(np.int64)
        for name, where in (("errors", state.error), ("skipped", state.skipped), ("source_failed", state.source_failed))
    }
    cases, violations = efr.whole.astype(np.int64), efr.part.astype(np.int64)
    generated = cases + sum(lost.values())
    columns = {
        "score": criterion.score,
        "threshold": np.nan if criterion.score in criteria.NO_THRESHOLD else criterion.threshold,
        "against": criterion.against,
        "cases": cases,
        "violations": violations,
        "efr_percent": np.round(100 * efr.rate, 4),
        "ci_low": np.round(100 * efr.low, 4),
        "ci_high": np.round(100 * efr.high, 4),
        "ci_method": np.where(cases > 0, efr.method, ""),
        "generated": generated,
        "efr_generated_percent": np.round(100 * violations / np.maximum(generated, 1), 4),
        **lost,
    }
    frame = table(place.names(OVERALL, OVERALL_CELLS), columns, generated > 0)
    unmeasured = (frame["relation"] == UNCHANGED) & (frame["cases"] == 0)  # a floor without a case is no rate of 0
    frame.loc[unmeasured, "efr_generated_percent"] = np.nan
    return frame
