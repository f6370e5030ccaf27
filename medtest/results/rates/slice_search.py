"""Search for combinations of factors with many violations, by ``sliceline``.

SliceLine (S. Sagadeeva and M. Boehm, SIGMOD 2021) scores a combination with mean error e and n of N cases as α (e / ē −
1) − (1 − α) (N / n − 1), where ē is the mean error of all cases, and enumerates combinations with sound bounds. Time
and memory grow with the number of triples, so triples are searched among the factors of the best pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

MOST_FACTORS = 3
"""Largest number of factors of a combination."""
ALPHA = 0.95
"""Weight of the error against the size, as in the paper."""
SMALLEST_SHARE = 0.02
"""Smallest share of the cases."""
_BEST = 60
"""Number of combinations returned, and of pairs that choose the factors of triples."""
_WIDE = 8
"""Number of factors among which triples are searched."""
_MANY_CASES = 10_000
"""Number of cases above which evenly spaced ones are searched."""

Combination = tuple[tuple[int, int], ...]
"""Pairs of a factor's index and its bin, by ascending index."""


def search_slices(codes: NDArray[np.int64], violated: NDArray[np.bool_]) -> list[Combination]:
    """Return the combinations of up to three factors with the highest scores above 0, best first.

    Args:
        codes: int64 N × m; bin of each case under each factor, -1 for a missing value, which is in no combination.
        violated: bool N; violations.

    Raises:
        ImportError: ``sliceline`` is not installed.
    """
    step = -(-len(codes) // _MANY_CASES)
    codes, errors = codes[::step], violated[::step].astype(np.float64)
    every = list(range(codes.shape[1]))
    if len(every) > _WIDE:
        pairs = _best(codes, errors, every, MOST_FACTORS - 1)
        every = sorted(list(dict.fromkeys([*(at for pair in pairs for at, _ in pair), *every]))[:_WIDE])
        triples = _best(codes, errors, every, MOST_FACTORS)
        return list(dict.fromkeys([*triples, *pairs]))
    return _best(codes, errors, every, MOST_FACTORS)


def _best(
    codes: NDArray[np.int64], errors: NDArray[np.float64], factors: list[int], most_factors: int
) -> list[Combination]:
    from sliceline.slicefinder import Slicefinder

    finder = Slicefinder(
        alpha=ALPHA,
        k=_BEST,
        max_l=most_factors,
        min_sup=max(1, int(np.ceil(SMALLEST_SHARE * len(codes)))),
        verbose=False,
    )
    finder.fit(codes[:, factors], errors)
    return list(_present(finder.top_slices_, factors))


def _present(rows: NDArray[np.object_], factors: list[int]) -> Iterator[Combination]:
    for row in rows.tolist():
        chosen = tuple((factors[at], int(code)) for at, code in enumerate(row) if code is not None)
        if all(code >= 0 for _, code in chosen):
            yield chosen
