"""Reading of quality over scales from files: the format of the (α,σ) paper's program, and CSV.

The published format (A. Vacavant, robustimageprocessing): lines that begin with ``#`` are comments; the first other
line names the quality, the second names the uncertainty and gives its scales, every further one names an algorithm and
gives its quality at each scale; cells are separated by tabs.

CSV is wide (a header with the uncertainty's name and the scales, one line per algorithm) or long (columns
``algorithm``, ``scale``, one of qualities under its name, and, with several images, ``image`` and optionally
``cluster``).

Unambiguous deviations are accepted and noted: unsorted columns are sorted, equal scales averaged; spaces instead of
tabs, decimal commas where no comma separates cells, Windows line ends, byte order marks, UTF-16 and Windows-1252 are
read. Anything else is reported as one mistake with its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from medtest.core.files import BOMS
from medtest.results.series.series import SeriesSet
from medtest.results.series.series_csv import read_csv
from medtest.results.series.series_lines import NUMBER, Line, SeriesReading, assemble, check_width

MAX_BYTES = 16 * 2**20
MAX_CSV_BYTES = 512 * 2**20
"""Larger files are not tables of qualities; a CSV may have one line per measurement."""
MAX_SCALES = 100_000

_LINE = re.compile(r"\r\n|\r|\n")


def read_series_file(path: Path, *, lower_is_better: bool = False) -> SeriesSet:
    """Read one file; the suffix ``.csv`` distinguishes CSV from the published format.

    Args:
        path: The file.
        lower_is_better: True if its numbers are errors instead of qualities.

    Raises:
        UserMistakes: The file cannot be read, or has another format: one message with line and column.
    """
    reading = SeriesReading(where=path.name)
    is_csv = path.suffix.lower() == ".csv"
    text = _text(path, reading, MAX_CSV_BYTES if is_csv else MAX_BYTES)
    if is_csv:
        curves = read_csv(reading, text, title=path.stem)
    else:
        reading.commas = True
        lines = [(number, line) for number, line in enumerate(_LINE.split(text), start=1) if line.strip()]
        content_lines = [(number, line) for number, line in lines if not line.lstrip().startswith("#")]
        curves = _read_published(reading, content_lines, title=path.stem)
    return replace(curves, lower_is_better=lower_is_better, notes=tuple(reading.notes))


def _text(path: Path, reading: SeriesReading, most: int) -> str:
    if not path.is_file():
        problem = "a folder" if path.is_dir() else "no such file"
        raise reading.wrong(None, None, problem, "a file of qualities: .dat, .csv or records.parquet")
    try:
        content = path.read_bytes() if path.stat().st_size <= most else b""
    except OSError as error:
        raise reading.wrong(None, None, f"it cannot be read: {error.strerror}", "a readable file") from error
    if path.stat().st_size > most:
        raise reading.wrong(None, None, f"more than {most >> 20} MiB", "a table of qualities")
    for mark, name in BOMS:
        if content.startswith(mark):
            return _decoded(content, name, reading)
    if b"\0" in content:
        raise reading.wrong(None, None, "bytes that are not text", "a text file")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        reading.note("the file is not UTF-8; it was read as Windows-1252")
        return content.decode("cp1252", "replace")


def _decoded(content: bytes, name: str, reading: SeriesReading) -> str:
    try:
        return content.decode(name)
    except UnicodeDecodeError as error:
        raise reading.wrong(None, None, f"bytes that are not {name}", "a text file, best in UTF-8") from error


# --- the published format -----------------------------------------------------------------------------------------


def _read_published(reading: SeriesReading, lines: Sequence[tuple[int, str]], *, title: str) -> SeriesSet:
    if len(lines) < 3:
        lacking = ("the name of the quality", "the scales", "at least one algorithm")[len(lines)]
        last = lines[-1][0] if lines else None
        allowed = "a line with the quality's name, a line with the scales, and one line per algorithm"
        raise reading.wrong(last, None, f"a file that ends before {lacking}", allowed)
    quality = _quality_name(reading, *lines[0])
    head = _head(reading, *lines[1])
    width = len(head.cells)
    scales = [reading.number(cell, head.line, column) for column, cell in enumerate(head.cells[1:], start=2)]
    rows = [_row(reading, number, line, width) for number, line in lines[2:]]
    return assemble(reading, title=title, quality=quality, head=head, scales=scales, rows=rows)


def _quality_name(reading: SeriesReading, number: int, line: str) -> str:
    cells = [cell.strip() for cell in line.split("\t")]
    name = cells[0]
    if any(cells[1:]) or not name or NUMBER.fullmatch(name):
        raise reading.wrong(
            number, None, repr(line.strip()[:60]), "the quality's name alone, as SSIM, on the first line"
        )
    return name


def _head(reading: SeriesReading, number: int, line: str) -> Line:
    if "\t" in line:
        cells = _cells(line)
    else:
        words = line.split()
        count = 0
        while count < len(words) and NUMBER.fullmatch(words[-1 - count]):
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
    return Line(number, tuple(cells))


def _row(reading: SeriesReading, number: int, line: str, width: int) -> Line:
    if "\t" in line:
        cells = _cells(line, width)
    else:
        words = line.split()
        values = words[1 - width :] if len(words) >= width else []
        if not values or not all(NUMBER.fullmatch(word) for word in values):
            problem = f"{len(words)} words between spaces: {line.strip()[:60]!r}"
            raise reading.wrong(number, None, problem, f"an algorithm and {width - 1} qualities, between tabs")
        cells = [" ".join(words[: 1 - width]), *values]
        reading.note("spaces were read as tabs")
    check_width(reading, number, cells, width)
    return Line(number, tuple(cells))


def _cells(line: str, width: int = 0) -> list[str]:
    """Return the cells of a line, without the empty ones that editors leave at its end beyond ``width``."""
    cells = [cell.strip() for cell in line.split("\t")]
    while len(cells) > max(width, 1) and not cells[-1]:
        cells.pop()
    return cells
