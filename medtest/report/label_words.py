"""Numbers and rows of classifiers' tables, as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.results.labels.classification import WITH, WITHOUT


def average_words(relation: str) -> str:
    """Return a row's name."""
    words = {WITHOUT: "average without the original", WITH: "average with the original"}
    return words.get(relation, relation.replace("_", " "))


def with_interval(row: Mapping[Any, Any], name: str, *, signed: bool = False) -> str:
    """Return a measure with its interval, "" where there is none.

    Args:
        row: A row of a table, with ``<name>``, ``<name>_low`` and ``<name>_high``.
        name: The measure.
        signed: Whether it is a difference.
    """
    value = _number(row.get(name))
    if value is None:
        return ""
    form = "+.3f" if signed else ".3f"
    low, high = _number(row.get(f"{name}_low")), _number(row.get(f"{name}_high"))
    if low is None or high is None:
        return f"{value:{form}}"
    return f"{value:{form}} ({low:{form}} to {high:{form}})"


def p_words(value: Any) -> str:
    """Return a p value with two digits, "" where there is none."""
    p = _number(value)
    if p is None:
        return ""
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def _number(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value)
    return None if number != number else number  # noqa: PLR0124 - NaN is unlike itself
