"""Traceability of a run: hazard → requirement → relation → gate → result → cases, and when gates were set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from medtest.core.cases import UNCHANGED
from medtest.evidence.reading import RunEvidence
from medtest.report.charts.heat import interval, percent
from medtest.report.pages.words import criterion_keys
from medtest.results.gating.gates import GateResult, describe
from medtest.results.rates import efr

SHOWN_CASES = 3
NOTHING = "not stated"


def trace_rows(run: RunEvidence) -> list[dict[str, Any]]:
    """Return the rows of the matrix, those of one hazard together.

    A relation with ties is in the row of every gate on it; a gate on all relations, or on one without ties, has a
    separate row.
    """
    rows = list(_rows(run))
    return sorted(rows, key=lambda row: (row["hazard"] == NOTHING, row["hazard"], row["requirement"]))


def _rows(run: RunEvidence) -> Iterator[dict[str, Any]]:
    results = run.material.tables.gates
    tied = [name for name in run.material.wanted.relations if run.ties(name)]
    for name in tied:
        own = [result for result in results if result.gate.relation == name]
        yield from (_row(run, name, result) for result in own)
        if not own:
            yield _row(run, name, None)
    for result in results:
        if result.gate.relation not in tied:
            yield _row(run, result.gate.relation, result)


def _row(run: RunEvidence, relation: str, result: GateResult | None) -> dict[str, Any]:
    ties, gate = run.ties(relation), None if result is None else result.gate

    def stated(name: str) -> str:
        texts = [ties.get(name), None if gate is None else getattr(gate, name)]
        return "; ".join(dict.fromkeys(text for text in texts if text)) or NOTHING

    rates, keys = run.material.rates, criterion_keys(run.material)
    if gate is not None:
        keys = {"score": gate.score, "threshold": gate.threshold, "against": gate.against}
        keys |= {"dataset": gate.dataset, "severity": str(gate.severity)}
    row = rates.get(relation=relation, **keys)
    judged = row is not None and int(row["cases"]) > 0
    return {
        "run": run.name,
        "hazard": stated("hazard"),
        "requirement": stated("requirement"),
        "relation": "all relations" if relation == efr.OVERALL else relation.replace("_", " "),
        "gate": "no gate" if gate is None else describe(gate),
        "limit": "" if gate is None else f"at most {gate.max_percent:g} %",
        "verdict": "not judged by a gate" if result is None else result.verdict,
        "held": result is not None and result.held,
        "result": f"{percent(row['efr_percent'])} ({interval(row)} %)" if row is not None and judged else "none judged",
        "counts": f"{int(row['violations']):,} of {int(row['cases']):,} cases" if row is not None else "",
        "cases": _cases(run, relation),
    }


def _cases(run: RunEvidence, relation: str) -> Sequence[str]:
    """Return the addresses of the worst violations of a relation under the primary criterion."""
    violations = run.material.tables.violations
    if violations.empty:
        return []
    if relation not in (efr.OVERALL, efr.OVERALL_CELLS):
        violations = violations.loc[(violations["relation"] == relation).to_numpy(dtype=bool)]
    worst = violations.sort_values("loss_percent", ascending=False) if "loss_percent" in violations else violations
    return [str(address) for address in worst["address"].head(SHOWN_CASES)]


def untied(run: RunEvidence) -> list[str]:
    """Return the relations and gates that state no requirement."""
    relations = [name for name in run.material.wanted.relations if name != UNCHANGED]
    gated = {gate.relation for gate in run.material.wanted.gates if gate.requirement}
    names = [f"relation {name}" for name in relations if "requirement" not in run.ties(name) and name not in gated]
    gates = enumerate(run.material.wanted.gates, start=1)
    return [*names, *(f"gate {number}" for number, gate in gates if not gate.requirement)]


def set_words(run: RunEvidence) -> str:
    """Return one sentence on the time at which the gates were set."""
    first = next((str(entry.get("time", "")) for entry in run.evaluations), "")
    judged = f" The gates were first judged at {first}." if first else ""
    if not run.frozen:
        return f"The plan was not frozen, so nothing shows that the gates were set before the first case.{judged}"
    late = int(run.frozen.get("cases_before") or 0)
    words = f"The plan was frozen at {run.frozen['frozen_at']} with the SHA-256 {run.frozen['hash']}"
    if late:
        words += f", after {late:,} cases were finished"
    elif not run.frozen.get("differs"):  # otherwise nothing is known of cases that were finished before
        words += ", before the first case of this run"
    return f"{words}. {run.caution or 'The gates are those of the plan.'}{judged}"
