"""Text in CSV files that no spreadsheet takes for a formula.

Words of a model, ids of seeds and values of metadata come from outside. A cell that starts with ``=``, ``+``, ``-``,
``@``, a tab or a line's end is run as a formula by the spreadsheet that opens the file; an apostrophe before it makes
it text (OWASP, "CSV Injection"). Numbers stay as they are, and so does ``records.parquet``, which everything is
computed from.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = r"\A[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"
"""What a formula starts with; the last four are the full-width forms of the first four, which some programs take."""
_NUMBER = r"\A[+\-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+\-]?\d+)?\z"
_STARTS = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_PLAIN = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

_NUMBERS = frozenset("biufcmM")
"""Letters of the numpy types that hold no text."""


def text_cell(text: str) -> str:
    """Return a text as a CSV file holds it: with an apostrophe before it where it would be a formula.

    Args:
        text: Any text; one that is a plain number (``-0.5``) is no formula.
    """
    return f"'{text}" if _STARTS.match(text) and not _PLAIN.fullmatch(text) else text


def frame_for_csv(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts are no formulas; columns of numbers are left alone."""
    import pandas as pd

    changed = {}
    for name in frame.columns:
        letter = frame[name].dtype.kind
        if letter in _NUMBERS:
            continue
        cells = frame[name].tolist()
        shown = [text_cell(cell) if isinstance(cell, str) else cell for cell in cells]
        if any(new is not old for new, old in zip(shown, cells, strict=True)):
            changed[name] = pd.Series(shown, index=frame.index, dtype=object)
    return frame.assign(**changed) if changed else frame


def table_for_csv(table: pa.Table) -> pa.Table:
    """Return records whose texts are no formulas; types and metadata stay."""
    for number, field in enumerate(table.schema):
        if not pa.types.is_string(field.type):
            continue
        column = table.column(number)
        formula = pc.match_substring_regex(column, _FORMULA)
        if not pc.any(formula).as_py():  # as good as every column of every file: nothing is copied
            continue
        number_like = pc.match_substring_regex(column, _NUMBER)
        guarded = pc.binary_join_element_wise(pa.scalar("'"), column, pa.scalar(""))
        table = table.set_column(number, field, pc.if_else(pc.and_(formula, pc.invert(number_like)), guarded, column))
    return table
