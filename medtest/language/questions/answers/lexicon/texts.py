"""Long patterns of a module, from its YAML file in the folder ``patterns`` beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C where the library has it: ten times as fast."""
_OTHER = re.compile(r"\{\{(\w+)\}\}")


@cache
def _content(module: str) -> Mapping[str, Any]:
    path = Path(module)
    file = path.with_name("patterns") / f"{path.stem}.yaml"
    content: dict[str, Any] = yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506
    return content


def table(module: str, name: str) -> Mapping[Any, Any]:
    """Return a table of a module's file.

    Args:
        module: The ``__file__`` of the module.
        name: The table's.
    """
    found: Mapping[Any, Any] = _content(module)[name]
    return found


@cache
def texts(module: str) -> Mapping[str, str]:
    """Return the texts of a module's file by name: items of a list are joined, ``{{name}}`` stands for another text.

    Args:
        module: The ``__file__`` of the module.
    """
    found: dict[str, str] = {}
    for name, parts in _content(module).items():  # what stands for another text comes after it
        if not isinstance(parts, dict):
            found[name] = _OTHER.sub(lambda one: found[one[1]], parts if isinstance(parts, str) else "".join(parts))
    return found
