"""Features of pictures, read in chunks of rows so that memory does not grow with the number of pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

CHUNK: Final = 1024
"""Number of rows held in memory at once."""


class PictureFeatures(Protocol):
    """N rows of D numbers each, which can be read repeatedly in one order."""

    @property
    def count(self) -> int:
        """Number of rows N."""

    @property
    def dimension(self) -> int:
        """Number of columns D."""

    def chunks(self) -> Iterator[Rows]:
        """Yield the rows in order, at most :data:`CHUNK` at once."""

    def rows(self, numbers: Integers) -> Rows:
        """Return selected rows, in the given order.

        Args:
            numbers: int64 n in [0, N).
        """


class Chosen:
    """Selection of rows of other features, in any order.

    Args:
        features: All features.
        numbers: int64 n in [0, N); indices of the selected rows.
    """

    def __init__(self, features: PictureFeatures, numbers: Integers) -> None:
        self._features, self._numbers = features, np.asarray(numbers, np.int64)

    @property
    def count(self) -> int:
        """Number of selected rows."""
        return len(self._numbers)

    @property
    def dimension(self) -> int:
        """Number of columns D."""
        return self._features.dimension

    def chunks(self) -> Iterator[Rows]:
        """Yield the rows in order, at most :data:`CHUNK` at once."""
        for start in range(0, self.count, CHUNK):
            yield self._features.rows(self._numbers[start : start + CHUNK])

    def rows(self, numbers: Integers) -> Rows:
        """Return selected rows, in the given order."""
        return self._features.rows(self._numbers[numbers])
