"""Rates of controls: ``tables/reliance.csv``.

A control removes the evidence for an answer (:mod:`medtest.core.oracles.controls`). For each control the table says how
often the answer was kept, how often it would be kept by chance, and the *reliance*: the rate kept under its sham less
the rate kept under the control, over the cases judged under both. Beside it stands the consistency under the suite's
other relations, of which controls are no part. Rates and differences have the intervals of :mod:`medtest.results.cube`;
a difference that is not resampled joins the intervals of its two rates.

Chance is the rate at which the expected answers of a case and of the one shown in its place agree: a system that sees
agrees that often. Where no answer is expected, it is the rate of the system's own answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import CONTROLS, UNCHANGED, Verdict
from medtest.core.deferred import pd
from medtest.core.oracles import criteria
from medtest.core.oracles.controls import LIMIT, SHAM, roles_of, sham_of
from medtest.core.records import CHANCE, KEPT, REMOVED
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, OVERALL, Axes, Floats, Places, axes
from medtest.results.cube.intervals import joined, percentile_ends
from medtest.results.cube.rates import BOOTSTRAP, rates
from medtest.results.records.records_io import Records
from medtest.results.records.status import status
from medtest.results.records.wanted import Wanted

Bools: TypeAlias = NDArray[np.bool_]
Cases: TypeAlias = "tuple[NDArray[Any], Floats]"
"""Rows of some cases, and a value for each."""

COLUMNS = columns_in(__file__, "reliance")
CONSISTENT, RELIANT = 80.0, 50.0
"""Percent from which a system counts as consistent, and as relying on the evidence: the sides of the quadrants."""
EXCESS = 20.0
"""Percent above chance of answers kept without the input, from which reports warn."""
QUADRANTS = {
    (True, True): "consistent, relies on the evidence",
    (True, False): "consistent without the evidence",
    (False, True): "inconsistent, relies on the evidence",
    (False, False): "inconsistent without the evidence",
}
UNSURE = "not shown"
"""Quadrant if an interval crosses the border of two."""
WITHOUT = ("grey", "mean", "noise", "prompt")
"""What controls remove that leave nothing of the input."""
OTHERS = ("other image", "other prompt")
"""What controls exchange for another case's."""
INPUTS = (*WITHOUT, *OTHERS)
OWN, EXPECTED = "own answers", "expected answers"


@dataclass(frozen=True, kw_only=True, eq=False)
class Rate:
    """A rate, or a difference of two, in percent by data set and for all; NaN without a case."""

    value: Floats
    low: Floats
    high: Floats
    method: NDArray[np.object_]


def reliance_table(records: Records, wanted: Wanted) -> pd.DataFrame:
    """Return the table, with exactly :data:`COLUMNS`; empty without controls.

    Args:
        records: Records of one system, with its controls.
        wanted: Display settings of the suite.
    """
    columns = set(records.followups.columns)
    if not {KEPT, REMOVED, "group"} <= columns or not (records.followups["group"].astype(str) == CONTROLS).any():
        return pd.DataFrame(columns=list(COLUMNS))
    cases = _Cases(records, wanted)
    rows = [row for cell in cases.cells() for row in cases.rows(*cell)]
    rows += cases.rows(OVERALL, "all", ALL, cases.evidence)
    return pd.DataFrame(rows, columns=list(COLUMNS))


