"""Random numbers that a search chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_MOST_STEERED = 24
"""Draws of a follow-up that a search steers."""
_MOST_WHOLE = 2**20


class SteeredGenerator(np.random.Generator):
    """Random generator whose first single draws come from a search; all others come from its bit generator.

    Args:
        bits: The bit generator.
        suggest: Returns a number in [0, 1) for the name of a draw.
    """

    def __init__(self, bits: np.random.BitGenerator, suggest: Callable[[str], float]) -> None:
        super().__init__(bits)
        self._suggest = suggest
        self._count = 0
        self._start = bits.state

    def restarted(self) -> SteeredGenerator:
        """Return a generator with the same draws from the first one; a search suggests one number for each name."""
        bits: Any = np.random.PCG64(0)
        bits.state = self._start
        return SteeredGenerator(bits, self._suggest)

    def _steered(self, size: Any) -> bool:
        return size is None and self._count < _MOST_STEERED

    def _next(self) -> float:
        self._count += 1
        return min(max(self._suggest(f"draw_{self._count}"), 0.0), 1.0 - 2**-53)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Draw from [0, 1)."""
        if out is None and self._steered(size):
            return self._next()
        return super().random(size, dtype, out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Draw from [low, high)."""
        if self._steered(size) and np.ndim(low) == 0 and np.ndim(high) == 0:
            return float(low + (high - low) * self._next())
        return super().uniform(low, high, size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw from a normal distribution."""
        if self._steered(size) and np.ndim(loc) == 0 and np.ndim(scale) == 0:
            from statistics import NormalDist

            return float(loc + scale * NormalDist().inv_cdf(min(max(self._next(), 1e-9), 1.0 - 1e-9)))
        return super().normal(loc, scale, size)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """Draw a whole number; the seeds of noise, from ranges too large to search, are not steered."""
        first, last = (0, low) if high is None else (low, high)
        count = int(last) - int(first) + int(endpoint) if np.ndim(last) == 0 and np.ndim(first) == 0 else 0
        if self._steered(size) and 0 < count <= _MOST_WHOLE:
            return int(first) + int(self._next() * count)
        return super().integers(low, high, size, dtype, endpoint)
