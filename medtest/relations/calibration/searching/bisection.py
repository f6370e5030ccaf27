"""Bisection between the last value that passes and the first that fails, as pure functions of the values tried so far.

Nothing is kept between two steps: a search that was stopped continues from its record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

Between: TypeAlias = Callable[[float, float, float], float | None]
"""Function of two values and a fraction that returns the value there, None if none lies between them."""
_DEEPEST = 6
"""Halvings after which no further fraction is tried in one bracket."""


def bracket(tried: Mapping[float, bool | None]) -> tuple[float | None, float | None]:
    """Return the last passing value below the first failing one, and the first failing one.

    Args:
        tried: For each value whether it failed; None without a verdict.

    Returns:
        Lower and upper end, None where there is none. Without a failing value the lower end is the greatest passing
        one.
    """
    first = min((value for value, fails in tried.items() if fails), default=None)
    passing = [value for value, fails in tried.items() if fails is False and (first is None or value < first)]
    return max(passing, default=None), first


def next_value(tried: Mapping[float, bool | None], between: Between) -> float | None:
    """Return the value to try next: the middle of the bracket, or another fraction if that has no verdict.

    Args:
        tried: As in :func:`bracket`.
        between: Returns the value at a fraction of the way between two.

    Returns:
        None if the search is over: there is no bracket, or nothing is left between its ends.
    """
    low, high = bracket(tried)
    if low is None or high is None:
        return None
    for fraction in _fractions():
        value = between(low, high, fraction)
        if value is None:
            return None
        if value not in tried:
            return value
    return None


def whole_between(low: float, high: float, fraction: float) -> float | None:
    """Return the whole number at a fraction of the way between two whole numbers, None if they are neighbours."""
    if high - low <= 1:
        return None
    return low + min(max(int((high - low) * fraction), 1), int(high - low) - 1)


def _fractions() -> Iterable[float]:
    """Yield 1/2, 1/4, 3/4, 1/8, 3/8 and so on."""
    for depth in range(1, _DEEPEST + 1):
        for odd in range(1, 2**depth, 2):
            yield odd / 2**depth
