"""Gates of the report: their current results, and earlier evaluations of the same folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.report.pages.material import Material
from medtest.results.gating import gate_log
from medtest.results.gating.conditions import PASSED
from medtest.results.gating.gates import describe
from medtest.suite.model import PairedGate

_MOST_SENTENCES = 3


def gates(material: Material) -> dict[str, Any]:
    """Return a system's gates for the report's template.

    If the call set none, the banner shows the last evaluation of the same view, so that a failed report does not lose
    its gates. ``gates_judged`` is True if they passed; None if none was ever judged.
    """
    results = material.tables.gates
    evaluations = gate_log.last_of_each(gate_log.read(material.folder))
    shown = [entry for entry in evaluations if not material.view or entry.get("view") == material.view]
    earlier = [entry for entry in shown if entry.get("view") != material.view or not gate_log.is_set(entry, results)]
    last = next((entry for entry in earlier if entry.get("view") == material.view), None)
    lost = [result for result in results if not result.held]
    sentences = [result.sentence for result in lost or results]
    return {
        "gates": [
            {
                "words": describe(result.gate),
                "held": result.held,
                "verdict": result.verdict,
                "conditions": result.conditions if isinstance(result.gate, PairedGate) else (),
                "percent": ""
                if result.percent is None
                else f"{result.percent:.2f} {'points' if isinstance(result.gate, PairedGate) else '%'}",
                "cases": f"{result.cases:,}",
                "reason": result.reason,
            }
            for result in results
        ],
        "gates_held": not lost,
        "gates_line": _line(sentences),
        "gates_before": [_evaluation(entry) for entry in earlier],
        "gates_last": None if results or last is None else _evaluation(last),
        "gates_judged": not lost if results else None if last is None else last["result"] == PASSED,
    }


def _line(sentences: list[str]) -> str:
    more = len(sentences) - _MOST_SENTENCES
    text = " ".join(f"{sentence}." for sentence in sentences[:_MOST_SENTENCES])
    return f"{text} {more} more below." if more > 0 else text


def _evaluation(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an earlier evaluation as text; fields missing in other versions are left out."""
    became = [gate for gate in entry["gates"] if not gate.get("held")] or list(entry["gates"])
    shown, view = str(entry.get("shown") or ""), str(entry.get("view") or "")
    return {
        "held": entry["result"] == PASSED,
        "time": str(entry.get("time", "")),
        "version": str(entry.get("suite_version", "")),
        "of": ", ".join(part for part in (shown or "all cases", f"view {view[:12]}" if view else "") if part),
        "line": _line([str(gate.get("said", "")) for gate in became]),
        "command": str(entry.get("command", "")),
    }
