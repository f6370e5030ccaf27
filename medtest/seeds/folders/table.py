"""Reading of tables beside images: CSV, lists, and the .xls files of Messidor."""

from __future__ import annotations

import csv
import importlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtest.core.errors import Mistake, UserMistakes
from medtest.core.files.images import BadFileError, read_bytes
from medtest.core.files.paths import read_yaml

MOST_PIXELS_WORTH = 3_000_000
"""Bound on a table's size, in the units of :func:`read_bytes` (64 MB)."""

MOST_COLUMNS = 2_000
MOST_ROWS = 2_000_000
MOST_CELLS = 20_000_000
LONGEST_CELL = 2_000

_OLE = b"\xd0\xcf\x11\xe0"
_ZIP = b"PK\x03\x04"


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetRow:
    """One row of a table.

    Attributes:
        line: Line number in the file, from 1.
        cells: Its values, stripped.
    """

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Table as read from its file.

    Attributes:
        where: Name of the file for messages.
        rows: All non-empty rows, including a header.
    """

    where: str
    rows: tuple[SheetRow, ...]

    def mistake(
        self,
        problem: str,
        *,
        line: int | None = None,
        key: str = "",
        allowed: str = "",
        fix: str = "",
        nearest: str | None = None,
    ) -> Mistake:
        """Return a mistake in this file."""
        return Mistake(where=self.where, line=line, key=key, found=problem, allowed=allowed, fix=fix, nearest=nearest)

    def even(self, rows: Sequence[SheetRow], columns: int) -> None:
        """Check that every row has the same number of values.

        Raises:
            UserMistakes: Rows differ; one report lists them.
        """
        uneven = [row for row in rows if len(row.cells) != columns]
        if uneven:
            allowed = f"{columns} as in the first row"
            raise UserMistakes(
                self.mistake(f"{len(row.cells)} values", line=row.line, allowed=allowed) for row in uneven[:20]
            )


def usual_columns(kind: str) -> tuple[str, ...]:
    """Return the usual names of columns of a kind (``columns.yaml``), in order of preference."""
    return tuple(read_yaml(Path(__file__).with_name("columns.yaml"))[kind])


def column_name(text: str) -> str:
    """Return a column's name without case and punctuation: ``Image Index`` becomes ``image_index``."""
    return re.sub(r"[^a-z0-9]+", "_", text.strip().lower()).strip("_")[:64]


def read_table(path: Path, where: str, *, key: str = "table", lists: bool = True) -> Sheet:
    """Read a table: comma, semicolon, tab or blanks between values, UTF-8, or an .xls workbook's first sheet.

    Args:
        path: The file.
        where: Name of the file for messages.
        key: The setting that names it, for messages.
        lists: Whether blanks separate values if no other separator occurs.

    Raises:
        UserMistakes: It cannot be read, is too large, or needs a package that is not installed.
    """
    try:
        content = read_bytes(path, max_pixels=MOST_PIXELS_WORTH)
        if content.startswith(_ZIP):
            raise _Unread("is an .xlsx workbook or another ZIP file", "CSV in UTF-8, or .xls", "save it as CSV")
        rows = _workbook(content) if content.startswith(_OLE) else _text(content, lists=lists)
        filled = tuple(row for row in rows if any(row.cells))
        if not filled:
            raise _Unread("is empty", "a table with a row for each image")
        if max(len(row.cells) for row in filled) > MOST_COLUMNS:
            raise _Unread("has too many columns", f"at most {MOST_COLUMNS:,}")
    except BadFileError as error:
        raise Mistake(where=where, key=key, found=str(error)).as_error() from error
    except _Unread as error:
        problem, allowed, fix = (*error.args, "")[:3]
        raise Mistake(where=where, key=key, found=problem, allowed=allowed, fix=fix).as_error() from error
    return Sheet(where=where, rows=filled)


class _Unread(Exception):
    pass


def _text(content: bytes, *, lists: bool) -> list[SheetRow]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Unread(f"is not UTF-8 (byte {error.start})", "CSV in UTF-8", "save it as UTF-8") from error
    head = text.split("\n", 1)[0]
    counts = {mark: head.count(mark) for mark in ",;\t"}
    delimiter = max(counts, key=lambda mark: counts[mark])
    if not counts[delimiter] and lists:
        lines = text.splitlines()
        if len(lines) > MOST_ROWS or len(text) > 2 * MOST_CELLS:
            raise _Unread("is too long a list", f"at most {MOST_ROWS:,} rows")
        return [SheetRow(line=number, cells=tuple(line.split())) for number, line in enumerate(lines, start=1)]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[SheetRow] = []
    cells = 0
    try:
        for values in reader:
            cells += len(values)
            if len(rows) >= MOST_ROWS or cells > MOST_CELLS:
                raise _Unread("is too large a table", f"at most {MOST_ROWS:,} rows and {MOST_CELLS:,} values")
            rows.append(SheetRow(line=reader.line_num, cells=tuple(value.strip()[:LONGEST_CELL] for value in values)))
    except csv.Error as error:
        raise _Unread(f"line {reader.line_num} is not CSV ({error})", "") from error
    return rows


def _workbook(content: bytes) -> list[SheetRow]:
    """Return the rows of an .xls workbook's first sheet."""
    try:
        xlrd: Any = importlib.import_module("xlrd")
    except ImportError as error:
        fix = "pip install 'medtest[xls]', or save the table as CSV"
        raise _Unread("is an .xls workbook, which needs the package xlrd", "CSV in UTF-8, or .xls", fix) from error
    try:
        with xlrd.open_workbook(file_contents=content, on_demand=True, logfile=io.StringIO()) as book:
            sheet = book.sheet_by_index(0)
            return [
                SheetRow(line=number + 1, cells=tuple(_cell(value) for value in sheet.row_values(number)))
                for number in range(sheet.nrows)
            ]
    except Exception as error:
        raise _Unread("is a damaged .xls workbook", "CSV in UTF-8, or .xls", "save it as CSV") from error


def _cell(value: object) -> str:
    """Return a cell's text; whole numbers, which .xls stores as floats, without decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()[:LONGEST_CELL]
