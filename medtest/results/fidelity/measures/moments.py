"""Mean and covariance of features, from float64 sums over chunks."""

from __future__ import annotations

import numpy as np

from medtest.results.fidelity.features import Floats, PictureFeatures, Rows


class Moments:
    """Mean and second moments about it, whatever number of rows came by: D + D² float64 numbers.

    Chunks are joined as T. F. Chan, G. H. Golub and R. J. LeVeque have it (Updating formulae, Stanford STAN-CS-79-773,
    1979), so that nothing cancels where features lie far from zero.

    Args:
        dimension: D.
    """

    def __init__(self, dimension: int) -> None:
        self.count = 0
        self.mean: Floats = np.zeros(dimension)
        self._squares: Floats = np.zeros((dimension, dimension))

    @classmethod
    def of(cls, features: PictureFeatures) -> Moments:
        """Return the moments of features."""
        found = cls(features.dimension)
        for chunk in features.chunks():
            found.add(chunk)
        return found

    def add(self, rows: Rows) -> None:
        """Take rows in.

        Args:
            rows: float n×D; float32 is widened before anything is added.

        Raises:
            ValueError: They have another number of columns, or hold NaN or infinity.
        """
        if rows.ndim != 2 or rows.shape[1] != len(self.mean):
            raise ValueError(f"rows of shape {rows.shape} where n×{len(self.mean)} are expected")
        if not len(rows):
            return
        values = rows.astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError("features hold NaN or infinity")
        own = values.mean(0)
        values -= own
        gap, total = own - self.mean, self.count + len(rows)
        self._squares += values.T @ values + np.outer(gap, gap) * (self.count * len(rows) / total)
        self.mean = self.mean + gap * (len(rows) / total)
        self.count = total

    @property
    def covariance(self) -> Floats:
        """float64 D×D, symmetric, divided by N - 1; zero where there is one row."""
        return (self._squares + self._squares.T) / (2 * max(1, self.count - 1))
