"""State of reading a file of quality over scales: mistakes, notes, lines, and the resulting curves.

:mod:`medtest.results.series.series_file` reads the published format into these lines,
:mod:`medtest.results.series.series_csv` CSV.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from medtest.core.errors import Mistake, UserMistakes
from medtest.results.series.series import SeriesSet, make_series

MAX_SIZE = 1e100
"""Largest absolute value; larger numbers overflow when squared."""

NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
FORM = "a number with a decimal point, such as 0.9131"


@dataclass(kw_only=True)
class SeriesReading:
    """A file being read.

    Attributes:
        where: Name of the file, for messages.
        notes: Adjustments made while reading.
        commas: True if a comma may be the decimal point, because none separates cells.
    """

    where: str
    commas: bool = False
    notes: list[str] = field(default_factory=list)

    def wrong(self, line: int | None, column: int | None, found: str, allowed: str, fix: str = "") -> UserMistakes:
        """Return the error for one mistake; lines and columns count from 1."""
        key = "" if column is None else f"column {column}"
        return Mistake(where=self.where, line=line, key=key, found=found, allowed=allowed, fix=fix).as_error()

    def note(self, text: str) -> None:
        """Add a note unless it exists."""
        if text not in self.notes:
            self.notes.append(text)

    def number(self, text: str, line: int, column: int) -> float:
        """Return a cell's number."""
        if not text:
            raise self.wrong(line, column, "nothing", FORM, "every algorithm needs a quality at every scale")
        if self.commas and "," in text and NUMBER.fullmatch(text.replace(",", ".")):
            self.note("decimal commas were read as points")
            text = text.replace(",", ".")
        if NUMBER.fullmatch(text) is None:
            comma = text.count(",") == 1 and NUMBER.fullmatch(text.replace(",", ".")) is not None
            fix = "use a decimal point, not a comma" if comma else ""
            raise self.wrong(line, column, repr(text[:40]), FORM, fix)
        value = float(text)
        if abs(value) > MAX_SIZE:
            raise self.wrong(line, column, repr(text[:40]), f"a number from {-MAX_SIZE:g} to {MAX_SIZE:g}")
        return value


@dataclass(frozen=True, slots=True)
class Line:
    """Line of a table: its number in the file and its cells, one for each column."""

    line: int
    cells: tuple[str, ...]


def check_width(reading: SeriesReading, number: int, cells: Sequence[str], width: int) -> None:
    """Check that a line has a cell for each scale.

    Raises:
        UserMistakes: The line has more or fewer.
    """
    if len(cells) != width:
        problem = f"{len(cells) - 1} qualities for {width - 1} scales"
        raise reading.wrong(number, min(len(cells), width) + 1, problem, f"{width - 1} qualities, one for each scale")


def assemble(
    reading: SeriesReading, *, title: str, quality: str, head: Line, scales: Sequence[float], rows: Sequence[Line]
) -> SeriesSet:
    """Return the curves of a table with one line per algorithm, with sorted columns and equal scales merged.

    Raises:
        UserMistakes: A name is missing or repeated, a cell is not a number, or there are fewer than two scales.
    """
    if len(set(scales)) < 2:
        problem = "one scale" if scales else "no scale"
        raise reading.wrong(head.line, 2, problem, "at least two different scales: α is a loss between neighbours")
    if list(scales) != sorted(scales):
        reading.note("the scales were not ascending; their columns were sorted")
    if len(set(scales)) != len(scales):
        reading.note("equal scales were merged to their mean")
    names: dict[str, int] = {}
    series = []
    for row in rows:
        name = row.cells[0]
        if not name:
            raise reading.wrong(row.line, 1, "no name", "the algorithm's name before its qualities")
        if name in names:
            raise reading.wrong(
                row.line, 1, f"{name!r} for the second time", f"a name different from that in line {names[name]}"
            )
        names[name] = row.line
        values = [reading.number(cell, row.line, column) for column, cell in enumerate(row.cells[1:], start=2)]
        series.append(make_series(name, scales, values, labels=head.cells[1:]))
    return SeriesSet(title=title, quality=quality, scale=head.cells[0], series=tuple(series))
