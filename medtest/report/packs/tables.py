"""Comparison of the tables and report made from a packed run with those made when it was packed."""

from __future__ import annotations

import csv
from itertools import zip_longest
from pathlib import Path

from medtest.core.files import file_sha256
from medtest.report.packs.contents import RunFacts
from medtest.report.packs.findings import PackFinding, Sameness, listed
from medtest.report.pages.comparison import REPORT

LAST_DIGITS = 1e-9
"""Relative difference below which numbers count as equal."""


def compare_tables(facts: RunFacts, hashes: dict[str, str], *, packed: Path, here: Path) -> list[PackFinding]:
    """Return the findings on tables and reports.

    Args:
        facts: Facts of the packed run.
        hashes: Hashes of the files made here, by name.
        packed: The run's folder in the pack.
        here: Folder of the tables made here.
    """
    names = [name for name in facts.made if not name.endswith(REPORT)]
    lines, worst = [], Sameness.SAME
    same = [name for name in names if hashes.get(name) == facts.made[name]]
    rounded = [
        name for name in names if name not in same and _equal_up_to_rounding(packed / name, here / name, facts, name)
    ]
    other = [name for name in names if name in hashes and name not in (*same, *rounded)]
    missing, more = [name for name in names if name not in hashes], [name for name in hashes if name not in facts.made]
    if rounded:
        lines.append(f"different in the last digits only: {listed(rounded, 30)}")
        worst = Sameness.OTHER
    if more:
        lines.append(f"made only here: {listed(more, 30)}")
        worst = Sameness.OTHER
    if missing:
        lines.append(f"not made here: {listed(missing, 30)}")
        worst = Sameness.MATTERS
    if other:
        lines.append(f"different: {listed(other, 30)}")
        worst = Sameness.MATTERS
    if facts.lacking:
        lines.append(f"different in the packed run, which had more pictures or gates: {listed(facts.lacking, 30)}")
    words = f"{len(same):,} of {len(names):,} are identical when made from the records again"
    return [PackFinding(topic="tables", state=worst, words=words, lines=tuple(lines)), _report(facts, hashes, worst)]


def _report(facts: RunFacts, hashes: dict[str, str], tables: Sameness) -> PackFinding:
    names = [name for name in facts.made if name.endswith(REPORT)]
    other = [name for name in names if hashes.get(name) != facts.made[name]]
    if not other:
        return PackFinding(topic="report", state=Sameness.SAME, words="identical when made again")
    if tables is Sameness.MATTERS:
        return PackFinding(topic="report", state=Sameness.MATTERS, words="different page, from different tables")
    words = "different page from equal tables: its text or the encoding of its pictures differs"
    return PackFinding(topic="report", state=Sameness.OTHER, words=words)


def _equal_up_to_rounding(packed: Path, own: Path, facts: RunFacts, name: str) -> bool:
    """Return True if two tables differ only in the last digits of numbers; False if the packed one was replaced."""
    if not name.endswith(".csv"):
        return False
    try:
        if file_sha256(packed) != facts.made[name]:
            return False  # remade since it was unpacked
        with (
            packed.open(encoding="utf-8", newline="") as packed_file,
            own.open(encoding="utf-8", newline="") as own_file,
        ):
            return all(
                _equal_rows(packed_row, own_row)
                for packed_row, own_row in zip_longest(csv.reader(packed_file), csv.reader(own_file))
            )
    except (OSError, ValueError, csv.Error):
        return False


def _equal_rows(packed_row: list[str] | None, own_row: list[str] | None) -> bool:
    if packed_row is None or own_row is None or len(packed_row) != len(own_row):
        return False
    return all(
        packed_cell == own_cell or _equal_cells(packed_cell, own_cell)
        for packed_cell, own_cell in zip(packed_row, own_row, strict=True)
    )


def _equal_cells(packed_cell: str, own_cell: str) -> bool:
    try:
        packed_number, own_number = float(packed_cell), float(own_cell)
    except ValueError:
        return False
    return abs(packed_number - own_number) <= LAST_DIGITS * max(abs(packed_number), abs(own_number), LAST_DIGITS)
