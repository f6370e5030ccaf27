"""Rows of the result tables, as the sections of the report look them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def rows_of(table: pd.DataFrame, **keys: str) -> list[dict[Any, Any]]:
    """Return the rows whose columns have these values, in order."""
    rows: list[dict[Any, Any]] = table.to_dict("records")
    return [row for row in rows if all(row[name] == value for name, value in keys.items())]