class _Cases:
    """Follow-ups of one system, with and without controls.

    Attributes:
        evidence: Judged controls that show no other case.
    """

    def __init__(self, records: Records, wanted: Wanted) -> None:
        self.records, self.wanted = records, wanted
        self.place: Axes = axes(records, list(wanted.relations))
        self.roles = roles_of(wanted.relations)
        self.relation = records.texts("relation")
        self.removed = records.texts(REMOVED)
        self.severity = records.followups["severity"].to_numpy(dtype=np.int64)
        verdicts = records.texts("verdict")
        self.errors = verdicts == Verdict.ERROR.value
        self.control = records.texts("group") == CONTROLS
        share = records.floats(KEPT)
        self.judged: Bools = self.control & np.isin(verdicts, (Verdict.PASS.value, Verdict.FAIL.value))
        self.kept: Floats = np.where(np.nan_to_num(share) >= LIMIT, 1.0, 0.0)
        self.other = np.isin(self.removed, OTHERS)
        self._consistent()
        shams = [name for name, role in self.roles.items() if role == SHAM]
        self.evidence: Bools = self.judged & ~np.isin(self.relation, shams) & ~self.other
        self.chance, self.chance_from = self._chance()
        self.consistency = self._rate(*_chosen(self.harmless, self.agrees))

    def _consistent(self) -> None:
        """Judge the harmless relations against the system's own answers, where the suite's criterion can be."""
        criterion = self.wanted.primary
        needed = criteria.columns_needed(criterion.score, "source")
        if all((~np.isnan(self.records.floats(name))).any() for name in needed):
            criterion = replace(criterion, against="source")
        state = status(self.records, criterion)
        self.agrees: Floats = (~state.violated).astype(np.float64)
        self.answered: Bools = state.case & ~self.control
        self.harmless: Bools = self.answered & (self.relation != UNCHANGED)

    def cells(self) -> list[tuple[str, str, str, Bools]]:
        """Return each control and severity: name, what was removed, severity, and its cases."""
        cells = []
        for name in [name for name in self.place.relations if (self.control & (self.relation == name)).any()]:
            for level in sorted(set(self.severity[self.relation == name].tolist())):
                chosen = (self.relation == name) & (self.severity == level)
                said = next((text for text in self.removed[chosen] if text), "")
                cells.append((name, said, str(level), chosen))
        return cells

    def rows(self, name: str, removed: str, severity: str, chosen: Bools) -> list[dict[str, Any]]:
        """Return the rows of a control, by data set and for all."""
        judged = chosen & self.judged
        kept = self._rate(*_chosen(judged, self.kept))
        sham, reliance, sham_kept = "", None, None
        if self.roles.get(name) != SHAM:
            sham, under, over = self._pairs(judged)
            sham_kept = self._rate(*under)
            reliance = self._less(sham_kept, self._rate(*over), under, over)
        excess = None
        if self.chance is not None and reliance is not None and not self.other[judged].any():
            excess = self._less(kept, self.chance, _chosen(judged, self.kept), self.by_chance)
        names = (*self.place.datasets, ALL)
        rows: list[dict[str, Any]] = []
        for number, dataset in enumerate(names):
            inside = np.ones(len(chosen), bool) if dataset == ALL else self.place.dataset == number
            here = judged & inside
            if not (chosen & inside).any():
                continue
            row: dict[str, Any] = dict.fromkeys(COLUMNS, np.nan)
            row |= {
                "system": str(self.records.followups["system"].iloc[0]),
                "dataset": dataset,
                "task": self.wanted.kind,
                "control": name,
                "removed": removed,
                "severity": severity,
                "cases": int(here.sum()),
                "clusters": _clusters(self.place, here),
                "kept": int(self.kept[here].sum()),
                "ci_method": kept.method[number] if here.any() else "",
                "chance_from": self.chance_from if excess is not None else "",
                "sham": sham,
                "errors": int((chosen & inside & self.errors).sum()),
                "skipped": int((chosen & inside & ~self.judged & ~self.errors).sum()),
                "quadrant": "",
            }
            row |= _columns("kept", kept, number) | _columns("consistency", self.consistency, number)
            if excess is not None and self.chance is not None:
                row |= _columns("chance", self.chance, number) | _columns("excess", excess, number)
            if reliance is not None and sham_kept is not None:
                row |= _columns("reliance", reliance, number)
                row["sham_kept_percent"] = _rounded(sham_kept.value[number])
                row["quadrant"] = quadrant(row)
            rows.append(row)
        return rows

    def _pairs(self, judged: Bools) -> tuple[str, Cases, Cases]:
        """Return the shams of some controls, and the cases judged under sham and control: their rows and who keeps.

        A control without a sham, or whose sham judged nothing, is paired with answers that are all kept.
        """
        shams: list[str] = []
        under: list[Cases] = []
        over: list[Cases] = []
        for name in dict.fromkeys(self.relation[judged].tolist()):
            control = judged & (self.relation == name)
            sham = sham_of(self.wanted.relations, name)
            beside = (self.relation == sham) & (self.judged if self.roles.get(sham) == SHAM else self.answered)
            if beside.any():
                both = np.intersect1d(self.place.seed[control], self.place.seed[beside])
                control, beside = (rows & np.isin(self.place.seed, both) for rows in (control, beside))
                shams.append(sham)
                under.append(_chosen(beside, np.where(self.control, self.kept, self.agrees)))
            else:
                under.append(_chosen(control, np.ones(len(control))))
            over.append(_chosen(control, self.kept))
        return ", ".join(dict.fromkeys(shams)), _together(under), _together(over)

    def _chance(self) -> tuple[Rate | None, str]:
        """Return the agreement of chance, and what it was found from; None if no other case was shown."""
        share = self.records.floats(CHANCE)
        expected = self.control & ~np.isnan(share)
        if expected.any():
            self.by_chance = _chosen(expected, (np.nan_to_num(share) >= LIMIT).astype(np.float64))
            return self._rate(*self.by_chance), EXPECTED
        shown = self.judged & self.other
        self.by_chance = _chosen(shown, self.kept)
        return (self._rate(*self.by_chance), OWN) if shown.any() else (None, "")

    def _at(self, rows: NDArray[Any]) -> Places:
        chosen = self.place.take(rows)
        return replace(chosen, shape=(1, 1), cell=np.zeros(len(chosen.dataset), np.int64))

    def _rate(self, rows: NDArray[Any], values: Floats) -> Rate:
        """Return the rate of a value over some cases, by data set and for all."""
        result = rates(self._at(rows), values, np.ones(len(values)), independent=True)
        value, low, high = (100 * side[:, 0, 0] for side in (result.rate, result.low, result.high))
        return Rate(value=value, low=low, high=high, method=result.method[:, 0, 0])

    def _less(self, one: Rate, two: Rate, first: Cases, second: Cases) -> Rate:
        """Return the difference of two rates, each of its own cases."""
        value = one.value - two.value
        low, high = np.full(len(value), np.nan), np.full(len(value), np.nan)
        drawn = [self._drawn(rows, values) for rows, values in (first, second)]
        for number in range(len(value)):
            if np.isnan(value[number]):
                continue
            if one.method[number] == BOOTSTRAP and two.method[number] == BOOTSTRAP:
                low[number], high[number] = percentile_ends(100 * (drawn[0][number] - drawn[1][number]))
                continue
            low[number], high[number] = joined(
                float(one.value[number]),
                (float(one.low[number]), float(one.high[number])),
                float(two.value[number]),
                (float(two.low[number]), float(two.high[number])),
            )
        return Rate(value=value, low=low, high=high, method=one.method)

    def _drawn(self, rows: NDArray[Any], values: Floats) -> list[Floats]:
        """Return the resampled rates of each data set, and of all."""
        place = self._at(rows)
        blocks = [block[:, :, 0, 0] for block in place.drawn(place.sums(values, np.ones(len(values))))]
        blocks.append(np.sum(blocks, axis=0))
        with np.errstate(invalid="ignore", divide="ignore"):
            return [np.where(block[:, 1] > 0, block[:, 0] / block[:, 1], np.nan) for block in blocks]


