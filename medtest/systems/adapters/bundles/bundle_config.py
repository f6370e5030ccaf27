"""Configuration of a MONAI bundle read as data: references resolved, nothing evaluated.

MONAI's own parser executes code in a configuration: strings that begin with ``$`` are Python, ``_target_`` names any
function. Here a configuration is untrusted, so only a small subset of the language is supported: plain values,
references to other entries (``@network_def`` as a whole string, or ``%``), and components by ``_target_``, which
:mod:`medtest.systems.adapters.bundles.bundle_parts` creates from an allow-list of harmless classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

_REFERENCE = re.compile(r"[@%](?P<id>\w[\w.\- ]*(?:(?:::|#)[\w.\- ]+)*)")
_SEPARATOR = re.compile(r"::|#")
_MOST_NODES = 20_000
_DEEPEST = 40
TARGET = "_target_"
Trim: TypeAlias = "Callable[[Mapping[Any, Any]], Mapping[Any, Any]]"
_IGNORED = ("_desc_",)
_REFUSED = ("_requires_", "_mode_", "_wrapper_", "_debug_")


class NotPlain(Exception):
    """Part of a configuration that is more than data; the message describes it."""


def plain(config: Mapping[str, Any], key: str, trim: Trim | None = None) -> Any:
    """Return an entry of a configuration with all its references resolved.

    Args:
        config: The whole configuration.
        key: The entry's name, nested ones joined by ``::`` or ``#``.
        trim: Receives every table before it is read, and returns the relevant part.

    Raises:
        NotPlain: The entry, or one it refers to, contains an expression or other non-data; or it does not exist.
    """
    return _Reader(config, trim).value(_at(config, key), key, ())


def raw(config: Mapping[str, Any], key: str) -> Any:
    """Return an unresolved entry, None if it does not exist."""
    try:
        return _at(config, key)
    except NotPlain:
        return None


def _at(config: Mapping[str, Any], key: str) -> Any:
    value: Any = config
    for part in _SEPARATOR.split(key):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise NotPlain(f"there is no {key!r}")
    return value


class _Reader:
    """Resolves references and counts nodes, to stop at cycles and alias bombs."""

    def __init__(self, config: Mapping[str, Any], trim: Trim | None) -> None:
        self._config = config
        self._trim = trim
        self._nodes = 0

    def value(self, node: Any, at: str, trail: tuple[str, ...]) -> Any:
        self._nodes += 1
        if self._nodes > _MOST_NODES or at.count("::") + len(trail) > _DEEPEST:
            raise NotPlain(f"{at[:80]} is too large or too deep")
        if isinstance(node, Mapping):
            return self._table(node, at, trail)
        if isinstance(node, list):
            return [self.value(item, f"{at}::{index}", trail) for index, item in enumerate(node)]
        if isinstance(node, str):
            return self._text(node, at, trail)
        if node is None or isinstance(node, bool | int | float):
            return node
        raise NotPlain(f"{at} is {type(node).__name__}, which is not a plain value")

    def _table(self, table: Mapping[Any, Any], at: str, trail: tuple[str, ...]) -> dict[str, Any]:
        table = table if self._trim is None else self._trim(table)
        refused = [name for name in _REFUSED if name in table]
        if refused and not (refused == ["_mode_"] and table["_mode_"] == "default"):
            raise NotPlain(f"{at} has {refused[0]}")
        entries = {str(key): node for key, node in table.items() if key not in (*_IGNORED, "_mode_")}
        return {key: self.value(node, f"{at}::{key}", trail) for key, node in entries.items()}

    def _text(self, text: str, at: str, trail: tuple[str, ...]) -> Any:
        if text.startswith("$"):
            raise NotPlain(f"{at} is an expression: {text[:60]!r}")
        if not text.startswith(("@", "%")):
            return text
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise NotPlain(f"{at} refers to more than an entry of this file: {text[:60]!r}")
        key = match["id"]
        if key in trail:
            raise NotPlain(f"{at} refers to itself through {key!r}")
        return self.value(_at(self._config, key), key, (*trail, key))
