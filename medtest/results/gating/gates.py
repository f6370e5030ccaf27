"""Evaluation of a suite's gates on a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medtest.core.deferred import pd
from medtest.core.oracles.criteria import criterion_name
from medtest.results.cube.intervals import smallest_upper_bound
from medtest.results.gating.conditions import (
    FAILED,
    FAILED_SOURCES,
    NOT_SHOWN,
    PASSED,
    VIOLATIONS,
    Condition,
    Margins,
    Verdict,
    paired_conditions,
    verdict_of,
    what_helps,
)
from medtest.results.rates import efr
from medtest.results.records.common_cases import common_cases
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion, Gate, PairedGate

_GATE_FIELDS = ("score", "threshold", "against", "dataset", "relation", "severity", "bound", "max_percent")
_FACTS = tuple(name for name in Condition.__dataclass_fields__ if name not in ("name", "words"))


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """Result of one gate.

    Attributes:
        gate: The gate.
        held: True if the gate passed; a gate with too few cases does not pass.
        percent: Rate of violations that was compared, or None.
        cases: Number of cases.
        reason: The figures and their bounds as text.
        conditions: Results of its conditions; empty if the finished run cannot be compared.
        unlike: True if the named run shares no judged case, which is a usage error.
    """

    gate: Gate
    held: bool
    percent: float | None
    cases: int
    reason: str
    conditions: tuple[Condition, ...] = ()
    unlike: bool = False

    @property
    def verdict(self) -> Verdict:
        """``passed``, ``failed``, or ``not shown`` if there are too few cases; a gate not shown does not pass."""
        return PASSED if self.held else verdict_of(self.conditions)

    @property
    def sentence(self) -> str:
        """The gate, its figures and its bounds as one sentence."""
        return f"{describe(self.gate)}: {self.reason}"

    def __str__(self) -> str:
        return f"{self.verdict}: {self.sentence}"


def describe(gate: Gate) -> str:
    """Return a description of a gate: ``dice>0.25 against truth, all relations, all severities, all data sets``."""
    relation = {"overall": "all relations", "overall_cells": "mean of the cells"}.get(gate.relation, gate.relation)
    severity = "all severities" if gate.severity == "all" else f"severity {gate.severity}"
    dataset = "all data sets" if gate.dataset == "all" else gate.dataset
    criterion = criterion_name(gate.score, gate.threshold)
    if isinstance(gate, PairedGate):
        condition = f"no worse than {gate.no_worse_than} by {gate.margin_percent:g} points or more"
        return f"{condition}: EFR by {criterion} against {gate.against}, {relation}, {severity}, {dataset}"
    return f"EFR by {criterion} against {gate.against}, {relation}, {severity}, {dataset}"


def evaluate(gates: Iterable[Gate], table: pd.DataFrame) -> tuple[GateResult, ...]:
    """Evaluate gates that are not paired.

    Args:
        gates: Gates of the suite.
        table: Table from :func:`medtest.results.rates.efr.efr_table` that covers their scores and thresholds.
    """
    return tuple(_one(gate, table) for gate in gates if not isinstance(gate, PairedGate))


def evaluate_paired(gate: PairedGate, base: Records, own: Records, called: str) -> GateResult:
    """Evaluate a gate that names a finished run, on the common cases.

    Args:
        gate: The gate.
        base: Records of the finished run.
        own: Records of this run.
        called: Display name of the finished run.
    """
    gate = replace(gate, no_worse_than=called)  # the configured value may be a local path
    first, second = common_cases([own, base]).records
    criterion = Criterion(score=gate.score, threshold=gate.threshold, against=gate.against)
    margins = Margins(percent=gate.margin_percent, source_percent=gate.source_margin_percent)
    selection = {"dataset": gate.dataset, "relation": gate.relation, "severity": gate.severity}
    conditions = paired_conditions(first, second, criterion, margins, **selection)
    if not conditions:
        reason = f"neither run has a judged case in common with {called}"
        return no_answer(gate, f"{reason}: use the same seeds, relations and preparation")
    violations = next(condition for condition in conditions if condition.name == VIOLATIONS)
    return GateResult(
        gate=gate,
        held=verdict_of(conditions) == PASSED,
        percent=violations.figure,
        cases=violations.cases,
        reason=in_words(conditions),
        conditions=conditions,
    )


def in_words(conditions: Sequence[Condition]) -> str:
    """Return the results of conditions as text, worst first; if one is not met, passed ones are only named."""
    kinds = {
        verdict: [condition for condition in conditions if condition.verdict == verdict]
        for verdict in (FAILED, NOT_SHOWN, PASSED)
    }
    lost = bool(kinds[FAILED] or kinds[NOT_SHOWN])
    parts = [
        f"{verdict}: "
        + "; ".join(condition.name if lost and verdict == PASSED else condition.sentence for condition in members)
        for verdict, members in kinds.items()
        if members
    ]
    parts += [helps] if (helps := what_helps(conditions)) else []
    return ". ".join(part[0].upper() + part[1:] if number else part for number, part in enumerate(parts))


def no_answer(gate: PairedGate, reason: str) -> GateResult:
    """Return the result of a gate whose finished run cannot be compared: a usage error."""
    return GateResult(gate=gate, held=False, percent=None, cases=0, reason=reason, unlike=True)


def _one(gate: Gate, table: pd.DataFrame) -> GateResult:
    rows = table.loc[
        (
            (table["dataset"] == gate.dataset)
            & (table["relation"] == gate.relation)
            & (table["severity"] == str(gate.severity))
            & efr.of_criterion(table, gate)
        ).to_numpy()
    ]
    row: dict[str, Any] = {} if rows.empty else {str(name): value for name, value in rows.iloc[0].items()}
    violations, sources = _violations(gate, row), _source_failed(gate, row) if row else None
    conditions = (violations,) if sources is None else (violations, sources)
    words = [
        condition.words
        for condition in (sources, violations)
        if condition is not None and (condition is violations or condition.verdict == FAILED)
    ]
    return GateResult(
        gate=gate,
        held=all(condition.verdict == PASSED for condition in conditions),
        percent=violations.figure,
        cases=violations.cases,
        reason="; ".join(words),
        conditions=conditions,
    )


def _violations(gate: Gate, row: Mapping[str, Any]) -> Condition:
    """Return the condition on the rate of violations, of a row of rates that is empty if there is none."""
    cases = int(row.get("cases", 0))
    if not cases:
        reason = "no judged case matches this gate, so it cannot pass"
        return Condition(name=VIOLATIONS, verdict=NOT_SHOWN, words=reason, limit=gate.max_percent, cases=0)
    percent, rate = float(row[gate.bound]), float(row["efr_percent"])
    passes = percent <= gate.max_percent
    comparison = f"is {'not ' if passes else ''}above {gate.max_percent:g} %"
    counts = f"{int(row['violations']):,} of {cases:,} cases"
    if gate.bound == "efr_percent":
        reason = f"the rate, {_beside(percent, gate.max_percent)} % ({counts}), {comparison}"
    else:
        reason = f"the upper end of the 95 % interval, {_beside(percent, gate.max_percent)} %, {comparison}"
        reason += f"; the rate itself is {_beside(rate, gate.max_percent)} % ({counts})"
    inconclusive = not passes and rate <= gate.max_percent
    if inconclusive:
        reason += ", too few cases for this bound"
        least = smallest_upper_bound(cases)
        if rate > 0 and least > gate.max_percent:
            reason += f": even without violations the interval would reach {_beside(least, gate.max_percent)} %"
    return Condition(
        name=VIOLATIONS,
        verdict=PASSED if passes else NOT_SHOWN if inconclusive else FAILED,
        words=reason,
        figure=percent,
        limit=gate.max_percent,
        cases=cases,
        own=rate,
        low=float(row["ci_low"]),
        high=float(row["ci_high"]),
        method=str(row["ci_method"]),
        newly=int(row["violations"]),
    )


def _source_bound(gate: Gate) -> float | None:
    """Return the bound on failed sources; None against the source's own answer, which is never right or wrong."""
    return None if gate.against == "source" else gate.max_source_failed_percent


