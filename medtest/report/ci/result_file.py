"""``result.json``: one system's result for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from medtest.core import __version__
from medtest.report.ci.cells import Row, cell_rows, rate_rows, relation_rows, standing
from medtest.report.pages.gates import gates
from medtest.report.pages.material import Material
from medtest.results.gating.gates import GateResult, describe

FORMAT = "medtest-result/1"
_RATE = ("cases", "violations", "efr_percent", "ci_low", "ci_high", "ci_method", "errors", "skipped", "source_failed")


def result_of(material: Material) -> dict[str, Any]:
    """Return a system's result as plain data; missing numbers are null.

    Args:
        material: The system's tables.
    """
    suite, run, rows = material.wanted, material.run, rate_rows(material)
    overall = material.row()
    primary = suite.primary
    return {
        "format": FORMAT,
        "suite": suite.suite,
        "suite_version": suite.version,
        "system": material.system,
        "simulated": material.simulated,
        "digest": str(run.get("digest") or material.folder.name),
        "view": material.view or None,
        "medtest": __version__,
        "finished_at": run.get("finished_at"),
        "standing": standing(material),
        "partial": material.partial or None,
        "cases_finished": run.get("cases_finished"),
        "cases_planned": run.get("cases_planned"),
        "error_percent": material.error_percent,
        "max_error_percent": suite.max_error_percent,
        "criterion": {"score": primary.score, "threshold": primary.threshold, "against": primary.against},
        "overall": None if overall is None else _rate(overall),
        "relations": [{"relation": row["relation"], **_rate(row)} for row in relation_rows(rows)],
        "cells": [
            {"dataset": row["dataset"], "relation": row["relation"], "severity": int(row["severity"]), **_rate(row)}
            for row in cell_rows(rows)
        ],
        "gates": [_gate(result) for result in material.tables.gates],
        "gates_before": _before(material),
    }


def _rate(row: Row) -> Mapping[str, Any]:
    return {name: _plain(row[name]) for name in _RATE}


def _gate(result: GateResult) -> dict[str, Any]:
    return {
        "gate": describe(result.gate),
        "held": result.held,
        "verdict": result.verdict,
        "figure": _plain(result.percent),
        "cases": result.cases,
        "reason": result.reason,
        "conditions": [condition.facts() for condition in result.conditions],
    }


def _before(material: Material) -> dict[str, Any] | None:
    """Return the last evaluation of gates, if this one set none."""
    last = gates(material)["gates_last"]
    return None if last is None else {name: last[name] for name in ("held", "time", "line")}


def _plain(value: Any) -> Any:
    """Return a value as a JSON type; NaN becomes None."""
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() and not isinstance(value, float) else number
