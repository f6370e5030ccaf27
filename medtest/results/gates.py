"""Does the run hold the suite's gates?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from medtest.oracles.criteria import criterion_name
from medtest.results import efr
from medtest.results.cube.intervals import smallest_upper_bound
from medtest.results.differences import paired_difference
from medtest.results.records.common_cases import common_cases
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion, Gate, PairedGate

if TYPE_CHECKING:
    import pandas as pd

_GATE_FIELDS = ("score", "threshold", "against", "dataset", "relation", "severity", "bound", "max_percent")


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """What became of one gate.

    Attributes:
        gate: The gate.
        held: Whether it held; a gate that too few cases speak to is not held.
        percent: The figure that was compared, or None where there is none.
        cases: Cases behind it.
        reason: The figure beside its bound, in words.
        unlike: Whether the run that it names shares no judged case: a mistake of the call.
    """

    gate: Gate
    held: bool
    percent: float | None
    cases: int
    reason: str
    unlike: bool = False

    @property
    def sentence(self) -> str:
        """What became of the gate: which gate, which figure, which bound, as one full sentence."""
        return f"{describe(self.gate)}: {self.reason}"

    def __str__(self) -> str:
        return f"{'held' if self.held else 'not held'}: {self.sentence}"


def describe(gate: Gate) -> str:
    """Return which gate it is, in words: ``dice>0.25 against truth, all relations, all severities, all data sets``."""
    relation = {"overall": "all relations", "overall_cells": "mean of the cells"}.get(gate.relation, gate.relation)
    severity = "all severities" if gate.severity == "all" else f"severity {gate.severity}"
    dataset = "all data sets" if gate.dataset == "all" else gate.dataset
    criterion = criterion_name(gate.score, gate.threshold)
    if isinstance(gate, PairedGate):
        what = f"no worse than {gate.no_worse_than} by {gate.margin_percent:g} points or more"
        return f"{what}: EFR by {criterion} against {gate.against}, {relation}, {severity}, {dataset}"
    return f"EFR by {criterion} against {gate.against}, {relation}, {severity}, {dataset}"


def evaluate(gates: Iterable[Gate], table: pd.DataFrame) -> tuple[GateResult, ...]:
    """Judge every gate.

    Args:
        gates: The suite's gates.
        table: What :func:`medtest.results.efr.efr_table` gave, covering their scores and thresholds.
    """
    return tuple(_one(gate, table) for gate in gates if not isinstance(gate, PairedGate))


def evaluate_paired(gate: PairedGate, base: Records, own: Records, called: str) -> GateResult:
    """Judge a gate that names a finished run, on the cases that both have.

    Args:
        gate: The gate.
        base: Records of the finished run.
        own: Records of this one.
        called: What the finished run is called.
    """
    gate = replace(gate, no_worse_than=called)  # what is typed may be a path of this machine
    first, second = common_cases([own, base]).records
    criterion = Criterion(score=gate.score, threshold=gate.threshold, against=gate.against)
    found = None
    if not first.followups.empty:
        found = paired_difference(
            first, second, criterion, dataset=gate.dataset, relation=gate.relation, severity=gate.severity
        )
    if found is None:
        reason = f"no case of {called} is shared that both were judged on, so nothing can be said"
        return no_answer(gate, f"{reason}: run both under the same seeds, relations and preparation")
    cases, high = int(str(found["cases"])), float(str(found["ci_high"]))
    margin, rates = gate.margin_percent, f"{found['first_percent']:.1f} % against {found['second_percent']:.1f} %"
    on = f"on {cases:,} shared cases, {rates}, {found['difference']:+.1f} points"
    on += f", {found['only_first']:,} fail anew, {found['only_second']:,} no longer"
    if math.isnan(high):
        reason = f"{on}; they are of one cluster, too few for an interval, so it is not held"
        return GateResult(gate=gate, held=False, percent=None, cases=cases, reason=reason)
    held = high < margin
    said = f"the upper end of the 95 % interval of the difference, {_beside(high, margin)} points, is "
    said += f"{'below' if held else 'not below'} {margin:g}; {on}"
    if not held and float(str(found["difference"])) < margin:
        said += ", too few cases to tell"
    return GateResult(gate=gate, held=held, percent=high, cases=cases, reason=said)


def no_answer(gate: PairedGate, reason: str) -> GateResult:
    """Return what becomes of a gate whose finished run says nothing about this one: a mistake of the call."""
    return GateResult(gate=gate, held=False, percent=None, cases=0, reason=reason, unlike=True)


def _one(gate: Gate, table: pd.DataFrame) -> GateResult:
    rows = table.loc[
        (
            (table["against"] == gate.against)
            & (table["dataset"] == gate.dataset)
            & (table["relation"] == gate.relation)
            & (table["severity"] == str(gate.severity))
            & efr.of_criterion(table, gate.score, gate.threshold)
        ).to_numpy()
    ]
    if rows.empty or int(rows["cases"].iloc[0]) == 0:
        return GateResult(
            gate=gate, held=False, percent=None, cases=0, reason="no case speaks to it, so it is not held"
        )
    row = rows.iloc[0]
    cases, percent, rate = int(row["cases"]), float(row[gate.bound]), float(row["efr_percent"])
    held = percent <= gate.max_percent
    compared = f"is {'not ' if held else ''}above {gate.max_percent:g} %"
    counted = f"{int(row['violations']):,} of {cases:,} cases"
    if gate.bound == "efr_percent":
        reason = f"the rate, {_beside(percent, gate.max_percent)} % ({counted}), {compared}"
        return GateResult(gate=gate, held=held, percent=percent, cases=cases, reason=reason)
    reason = f"the upper end of the 95 % interval, {_beside(percent, gate.max_percent)} %, {compared}"
    reason += f"; the rate itself is {_beside(rate, gate.max_percent)} % ({counted})"
    if not held and rate <= gate.max_percent:
        reason += ", too few cases for this bound"
        least = smallest_upper_bound(cases)
        if rate > 0 and least > gate.max_percent:
            reason += f": even without a violation the interval would reach {_beside(least, gate.max_percent)} %"
    return GateResult(gate=gate, held=held, percent=percent, cases=cases, reason=reason)


def _beside(percent: float, limit: float) -> str:
    """Return a percentage with as many decimals as it takes to tell it from a limit that it differs from."""
    for decimals in range(1, 7):
        text = f"{percent:.{decimals}f}"
        if percent == limit or float(text) != limit:
            return text
    return f"{percent:g}"


def gates_table(results: Iterable[GateResult]) -> pd.DataFrame:
    """Return gates and what became of them as a table."""
    import pandas as pd

    given = tuple(results)
    return pd.DataFrame(
        [
            {
                **{name: getattr(result.gate, name) for name in _GATE_FIELDS},
                **(_paired_fields(result.gate) if any(isinstance(one.gate, PairedGate) for one in given) else {}),
                "held": result.held,
                "percent": result.percent,
                "cases": result.cases,
                "reason": result.reason,
            }
            for result in given
        ]
    )


def _paired_fields(gate: Gate) -> dict[str, object]:
    if not isinstance(gate, PairedGate):
        return {"no_worse_than": "", "margin_percent": None}
    return {
        "max_percent": None,
        "bound": "ci_high",
        "no_worse_than": gate.no_worse_than,
        "margin_percent": gate.margin_percent,
    }
