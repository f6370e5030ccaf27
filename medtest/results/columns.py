"""Columns of tables, in order, read from ``columns.yaml`` in the module's folder or a parent folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from medtest.core.files.paths import read_yaml


def columns_in(module: str, table: str) -> tuple[str, ...]:
    """Return the columns of a table.

    Args:
        module: ``__file__`` of the module that builds the table.
        table: File name of the table without its suffix.
    """
    files = (folder / "columns.yaml" for folder in Path(module).parents)
    return next(tuple(_listed(file)[table].split()) for file in files if file.is_file() and table in _listed(file))


@cache
def _listed(file: Path) -> Mapping[str, str]:
    content: Mapping[str, str] = read_yaml(file)
    return content


def seeds_of(*, phantom: bool) -> dict[str, str]:
    """Return the last column of a task's tables: whether seeds are phantoms or images."""
    return {"seeds": "phantoms" if phantom else "images"}
