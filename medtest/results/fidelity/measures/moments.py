"""Mean and covariance of features, from float64 sums over chunks."""

from __future__ import annotations

import numpy as np

from medtest.results.fidelity.features import Floats, PictureFeatures, Rows


class Moments:
    """Running mean and second moments of rows, in D + D² float64 numbers.

    Chunks are combined as in T. F. Chan, G. H. Golub and R. J. LeVeque (Updating formulae, Stanford STAN-CS-79-773,
    1979), which avoids cancellation when features are far from zero.

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
        moments = cls(features.dimension)
        for chunk in features.chunks():
            moments.add(chunk)
        return moments

    def add(self, rows: Rows) -> None:
        """Add rows.

        Args:
            rows: float n×D; float32 is converted to float64 first.

        Raises:
            ValueError: The number of columns differs, or values are NaN or infinite.
        """
        if rows.ndim != 2 or rows.shape[1] != len(self.mean):
            raise ValueError(f"rows of shape {rows.shape} where n×{len(self.mean)} are expected")
        if not len(rows):
            return
        values = rows.astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError("features hold NaN or infinity")
        chunk_mean = values.mean(0)
        values -= chunk_mean
        gap, total = chunk_mean - self.mean, self.count + len(rows)
        self._squares += values.T @ values + np.outer(gap, gap) * (self.count * len(rows) / total)
        self.mean = self.mean + gap * (len(rows) / total)
        self.count = total

    @property
    def covariance(self) -> Floats:
        """float64 D×D, symmetric, divided by N - 1; zero for a single row."""
        return (self._squares + self._squares.T) / (2 * max(1, self.count - 1))
