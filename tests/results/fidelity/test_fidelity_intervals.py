"""Intervals of FID, KID and IS: they hold what repeated draws give, and clusters count as one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from medtest.results.fidelity.measures.estimates import Estimate
from medtest.results.fidelity.measures.frechet import FrechetReference, frechet
from medtest.results.fidelity.measures.inception_score import inception_score
from medtest.results.fidelity.measures.kernel_distance import kernel_distance
from tests.results.fidelity.array_features import ArrayFeatures

Rows = np.ndarray
DRAWS, SEEDS, DIMENSION = 60, 120, 8
CLUSTERS = [f"seed {n // 2}" for n in range(2 * SEEDS)]


def _rows(rng: np.random.Generator, shift: float) -> Rows:
    """Return two alike pictures of each seed."""
    base = np.repeat(rng.normal(size=(SEEDS, DIMENSION)), 2, axis=0)
    return base + 0.3 * rng.normal(size=base.shape) + shift


def _frechet(one: Rows, two: Rows) -> Estimate:
    others = [f"other {name}" for name in CLUSTERS]
    return frechet(ArrayFeatures(one), FrechetReference(ArrayFeatures(two), others), CLUSTERS)


def _kernel(one: Rows, two: Rows) -> Estimate:
    others = [f"other {name}" for name in CLUSTERS]
    return kernel_distance(
        ArrayFeatures(one), ArrayFeatures(two), subsets=1, clusters=CLUSTERS, reference_clusters=others
    )


def _score(one: Rows, two: Rows) -> Estimate:
    return inception_score(ArrayFeatures(2 * one), splits=1, clusters=CLUSTERS)


@pytest.mark.parametrize("figure", [_frechet, _kernel, _score])
def test_intervals_hold_what_repeated_draws_give_on_average(figure: Callable[[Rows, Rows], Estimate]) -> None:
    rng = np.random.default_rng(11)
    found = [figure(_rows(rng, 0.4), _rows(rng, 0.0)) for _ in range(DRAWS)]
    centre = float(np.mean([one.value for one in found]))
    held = np.mean([one.low <= centre <= one.high for one in found])
    assert held >= 0.88  # 95 % less three standard errors of 60 draws, rounded
    spread = float(np.std([one.value for one in found], ddof=1))
    widths = np.array([one.high - one.low for one in found]) / (2 * 1.96)
    assert 0.75 * spread < widths.mean() < 2.0 * spread


def test_pictures_of_one_seed_are_no_evidence_of_their_own() -> None:
    rng = np.random.default_rng(5)
    one, two = _rows(rng, 0.4), _rows(rng, 0.0)
    clustered = _frechet(one, two)
    apart = frechet(ArrayFeatures(one), FrechetReference(ArrayFeatures(two)))
    assert clustered.value == apart.value
    assert clustered.high - clustered.low > 1.2 * (apart.high - apart.low)
    assert (clustered.clusters, apart.clusters) == (SEEDS, 2 * SEEDS)


def test_pairs_of_one_seed_move_together() -> None:
    rng = np.random.default_rng(6)
    two = _rows(rng, 0.0)
    one = two + 0.4 + 0.1 * rng.normal(size=two.shape)
    paired = frechet(ArrayFeatures(one), FrechetReference(ArrayFeatures(two), CLUSTERS), CLUSTERS)
    apart = _frechet(one, two)
    assert paired.high - paired.low < 0.5 * (apart.high - apart.low)


def test_one_cluster_has_no_interval() -> None:
    rows = ArrayFeatures(np.random.default_rng(1).normal(size=(12, 3)))
    found = frechet(rows, FrechetReference(rows, ["one"] * 12), ["one"] * 12)
    assert np.isnan(found.low) and np.isnan(found.high) and found.method == ""
    assert np.isnan(inception_score(rows, clusters=["one"] * 12).low)
    assert np.isnan(kernel_distance(rows, rows, clusters=["one"] * 12, reference_clusters=["one"] * 12).low)


def test_too_few_pictures_are_no_figure_and_no_error() -> None:
    one = ArrayFeatures(np.zeros((1, 3)))
    many = ArrayFeatures(np.random.default_rng(1).normal(size=(9, 3)))
    assert np.isnan(frechet(one, FrechetReference(many)).value)
    assert np.isnan(kernel_distance(one, many).value)
    assert np.isnan(inception_score(ArrayFeatures(np.zeros((0, 3)))).value)
    with pytest.raises(ValueError, match="two pictures"):
        FrechetReference(one)
