"""Fréchet distance between two sets of features (ACTesting, equation 15; M. Heusel et al., NeurIPS 2017).

It is FID where the features are those of Inception-v3 (2015-12-05, pool 3), and nowhere else.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from medtest.results.fidelity.features import Floats, PictureFeatures
from medtest.results.fidelity.measures.estimates import INFLUENCE, Estimate, cluster_numbers, interval_of_influence
from medtest.results.fidelity.measures.moments import Moments

_SMALLEST = 16
"""Eigenvalues below so many roundings of the largest, times the dimension, are zero."""


class FrechetReference:
    """What sets are compared with: its moments, and the root of its covariance, which is dear and taken once.

    Args:
        features: Features of the reference's pictures.
        clusters: The cluster of each; a name that a compared set has too is one cluster. None for each its own.

    Raises:
        ValueError: Fewer than two pictures.
    """

    def __init__(self, features: PictureFeatures, clusters: Sequence[Hashable] | None = None) -> None:
        if features.count < 2:
            raise ValueError("a covariance takes two pictures at least")
        self.features = features
        self.clusters = [f"reference {n}" for n in range(features.count)] if clusters is None else clusters
        self.moments = Moments.of(features)
        self.root, self.inverse = _powers(self.moments.covariance, 0.5, -0.5)


def frechet_distance(pictures: Moments, reference: Moments) -> float:
    """Return the distance, never complex: |m₁ - m₂|² + tr(S₁ + S₂ - 2 (S₁S₂)^½).

    The trace of the root is that of the symmetric (S₂^½ S₁ S₂^½)^½, whose eigenvalues are real and not negative, also
    where there are fewer pictures than dimensions.

    Raises:
        ValueError: A set has fewer than two rows.
    """
    if min(pictures.count, reference.count) < 2:
        raise ValueError("a covariance takes two pictures at least")
    (root,) = _powers(reference.covariance, 0.5)
    values = np.asarray(np.linalg.eigvalsh(_between(root, pictures.covariance)), np.float64)
    return _distance(pictures, reference, _positive(values))


def frechet(
    pictures: PictureFeatures, reference: FrechetReference, clusters: Sequence[Hashable] | None = None
) -> Estimate:
    """Return the distance with its interval.

    Args:
        pictures: Features of what was drawn.
        reference: What it is compared with.
        clusters: The cluster of each picture; None for each its own.

    Returns:
        The distance; its interval is of drawing other clusters, and says nothing of the distance's growth as N falls.
    """
    count = pictures.count
    if count < 2:
        return Estimate(value=float("nan"), count=count, warning="fewer than two pictures")
    own, other = Moments.of(pictures), reference.moments
    values, vectors = np.linalg.eigh(_between(reference.root, own.covariance))
    value = _distance(own, other, _positive(values))
    # derivatives of the trace part: I less the map that carries one covariance to the other
    root, inverse = _powers_of(values, vectors, 0.5, -0.5)
    unit = np.eye(pictures.dimension)
    slope = unit - reference.root @ inverse @ reference.root
    back = unit - reference.inverse @ root @ reference.inverse
    names = [f"picture {n}" for n in range(count)] if clusters is None else clusters
    codes, _ = cluster_numbers(names, reference.clusters)
    low, high = interval_of_influence(
        value,
        [
            (_influence(pictures, own, own.mean - other.mean, slope) / count, codes[0]),
            (_influence(reference.features, other, other.mean - own.mean, back) / other.count, codes[1]),
        ],
    )
    return Estimate(
        value=value,
        low=max(low, 0.0) if low == low else low,
        high=high,
        method=INFLUENCE if low == low else "",
        count=count,
        clusters=len(np.unique(codes[0])),
        warning=few(min(count, other.count), pictures.dimension),
    )


def few(count: int, dimension: int) -> str:
    """Return the warning about fewer pictures than dimensions, or ""."""
    if count >= dimension:
        return ""
    return f"{count:,} pictures are fewer than the {dimension:,} dimensions: compare with sets of this size alone"


def _positive(values: Floats) -> Floats:
    """Return eigenvalues with those that are rounding errors made zero."""
    limit = float(np.abs(values).max(initial=0.0)) * len(values) * np.finfo(np.float64).eps * _SMALLEST
    return np.where(values > limit, values, 0.0)


def _distance(own: Moments, other: Moments, values: Floats) -> float:
    gap = own.mean - other.mean
    traces = np.trace(own.covariance) + np.trace(other.covariance)
    return float(gap @ gap + traces - 2 * np.sqrt(values).sum())


def _between(root: Floats, covariance: Floats) -> Floats:
    middle = root @ covariance @ root
    return (middle + middle.T) / 2


def _powers(matrix: Floats, *powers: float) -> tuple[Floats, ...]:
    """Return powers of a symmetric matrix; of its zero eigenvalues none is inverted."""
    return _powers_of(*np.linalg.eigh(matrix), *powers)


def _powers_of(values: Floats, vectors: Floats, *powers: float) -> tuple[Floats, ...]:
    kept = _positive(values)
    there = kept > 0
    return tuple((vectors[:, there] * kept[there] ** power) @ vectors[:, there].T for power in powers)


def _influence(features: PictureFeatures, own: Moments, gap: Floats, slope: Floats) -> Floats:
    """Return N times by how much the distance grows with the weight of each row."""
    found = []
    level = float((slope * own.covariance).sum())
    for chunk in features.chunks():
        rows = chunk.astype(np.float64) - own.mean
        found.append(2 * rows @ gap + np.einsum("nd,nd->n", rows @ slope, rows) - level)
    return np.concatenate(found)
