"""Fréchet distance between two sets of features (ACTesting, equation 15; M. Heusel et al., NeurIPS 2017).

It is FID only if the features are those of Inception-v3 (2015-12-05, pool 3).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from medtest.results.fidelity.features import Floats, PictureFeatures
from medtest.results.fidelity.measures.estimates import INFLUENCE, Estimate, cluster_numbers, interval_of_influence
from medtest.results.fidelity.measures.moments import Moments

_SMALLEST = 16
"""Factor of the threshold below which eigenvalues are zero, in roundings of the largest, times the dimension."""


class FrechetReference:
    """Reference set: its moments and the root of its covariance, which is expensive and computed once.

    Args:
        features: Features of the reference pictures.
        clusters: The cluster of each; a name that also occurs in a compared set is one cluster. None if each picture is
            its own cluster.

    Raises:
        ValueError: Fewer than two pictures.
    """

    def __init__(self, features: PictureFeatures, clusters: Sequence[Hashable] | None = None) -> None:
        if features.count < 2:
            raise ValueError("a covariance needs at least two pictures")
        self.features = features
        self.clusters = [f"reference {n}" for n in range(features.count)] if clusters is None else clusters
        self.moments = Moments.of(features)
        self.root, self.inverse = _powers(self.moments.covariance, 0.5, -0.5)


def frechet(
    pictures: PictureFeatures, reference: FrechetReference, clusters: Sequence[Hashable] | None = None
) -> Estimate:
    """Return the distance |m₁ - m₂|² + tr(S₁ + S₂ - 2 (S₁S₂)^½) with its interval; it is always real.

    The trace of the root is that of the symmetric (S₂^½ S₁ S₂^½)^½, whose eigenvalues are real and not negative, even
    with fewer pictures than dimensions.

    Args:
        pictures: Features of the generated pictures.
        reference: The reference set.
        clusters: The cluster of each picture; None if each is its own.

    Returns:
        The distance; its interval covers the choice of clusters, not the growth of the distance as N falls.
    """
    count = pictures.count
    if count < 2:
        return Estimate(value=float("nan"), count=count, warning="fewer than two pictures")
    moments, reference_moments = Moments.of(pictures), reference.moments
    values, vectors = np.linalg.eigh(_between(reference.root, moments.covariance))
    value = _distance(moments, reference_moments, _positive(values))
    # Derivatives of the trace part: I minus the map from one covariance to the other.
    root, inverse = _powers_of(values, vectors, 0.5, -0.5)
    unit = np.eye(pictures.dimension)
    slope = unit - reference.root @ inverse @ reference.root
    back = unit - reference.inverse @ root @ reference.inverse
    names = [f"picture {n}" for n in range(count)] if clusters is None else clusters
    codes, _ = cluster_numbers(names, reference.clusters)
    low, high = interval_of_influence(
        value,
        [
            (_influence(pictures, moments, moments.mean - reference_moments.mean, slope) / count, codes[0]),
            (
                _influence(reference.features, reference_moments, reference_moments.mean - moments.mean, back)
                / reference_moments.count,
                codes[1],
            ),
        ],
    )
    return Estimate(
        value=value,
        low=max(low, 0.0) if low == low else low,
        high=high,
        method=INFLUENCE if low == low else "",
        count=count,
        clusters=len(np.unique(codes[0])),
        warning=few(min(count, reference_moments.count), pictures.dimension),
    )


def few(count: int, dimension: int) -> str:
    """Return the warning about fewer pictures than dimensions, or ""."""
    if count >= dimension:
        return ""
    return f"{count:,} pictures are fewer than the {dimension:,} dimensions: compare only with sets of this size"


def _positive(values: Floats) -> Floats:
    """Return eigenvalues with rounding errors set to zero."""
    limit = float(np.abs(values).max(initial=0.0)) * len(values) * np.finfo(np.float64).eps * _SMALLEST
    return np.where(values > limit, values, 0.0)


def _distance(moments: Moments, reference: Moments, values: Floats) -> float:
    gap = moments.mean - reference.mean
    traces = np.trace(moments.covariance) + np.trace(reference.covariance)
    return float(gap @ gap + traces - 2 * np.sqrt(values).sum())


def _between(root: Floats, covariance: Floats) -> Floats:
    middle = root @ covariance @ root
    return (middle + middle.T) / 2


def _powers(matrix: Floats, *powers: float) -> tuple[Floats, ...]:
    """Return powers of a symmetric matrix; zero eigenvalues are not inverted."""
    return _powers_of(*np.linalg.eigh(matrix), *powers)


def _powers_of(values: Floats, vectors: Floats, *powers: float) -> tuple[Floats, ...]:
    positive = _positive(values)
    nonzero = positive > 0
    return tuple((vectors[:, nonzero] * positive[nonzero] ** power) @ vectors[:, nonzero].T for power in powers)


def _influence(features: PictureFeatures, moments: Moments, gap: Floats, slope: Floats) -> Floats:
    """Return N times the derivative of the distance with respect to the weight of each row."""
    influences = []
    level = float((slope * moments.covariance).sum())
    for chunk in features.chunks():
        rows = chunk.astype(np.float64) - moments.mean
        influences.append(2 * rows @ gap + np.einsum("nd,nd->n", rows @ slope, rows) - level)
    return np.concatenate(influences)
