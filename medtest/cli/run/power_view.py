"""``plan=true``: table of the differences between two runs that the planned cases can show."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from medtest.report.compared.planned import KEY, Detectable, detectable, expected_differences, gate_lines
from medtest.suite.model import PairedGate
from medtest.suite.reading.outline import Outline
from medtest.suite.schema import PowerBlock

MARGIN = 2.0
"""Margin in points, if neither ``power.margin_percent`` nor a gate sets one."""


def power_view(plan: Outline, power: PowerBlock, home: Path) -> RenderableType | None:
    """Return the detectable differences between two runs of a plan; None if nothing is planned.

    Args:
        plan: The plan.
        power: Finished runs and margin; by default those of gates that name a run.
        home: Folder that holds ``outputs/``.

    Raises:
        UserMistakes: A named run does not exist, or two of them share no case.
    """
    like = [power.like] if isinstance(power.like, str) else list(power.like or ())
    gated = [gate for gate in plan.suite.gates if isinstance(gate, PairedGate)]
    key = KEY if like or not gated else "gates.no_worse_than"
    like = like or [gate.no_worse_than for gate in gated[:1]]
    # No number of seeds shows a margin of 0, so the default replaces it.
    margin = power.margin_percent or (gated[0].margin_percent if gated else MARGIN) or MARGIN
    expected, origin = expected_differences(like, home, plan.suite.oracle.primary, key=key)
    rows = detectable(plan, expected, margin)
    if not rows:
        return None
    seeds = sum(plan.datasets.values())
    head = f"Differences between two runs that these {seeds:,} seeds can show, in percentage points"
    return Group(
        f"[bold]{head}[/bold]",
        _table(rows, margin),
        "Smallest: difference shown with 80 % power (two-sided test at 5 %).",
        "Margin: for two equal runs, the upper end of the 95 % interval is below it with 80 % power.",
        escape(origin),
        *(escape(line) for line in gate_lines(plan, expected)),
    )


def _table(rows: list[Detectable], margin: float) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("relation", no_wrap=True)
    for name in ("cases", "smallest", "per cell", f"seeds for a margin of {margin:g}"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cell = "" if row is rows[0] and len(rows) > 1 else _points(row.cell)
        table.add_row(escape(row.name), f"{row.cases:,}", _points(row.smallest), cell, f"{row.seeds:,}")
    return table


def _points(value: float) -> str:
    return "none" if value != value else f"{value:.1f}"
