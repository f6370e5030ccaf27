"""Long patterns of a module, from its YAML file in the folder ``patterns`` beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C where the library has it: ten times as fast."""
_OTHER = re.compile(r"\{\{(\w+)\}\}")


@cache
def texts(module: str) -> Mapping[str, str]:
    """Return the texts of a file by name: items of a list are joined, ``{{name}}`` stands for another text.

    Args:
        module: The ``__file__`` of the module.
    """
    path = Path(module)
    file = path.with_name("patterns") / f"{path.stem}.yaml"
    content = yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506
    found: dict[str, str] = {}
    for name, parts in content.items():  # what stands for another text comes after it
        found[name] = _OTHER.sub(lambda one: found[one[1]], parts if isinstance(parts, str) else "".join(parts))
    return found
