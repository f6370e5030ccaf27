"""Rows of MLflow's runs page: one for each system and one for the invocation above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from medtest.core.cases import UNCHANGED
from medtest.report.charts.heat import NOT_MEASURED, percent
from medtest.report.pages import sections
from medtest.report.pages.gates import gates
from medtest.report.pages.material import Material
from medtest.report.tracking.runs_page import GATE, HEADLINE, WEAKEST
from medtest.results.gating.conditions import FAILED, PASSED

_GATES = (FAILED, PASSED, "none")
"""Worst first."""
FLOOR = "floor"
_EFR = "EFR: error-finding rate, the percentage of judged cases that are violations."


@dataclass(frozen=True, kw_only=True)
class Headline:
    """One row of MLflow's runs page.

    Attributes:
        name: Name of the run.
        simulated: Whether the system simulates a product.
        metrics: Available values among ``efr``, ``efr_low``, ``efr_high``, ``floor`` (percent) and ``source_score``; no
            rate of fewer judged cases than the task's headlines need.
        tags: ``weakest_relation`` and ``gate``; ``floor`` if it is not measured.
    """

    name: str
    simulated: bool = False
    metrics: dict[str, float] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


def headline_of(material: Material, name: str) -> Headline:
    """Return a system's row: the primary criterion over all its cases."""
    row, floor = material.row(), material.row(UNCHANGED)
    least = max(1, material.wanted.task.report.least_judged)
    values: dict[str, float] = {}
    if row is not None and int(row["cases"]) >= least:
        ends = (row["efr_percent"], row["ci_low"], row["ci_high"])
        values |= {key: float(value) for key, value in zip(HEADLINE, ends, strict=False)}
    if floor is not None and int(floor["cases"]) >= least:
        values[FLOOR] = float(floor["efr_percent"])
    seeds, score = material.tables.seeds, sections.curve_score(material)
    if not seeds.empty and score in seeds.columns and seeds[score].notna().any():
        values["source_score"] = float(seeds[score].mean())
    judged = gates(material)["gates_judged"]
    gate = "none" if judged is None else PASSED if judged else FAILED
    worst = sections.weakest(material)
    weakest = "none" if worst is None else f"{worst[0]}, {percent(worst[1]['efr_percent'])}"
    unmeasured = {FLOOR: NOT_MEASURED} if floor is not None and not int(floor["cases"]) else {}
    return Headline(
        name=name,
        simulated=material.simulated,
        metrics={key: value for key, value in values.items() if value == value},
        tags={WEAKEST: weakest, GATE: gate, **unmeasured},
    )


def summary(rows: Sequence[Headline], description: str = "") -> Headline:
    """Return the row above several systems, with the metrics and tags of the one with the highest rate.

    Simulated systems count only if there are no others. ``tags`` hold a table of all systems, which MLflow shows on the
    run's page.

    Args:
        rows: Rows of the systems, at least one.
        description: Text above the table.
    """
    real = [row for row in rows if not row.simulated] or list(rows)
    worst = max(real, key=lambda row: row.metrics.get("efr", -1.0))
    tags = {**worst.tags, GATE: min((row.tags[GATE] for row in rows), key=_GATES.index)}
    if len(rows) > 1:
        tags[WEAKEST] = f"{worst.name}: {worst.tags[WEAKEST]}"
    tables = [_table([row for row in rows if row.simulated == simulated]) for simulated in (False, True)]
    tags["mlflow.note.content"] = "\n\n".join(text for text in (description, *tables, _EFR) if text)
    return Headline(name=worst.name, simulated=worst.simulated, metrics=worst.metrics, tags=tags)


def _table(rows: Sequence[Headline]) -> str:
    """Return rows as a Markdown table; names and relations are ids, which need no escapes."""
    if not rows:
        return ""
    head = ["system", "EFR %", "95 % interval", "floor %", "source score", "weakest relation", "gate"]
    lines = [head, ["---"] * len(head)]
    for row in sorted(rows, key=lambda headline: -headline.metrics.get("efr", -1.0)):
        shown = {
            name: f"{value:.3f}" if name == "source_score" else f"{value:.1f}" for name, value in row.metrics.items()
        }
        ends = f"{shown['efr_low']} to {shown['efr_high']}" if {"efr_low", "efr_high"} <= set(shown) else ""
        cells = [
            row.name,
            shown.get("efr", ""),
            ends,
            shown.get(FLOOR, row.tags.get(FLOOR, "")),
            shown.get("source_score", ""),
        ]
        lines.append([*cells, row.tags[WEAKEST], row.tags[GATE]])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
