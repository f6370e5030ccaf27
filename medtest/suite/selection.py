"""``only=relation:blur,severity:3``: which part of the plan a call executes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.cases import UNCHANGED
from medtest.errors import Mistake, nearest_name
from medtest.suite.model import Selection
from medtest.suite.safety import short

_ONLY: Mapping[str, str] = {
    "relation": "relations",
    "severity": "severities",
    "dataset": "datasets",
    "seed": "seeds",
}


def selection_of(only: Any, values: Mapping[str, Any], mistakes: list[Mistake]) -> Selection:
    """Return the part that ``only=`` chooses.

    Args:
        only: The option as given.
        values: The composed suite, for the relations that it has.
        mistakes: Is added to.
    """
    if not isinstance(only, (str, list)):
        return Selection()
    given = [str(item) for item in only] if isinstance(only, list) else only.split(",")
    found: dict[str, set[Any]] = {name: set() for name in _ONLY.values()}
    for item in given:
        kind, colon, value = item.strip().partition(":")
        kind, value = kind.strip(), value.strip()
        if kind not in _ONLY or not colon or not value:
            mistakes.append(
                Mistake(
                    where="command line",
                    key="only",
                    found=short(item),
                    allowed="relation:ID, severity:N, dataset:ID, seed:ID, several joined by commas",
                    nearest=nearest_name(kind, _ONLY),
                )
            )
        elif kind == "severity":
            if value.isdecimal() and int(value) <= 5:
                found["severities"].add(int(value))
            else:
                mistakes.append(
                    Mistake(where="command line", key="only", found=short(item), allowed="severity:0 to severity:5")
                )
        else:
            found[_ONLY[kind]].add(value)
    block = values.get("relations")
    ids = [UNCHANGED, *(name for name, item in block.items() if item is not False)] if isinstance(block, dict) else []
    for name in sorted(found["relations"] - set(ids)):
        mistakes.append(
            Mistake(
                where="command line",
                key="only",
                found=f"relation:{name}",
                allowed=", ".join(ids),
                nearest=nearest_name(name, ids),
            )
        )
    return Selection(**{name: frozenset(chosen) for name, chosen in found.items()})
