"""Does the run hold the suite's gates?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtest.oracles.criteria import criterion_name
from medtest.results import efr, statistics
from medtest.suite.model import Gate

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
        reason: Why it was not held, or "".
    """

    gate: Gate
    held: bool
    percent: float | None
    cases: int
    reason: str = ""

    def __str__(self) -> str:
        name = describe(self.gate)
        if self.held:
            return f"held: {name} ({self.percent:.2f} %, {self.cases} cases)"
        return f"not held: {name} ({self.reason})"


def describe(gate: Gate) -> str:
    """Return a gate as one line of text."""
    bound = "upper end of the interval" if gate.bound == "ci_high" else "rate"
    where = f"{gate.relation}, severity {gate.severity}, data set {gate.dataset}"
    criterion = criterion_name(gate.score, gate.threshold)
    return f"{criterion} against {gate.against}, {where}: {bound} at most {gate.max_percent:g} %"


def evaluate(gates: Iterable[Gate], table: pd.DataFrame) -> tuple[GateResult, ...]:
    """Judge every gate.

    Args:
        gates: The suite's gates.
        table: What :func:`medtest.results.efr.efr_table` gave, covering their scores and thresholds.
    """
    return tuple(_one(gate, table) for gate in gates)


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
        return GateResult(gate=gate, held=False, percent=None, cases=0, reason="no case speaks to it")
    row = rows.iloc[0]
    cases, percent = int(row["cases"]), float(row[gate.bound])
    if percent <= gate.max_percent:
        return GateResult(gate=gate, held=True, percent=percent, cases=cases)
    reason = f"{percent:.2f} % is above {gate.max_percent:g} %, {cases} cases"
    if gate.bound == "ci_high" and float(row["efr_percent"]) <= gate.max_percent:
        reason = (
            f"too few cases for its bound: the rate is {float(row['efr_percent']):.2f} %, "
            f"but with {cases} cases its interval reaches {percent:.2f} %"
        )
        if row["efr_percent"] > 0 and statistics.smallest_upper_bound(cases) > gate.max_percent:
            reason += f"; even without a violation it would reach {statistics.smallest_upper_bound(cases):.2f} %"
    return GateResult(gate=gate, held=False, percent=percent, cases=cases, reason=reason)


def gates_table(results: Iterable[GateResult]) -> pd.DataFrame:
    """Return gates and what became of them as a table."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                **{name: getattr(result.gate, name) for name in _GATE_FIELDS},
                "held": result.held,
                "percent": result.percent,
                "cases": result.cases,
                "reason": result.reason,
            }
            for result in results
        ]
    )
