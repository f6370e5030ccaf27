"""Rows of published tables, one CSV file each in this folder."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace

FOLDER = Path(__file__).parent


def published_rows(file: str, **names: str) -> list[SimpleNamespace]:
    """Return the rows of a file, in its order, with an attribute for each column.

    Columns of numbers are floats, None where nothing was published; the others are texts.

    Args:
        file: Name of the file.
        names: Attribute of a column whose name differs.
    """
    with (FOLDER / file).open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    numbers = {column for column in rows[0] if all(_is_number(row[column]) for row in rows if row[column])}
    return [
        SimpleNamespace(
            **{
                names.get(column, column): (float(text) if text else None) if column in numbers else text
                for column, text in row.items()
            }
        )
        for row in rows
    ]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
