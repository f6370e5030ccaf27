"""Linear interpolation of the numbers of a relation's levels, for calibration and for searches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

Value: TypeAlias = float | list[float]
Limits: TypeAlias = tuple[float, float]
UNLIMITED: Limits = (-math.inf, math.inf)


def level_fields(level: Any) -> dict[str, Any]:
    """Return the values of a level by field; a level that is a number has one without a name."""
    if isinstance(level, BaseModel):
        return level.model_dump()
    return dict(level) if isinstance(level, Mapping) else {"": level}


def is_numeric(value: Any) -> bool:
    """Return True for a number, and for a list of numbers."""
    if isinstance(value, list | tuple):
        return bool(value) and all(is_numeric(item) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def interpolated(places: Sequence[float], stated: Sequence[Any], at: float, limits: Limits = UNLIMITED) -> Any:
    """Return a value between stated ones, or beyond them; lists number by number.

    Below the first place and above the last one, the line through the nearest two goes on; below the first it goes
    down by one of its steps for each 1. A single value grows in proportion.

    Args:
        places: Places of the stated values, ascending.
        stated: Numbers, or lists of equal length. Between whole numbers the result is rounded.
        at: Place of the result.
        limits: Least and greatest result.
    """
    if isinstance(stated[0], list | tuple):
        return [interpolated(places, column, at, limits) for column in zip(*stated, strict=True)]
    value = min(max(_line(places, stated, at), limits[0]), limits[1])
    return round(value) if all(isinstance(number, int) for number in stated) else float(value)


def _line(places: Sequence[float], stated: Sequence[float], at: float) -> float:
    if len(places) == 1:
        return stated[0] * max(0.0, at - places[0] + 1)
    above = next((index for index, place in enumerate(places) if place >= at), len(places) - 1)
    above = max(above, 1)
    (below, above_it), (low, high) = places[above - 1 : above + 1], stated[above - 1 : above + 1]
    if at == above_it:
        return high
    step = above_it - below if at >= below else 1
    return low + (high - low) * (at - below) / step
