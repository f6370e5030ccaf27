"""Tables and report made of a packed run here, beside those that were made where it was packed."""

from __future__ import annotations

import csv
from itertools import zip_longest
from pathlib import Path

from medtest.core.files import file_sha256
from medtest.report.packs.contents import RunFacts
from medtest.report.packs.findings import PackFinding, Sameness, listed
from medtest.report.pages.comparison import REPORT

LAST_DIGITS = 1e-9
"""Numbers that are nearer than this, relative to their size, tell the same."""


def compare_tables(facts: RunFacts, made: dict[str, str], *, packed: Path, here: Path) -> list[PackFinding]:
    """Return what to make of tables and reports.

    Args:
        facts: What the pack says of its run.
        made: What was made of it here, by name.
        packed: The run's folder in the pack.
        here: Where its tables were made.
    """
    names = [name for name in facts.made if not name.endswith(REPORT)]
    lines, worst = [], Sameness.SAME
    same = [name for name in names if made.get(name) == facts.made[name]]
    rounded = [name for name in names if name not in same and _tells_the_same(packed / name, here / name, facts, name)]
    other = [name for name in names if name in made and name not in (*same, *rounded)]
    missing, more = [name for name in names if name not in made], [name for name in made if name not in facts.made]
    if rounded:
        lines.append(f"differ in last digits alone: {listed(rounded, 30)}")
        worst = Sameness.OTHER
    if more:
        lines.append(f"made here beside them: {listed(more, 30)}")
        worst = Sameness.OTHER
    if missing:
        lines.append(f"not made here: {listed(missing, 30)}")
        worst = Sameness.MATTERS
    if other:
        lines.append(f"say something else: {listed(other, 30)}")
        worst = Sameness.MATTERS
    if facts.lacking:
        lines.append(f"others in the packed run, of pictures or gates that stayed: {listed(facts.lacking, 30)}")
    words = f"{len(same):,} of {len(names):,} have the same bits, made of the records again"
    return [PackFinding(topic="tables", state=worst, words=words, lines=tuple(lines)), _report(facts, made, worst)]


def _report(facts: RunFacts, made: dict[str, str], tables: Sameness) -> PackFinding:
    names = [name for name in facts.made if name.endswith(REPORT)]
    other = [name for name in names if made.get(name) != facts.made[name]]
    if not other:
        return PackFinding(topic="report", state=Sameness.SAME, words="the same bits, made again")
    if tables is Sameness.MATTERS:
        return PackFinding(topic="report", state=Sameness.MATTERS, words="another page, of other tables")
    words = "another page, of tables that say the same: its words, or how its pictures are packed"
    return PackFinding(topic="report", state=Sameness.OTHER, words=words)


def _tells_the_same(packed: Path, here: Path, facts: RunFacts, name: str) -> bool:
    """Whether two tables differ in the last digits of numbers alone; False where what was packed is gone."""
    if not name.endswith(".csv"):
        return False
    try:
        if file_sha256(packed) != facts.made[name]:
            return False  # made anew since it was unpacked
        with packed.open(encoding="utf-8", newline="") as one, here.open(encoding="utf-8", newline="") as other:
            return all(_alike(left, right) for left, right in zip_longest(csv.reader(one), csv.reader(other)))
    except (OSError, ValueError, csv.Error):
        return False


def _alike(left: list[str] | None, right: list[str] | None) -> bool:
    if left is None or right is None or len(left) != len(right):
        return False
    return all(one == other or _near(one, other) for one, other in zip(left, right, strict=True))


def _near(one: str, other: str) -> bool:
    try:
        left, right = float(one), float(other)
    except ValueError:
        return False
    return abs(left - right) <= LAST_DIGITS * max(abs(left), abs(right), LAST_DIGITS)
