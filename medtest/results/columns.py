"""The columns of the tables, in their order: ``columns.yaml`` beside the modules that make the tables lists them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml


def columns_in(module: str, table: str) -> tuple[str, ...]:
    """Return the columns of a table.

    Args:
        module: ``__file__`` of the module that makes it.
        table: Its file's name without the ending.
    """
    return tuple(_listed(Path(module).parent / "columns.yaml")[table].split())


@cache
def _listed(file: Path) -> Mapping[str, str]:
    content: Mapping[str, str] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content


def seeds_of(*, phantom: bool) -> dict[str, str]:
    """Return the last column of a task's tables: whether seeds are made images."""
    return {"seeds": "phantoms" if phantom else "images"}
