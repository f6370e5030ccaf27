"""Long patterns of a module, from its YAML file in the folder ``patterns`` next to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from medtest.core.files.paths import read_yaml

_OTHER = re.compile(r"\{\{(\w+)\}\}")


@cache
def _content(module: str) -> Mapping[str, Any]:
    path = Path(module)
    file = path.with_name("patterns") / f"{path.stem}.yaml"
    content: dict[str, Any] = read_yaml(file)
    return content


def table(module: str, name: str) -> Mapping[Any, Any]:
    """Return a table from a module's file.

    Args:
        module: ``__file__`` of the module.
        name: Name of the table.
    """
    content: Mapping[Any, Any] = _content(module)[name]
    return content


@cache
def texts(module: str) -> Mapping[str, str]:
    """Return the texts in a module's file by name; list items are joined, ``{{name}}`` is replaced by another text.

    Args:
        module: ``__file__`` of the module.
    """
    by_name: dict[str, str] = {}
    for name, parts in _content(module).items():  # a text follows those that it refers to
        if not isinstance(parts, dict):
            by_name[name] = _OTHER.sub(
                lambda match: by_name[match[1]], parts if isinstance(parts, str) else "".join(parts)
            )
    return by_name
