"""Features of pictures as figures take them: a chunk of rows at a time, so that memory does not grow with pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

CHUNK: Final = 1024
"""Rows that are in memory at once."""


class PictureFeatures(Protocol):
    """N rows of D numbers each, read again and again in one order."""

    @property
    def count(self) -> int:
        """N."""

    @property
    def dimension(self) -> int:
        """D."""

    def chunks(self) -> Iterator[Rows]:
        """Yield the rows in order, at most :data:`CHUNK` at once."""

    def rows(self, numbers: Integers) -> Rows:
        """Return some rows, in the order of their numbers.

        Args:
            numbers: int64 n in [0, N).
        """


class ArrayFeatures:
    """Features that lie in one array, in memory or mapped from a file.

    Args:
        values: float32 or float64 N×D.

    Raises:
        ValueError: It is something else.
    """

    def __init__(self, values: Rows) -> None:
        if values.ndim != 2 or values.dtype not in (np.float32, np.float64):
            raise ValueError(f"features are float32 or float64 N×D, not {values.dtype} of shape {values.shape}")
        self._values = values

    @property
    def count(self) -> int:
        """N."""
        return len(self._values)

    @property
    def dimension(self) -> int:
        """D."""
        return int(self._values.shape[1])

    def chunks(self) -> Iterator[Rows]:
        """Yield the rows in order, at most :data:`CHUNK` at once."""
        for start in range(0, self.count, CHUNK):
            yield self._values[start : start + CHUNK]

    def rows(self, numbers: Integers) -> Rows:
        """Return some rows, in the order of their numbers."""
        return self._values[numbers]


class Chosen:
    """Some rows of other features, in an order of their own.

    Args:
        features: All of them.
        numbers: int64 n in [0, N): which ones.
    """

    def __init__(self, features: PictureFeatures, numbers: Integers) -> None:
        self._features, self._numbers = features, np.asarray(numbers, np.int64)

    @property
    def count(self) -> int:
        """How many."""
        return len(self._numbers)

    @property
    def dimension(self) -> int:
        """D."""
        return self._features.dimension

    def chunks(self) -> Iterator[Rows]:
        """Yield the rows in order, at most :data:`CHUNK` at once."""
        for start in range(0, self.count, CHUNK):
            yield self._features.rows(self._numbers[start : start + CHUNK])

    def rows(self, numbers: Integers) -> Rows:
        """Return some rows, in the order of their numbers."""
        return self._features.rows(self._numbers[numbers])
