"""Reads quality over scales from files: the format of the (α,σ) paper's program, and CSV.

The published format (A. Vacavant, robustimageprocessing): lines that begin with ``#`` are comments; the first other
line names the quality, the second names the uncertainty and gives its scales, every further one names an algorithm and
gives its quality at each scale; cells are separated by tabs.

CSV is wide (a head of the uncertainty's name and the scales, a line an algorithm) or long (columns ``algorithm``,
``scale``, one of qualities under its name, and, where there are several images, ``image`` and perhaps ``cluster``).

What is plain is read and said: columns out of order are sorted, equal scales become their mean, spaces in place of
tabs, decimal commas where no comma separates cells, Windows line ends, byte order marks, UTF-16 and Windows-1252.
Everything else is one mistake with its line and
column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from medtest.errors import Mistake, UserMistakes
from medtest.results.series import SeriesSet, make_series
from medtest.textfile import BOMS

MAX_BYTES = 16 * 2**20
MAX_CSV_BYTES = 512 * 2**20
"""Larger files are no tables of qualities; a CSV may have a line a measurement."""
MAX_SIZE = 1e100
"""Numbers beyond cannot be squared, and measure nothing."""
MAX_SCALES = 100_000

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_LINE = re.compile(r"\r\n|\r|\n")
FORM = "a number with a decimal point, as 0.9131"


@dataclass(kw_only=True)
class Reading:
    """A file while it is read.

    Attributes:
        where: Its name, for messages.
        notes: What was read with a grain of salt.
        commas: Whether a comma may stand for the decimal point, since none separates cells.
    """

    where: str
    commas: bool = False
    notes: list[str] = field(default_factory=list)

    def wrong(self, line: int | None, column: int | None, found: str, allowed: str, fix: str = "") -> UserMistakes:
        """Return the error of one mistake; lines and columns count from 1."""
        key = "" if column is None else f"column {column}"
        return UserMistakes([Mistake(where=self.where, line=line, key=key, found=found, allowed=allowed, fix=fix)])

    def note(self, text: str) -> None:
        """Keep a note once."""
        if text not in self.notes:
            self.notes.append(text)

    def number(self, text: str, line: int, column: int) -> float:
        """Return a cell's number."""
        if not text:
            raise self.wrong(line, column, "nothing", FORM, "every algorithm needs a quality at every scale")
        if self.commas and "," in text and _NUMBER.fullmatch(text.replace(",", ".")):
            self.note("decimal commas were read as points")
            text = text.replace(",", ".")
        if _NUMBER.fullmatch(text) is None:
            comma = text.count(",") == 1 and _NUMBER.fullmatch(text.replace(",", ".")) is not None
            fix = "write a point and no comma" if comma else ""
            raise self.wrong(line, column, repr(text[:40]), FORM, fix)
        value = float(text)
        if abs(value) > MAX_SIZE:
            raise self.wrong(line, column, repr(text[:40]), f"a number from {-MAX_SIZE:g} to {MAX_SIZE:g}")
        return value


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table: its number in the file and its cells, each with its column."""

    line: int
    cells: tuple[str, ...]


def read_series_file(path: Path, *, lower_is_better: bool = False) -> SeriesSet:
    """Read one file; the ending ``.csv`` tells CSV from the published format.

    Args:
        path: The file.
        lower_is_better: Whether its numbers are errors and no qualities.

    Raises:
        UserMistakes: It cannot be read, or is not such a table: one message with line and column.
    """
    from medtest.results.series_csv import read_csv

    reading = Reading(where=path.name)
    is_csv = path.suffix.lower() == ".csv"
    text = _text(path, reading, MAX_CSV_BYTES if is_csv else MAX_BYTES)
    if is_csv:
        found = read_csv(reading, text, title=path.stem)
    else:
        reading.commas = True
        lines = [(number, line) for number, line in enumerate(_LINE.split(text), start=1) if line.strip()]
        kept = [(number, line) for number, line in lines if not line.lstrip().startswith("#")]
        found = _read_published(reading, kept, title=path.stem)
    return SeriesSet(
        title=found.title,
        quality=found.quality,
        scale=found.scale,
        series=found.series,
        lower_is_better=lower_is_better,
        notes=tuple(reading.notes),
    )


def _text(path: Path, reading: Reading, most: int) -> str:
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no such file"
        raise reading.wrong(None, None, found, "a file of qualities: .dat, .csv or records.parquet")
    try:
        content = path.read_bytes() if path.stat().st_size <= most else b""
    except OSError as error:
        raise reading.wrong(None, None, f"it cannot be read: {error.strerror}", "a file that can be read") from error
    if path.stat().st_size > most:
        raise reading.wrong(None, None, f"more than {most >> 20} MiB", "a table of qualities")
    for mark, name in BOMS:
        if content.startswith(mark):
            return _decoded(content, name, reading)
    if b"\0" in content:
        raise reading.wrong(None, None, "bytes that are no text", "a text file")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        reading.note("the file is not UTF-8; it was read as Windows-1252")
        return content.decode("cp1252", "replace")


def _decoded(content: bytes, name: str, reading: Reading) -> str:
    try:
        return content.decode(name)
    except UnicodeDecodeError as error:
        raise reading.wrong(None, None, f"bytes that are no {name}", "a text file, best in UTF-8") from error


# --- the published format -----------------------------------------------------------------------------------------


def _read_published(reading: Reading, lines: Sequence[tuple[int, str]], *, title: str) -> SeriesSet:
    if len(lines) < 3:
        what = ("the name of the quality", "the scales", "at least one algorithm")[len(lines)]
        last = lines[-1][0] if lines else None
        allowed = "a line with the quality's name, one with the scales, and one for each algorithm"
        raise reading.wrong(last, None, f"a file that ends before {what}", allowed)
    quality = _quality_name(reading, *lines[0])
    head = _head(reading, *lines[1])
    width = len(head.cells)
    scales = [reading.number(cell, head.line, column) for column, cell in enumerate(head.cells[1:], start=2)]
    rows = [_row(reading, number, line, width) for number, line in lines[2:]]
    return assemble(reading, title=title, quality=quality, head=head, scales=scales, rows=rows)


def _quality_name(reading: Reading, number: int, line: str) -> str:
    cells = [cell.strip() for cell in line.split("\t")]
    name = cells[0]
    if any(cells[1:]) or not name or _NUMBER.fullmatch(name):
        raise reading.wrong(
            number, None, repr(line.strip()[:60]), "the quality's name alone, as SSIM, on the first line"
        )
    return name


def _head(reading: Reading, number: int, line: str) -> Row:
    if "\t" in line:
        cells = _cells(line)
    else:
        words = line.split()
        count = 0
        while count < len(words) and _NUMBER.fullmatch(words[-1 - count]):
            count += 1
        cells = [" ".join(words[: len(words) - count]), *words[len(words) - count :]]
        if count:
            reading.note("spaces were read as tabs")
    if len(cells) < 2:
        raise reading.wrong(number, 1, repr(line.strip()[:60]), "the uncertainty's name and its scales, between tabs")
    if not cells[0]:
        raise reading.wrong(number, 1, "no name", "the uncertainty's name before its scales")
    if len(cells) > MAX_SCALES:
        raise reading.wrong(number, None, f"{len(cells) - 1} scales", f"at most {MAX_SCALES}")
    return Row(number, tuple(cells))


def _row(reading: Reading, number: int, line: str, width: int) -> Row:
    if "\t" in line:
        cells = _cells(line, width)
    else:
        words = line.split()
        values = words[1 - width :] if len(words) >= width else []
        if not values or not all(_NUMBER.fullmatch(word) for word in values):
            found = f"{len(words)} words between spaces: {line.strip()[:60]!r}"
            raise reading.wrong(number, None, found, f"an algorithm and {width - 1} qualities, between tabs")
        cells = [" ".join(words[: 1 - width]), *values]
        reading.note("spaces were read as tabs")
    check_width(reading, number, cells, width)
    return Row(number, tuple(cells))


def _cells(line: str, width: int = 0) -> list[str]:
    """Return the cells of a line; empty ones at its end, beyond ``width``, are what editors leave."""
    cells = [cell.strip() for cell in line.split("\t")]
    while len(cells) > max(width, 1) and not cells[-1]:
        cells.pop()
    return cells


def check_width(reading: Reading, number: int, cells: Sequence[str], width: int) -> None:
    """Check that a line has a cell for each scale.

    Raises:
        UserMistakes: It has more or fewer.
    """
    if len(cells) != width:
        found = f"{len(cells) - 1} qualities for {width - 1} scales"
        raise reading.wrong(number, min(len(cells), width) + 1, found, f"{width - 1} qualities, one for each scale")


def assemble(
    reading: Reading, *, title: str, quality: str, head: Row, scales: Sequence[float], rows: Sequence[Row]
) -> SeriesSet:
    """Return the curves of a table of one line an algorithm, its columns sorted and equal scales merged.

    Raises:
        UserMistakes: A name is missing or stands twice, a cell is no number, or there are fewer than two scales.
    """
    if len(set(scales)) < 2:
        found = "one scale" if scales else "no scale"
        raise reading.wrong(head.line, 2, found, "two different scales or more: α is a loss between neighbours")
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
                row.line, 1, f"{name!r} for the second time", f"another name than line {names[name]} has"
            )
        names[name] = row.line
        values = [reading.number(cell, row.line, column) for column, cell in enumerate(row.cells[1:], start=2)]
        series.append(make_series(name, scales, values, labels=head.cells[1:]))
    return SeriesSet(title=title, quality=quality, scale=head.cells[0], series=tuple(series))
