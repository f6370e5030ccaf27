"""Features of pictures in an array."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from medtest.results.fidelity.features import CHUNK, Integers, Rows


class ArrayFeatures:
    """Features in one array, in memory or mapped from a file.

    Args:
        values: float32 or float64 N×D.

    Raises:
        ValueError: The array has another dtype or shape.
    """

    def __init__(self, values: Rows) -> None:
        if values.ndim != 2 or values.dtype not in (np.float32, np.float64):
            raise ValueError(f"features are float32 or float64 N×D, not {values.dtype} of shape {values.shape}")
        self._values = values

    @property
    def count(self) -> int:
        """Number of rows N."""
        return len(self._values)

    @property
    def dimension(self) -> int:
        """Number of columns D."""
        return int(self._values.shape[1])

    def chunks(self) -> Iterator[Rows]:
        """Yield the rows in order, at most :data:`CHUNK` at once."""
        for start in range(0, self.count, CHUNK):
            yield self._values[start : start + CHUNK]

    def rows(self, numbers: Integers) -> Rows:
        """Return selected rows, in the order of their numbers."""
        return self._values[numbers]