def _chosen(rows: Bools, values: Floats) -> Cases:
    at = np.flatnonzero(rows)
    return at, values[at]


def _together(parts: Sequence[Cases]) -> Cases:
    """Return several cases as one."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([values for _, values in parts])


def _clusters(place: Axes, rows: Bools) -> int:
    return len(set(zip(place.dataset[rows].tolist(), place.cluster[rows].tolist(), strict=True)))


def _columns(name: str, rate: Rate, number: int) -> dict[str, float]:
    return {
        f"{name}_percent": _rounded(rate.value[number]),
        f"{name}_low": _rounded(rate.low[number]),
        f"{name}_high": _rounded(rate.high[number]),
    }


def _rounded(value: float) -> float:
    return round(float(value), 4)


def quadrant(row: dict[str, Any]) -> str:
    """Return the quadrant of a row, :data:`UNSURE` if an interval crosses a border, "" without both figures."""
    ends = [(row[f"{name}_low"], row[f"{name}_high"]) for name in ("consistency", "reliance")]
    if any(end != end for pair in ends for end in pair):
        return ""
    sides = []
    for (low, high), border in zip(ends, (CONSISTENT, RELIANT), strict=True):
        if low < border <= high:
            return UNSURE
        sides.append(low >= border)
    return QUADRANTS[sides[0], sides[1]]


def warned(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of controls whose answers are kept without the input more often than by chance.

    Their lower bound of the rate above chance exceeds :data:`EXCESS`; only what removes the whole input counts.
    """
    whole = table["removed"].isin(WITHOUT) & (table["dataset"] == ALL)
    return table.loc[(whole & (table["excess_low"].astype(float) > EXCESS)).to_numpy(dtype=bool)]
