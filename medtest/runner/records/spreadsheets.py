"""Escaping of texts in CSV files that spreadsheets would take for formulas.

Model outputs, seed ids and metadata values come from outside. A spreadsheet runs a cell that starts with ``=``, ``+``,
``-``, ``@``, a tab or a line end as a formula; an apostrophe before it makes it text (OWASP, "CSV Injection"). Numbers
stay unchanged, and so does ``records.parquet``, from which all results are computed.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from medtest.core.deferred import pd

_FORMULA = r"\A[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"
"""Beginnings of formulas; the last four are full-width forms of the first four, which some programs accept."""
_NUMBER = r"\A[+\-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+\-]?\d+)?\z"
_STARTS = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_PLAIN = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

_NUMBERS = frozenset("biufcmM")
"""Letters of the numpy types without text."""


def text_cell(text: str) -> str:
    """Return a text for a CSV file: with an apostrophe before it if it would be a formula.

    Args:
        text: Any text; a plain number (``-0.5``) is not a formula.
    """
    return f"'{text}" if _STARTS.match(text) and not _PLAIN.fullmatch(text) else text


def frame_for_csv(frame: pd.DataFrame) -> pd.DataFrame:
    """Escape formulas in the text columns of a table."""
    changed = {}
    for name in frame.columns:
        letter = frame[name].dtype.kind
        if letter in _NUMBERS:
            continue
        cells = frame[name].tolist()
        escaped = [text_cell(cell) if isinstance(cell, str) else cell for cell in cells]
        if any(new is not old for new, old in zip(escaped, cells, strict=True)):
            changed[name] = pd.Series(escaped, index=frame.index, dtype=object)
    return frame.assign(**changed) if changed else frame


def table_for_csv(table: pa.Table) -> pa.Table:
    """Escape formulas in the texts of records; types and metadata stay."""
    for number, field in enumerate(table.schema):
        if not pa.types.is_string(field.type):
            continue
        column = table.column(number)
        formula = pc.match_substring_regex(column, _FORMULA)
        if not pc.any(formula).as_py():  # true for almost every column: nothing is copied
            continue
        number_like = pc.match_substring_regex(column, _NUMBER)
        escaped = pc.binary_join_element_wise(pa.scalar("'"), column, pa.scalar(""))
        table = table.set_column(number, field, pc.if_else(pc.and_(formula, pc.invert(number_like)), escaped, column))
    return table