def _source_failed(gate: Gate, row: Mapping[str, Any]) -> Condition | None:
    """Return the condition on cases that lost their verdict because their source failed, or None if it is not set.

    The share is relative to the cases that could have been judged: errors, and cases skipped for other reasons, are
    excluded.
    """
    limit = _source_bound(gate)
    if limit is None:
        return None
    lost = int(row["source_failed"])
    cases = int(row["cases"]) + lost
    if not cases:
        return Condition(
            name=FAILED_SOURCES, verdict=NOT_SHOWN, words="no case matches this gate", limit=limit, cases=0
        )
    share = 100 * lost / cases
    passes = share <= limit
    share_text = _beside(share, limit) if share < 100 else "100"
    comparison = f"{'not ' if passes else ''}above {limit:g} %"
    words = f"{lost:,} of {cases:,} cases ({share_text} %) have no source to compare with, {comparison}"
    return Condition(
        name=FAILED_SOURCES,
        verdict=PASSED if passes else FAILED,
        words=words,
        figure=share,
        limit=limit,
        cases=cases,
        own=share,
        newly=lost,
    )


def _beside(percent: float, limit: float) -> str:
    """Return a percentage with enough decimals to distinguish it from a different limit."""
    for decimals in range(1, 7):
        text = f"{percent:.{decimals}f}"
        if percent == limit or float(text) != limit:
            return text
    return f"{percent:g}"


def gates_table(results: Iterable[GateResult]) -> pd.DataFrame:
    """Return gates and their results as a table."""
    evaluated = tuple(results)
    paired = any(isinstance(result.gate, PairedGate) for result in evaluated)
    return pd.DataFrame(
        [
            {
                **{name: getattr(result.gate, name) for name in _GATE_FIELDS},
                "max_source_failed_percent": _source_bound(result.gate),
                **(_paired_fields(result.gate) if paired else {}),
                "held": result.held,
                "verdict": result.verdict,
                "percent": result.percent,
                "cases": result.cases,
                "reason": result.reason,
            }
            for result in evaluated
        ]
    )


def conditions_table(results: Iterable[GateResult]) -> pd.DataFrame:
    """Return the conditions of gates, one row each; ``gate`` counts from 1 in the order of :func:`gates_table`."""
    return pd.DataFrame(
        [
            {
                "gate": number,
                "condition": condition.name,
                **{name: getattr(condition, name) for name in _FACTS},
                "words": condition.words,
            }
            for number, result in enumerate(results, start=1)
            for condition in result.conditions
        ]
    )


def _paired_fields(gate: Gate) -> dict[str, object]:
    if not isinstance(gate, PairedGate):
        return {"no_worse_than": "", "margin_percent": None, "source_margin_percent": None}
    source = gate.margin_percent if gate.source_margin_percent is None else gate.source_margin_percent
    return {
        "max_percent": None,
        "bound": "ci_high",
        "no_worse_than": gate.no_worse_than,
        "margin_percent": gate.margin_percent,
        "source_margin_percent": source,
    }
