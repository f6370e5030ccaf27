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


def _frechet(pictures: Rows, others_: Rows) -> Estimate:
    others = [f"other {name}" for name in CLUSTERS]
    return frechet(ArrayFeatures(pictures), FrechetReference(ArrayFeatures(others_), others), CLUSTERS)


def _kernel(pictures: Rows, others_: Rows) -> Estimate:
    others = [f"other {name}" for name in CLUSTERS]
    return kernel_distance(
        ArrayFeatures(pictures), ArrayFeatures(others_), subsets=1, clusters=CLUSTERS, reference_clusters=others
    )


def _score(pictures: Rows, others_: Rows) -> Estimate:
    return inception_score(ArrayFeatures(2 * pictures), splits=1, clusters=CLUSTERS)


@pytest.mark.parametrize("figure", [_frechet, _kernel, _score])
def test_intervals_hold_what_repeated_draws_give_on_average(figure: Callable[[Rows, Rows], Estimate]) -> None:
    rng = np.random.default_rng(11)
    estimates = [figure(_rows(rng, 0.4), _rows(rng, 0.0)) for _ in range(DRAWS)]
    centre = float(np.mean([estimate.value for estimate in estimates]))
    held = np.mean([estimate.low <= centre <= estimate.high for estimate in estimates])
    assert held >= 0.88  # 95 % less three standard errors of 60 draws, rounded
    spread = float(np.std([estimate.value for estimate in estimates], ddof=1))
    widths = np.array([estimate.high - estimate.low for estimate in estimates]) / (2 * 1.96)
    assert 0.75 * spread < widths.mean() < 2.0 * spread


def test_pictures_of_one_seed_count_as_one() -> None:
    rng = np.random.default_rng(5)
    pictures, reference = _rows(rng, 0.4), _rows(rng, 0.0)
    clustered = _frechet(pictures, reference)
    apart = frechet(ArrayFeatures(pictures), FrechetReference(ArrayFeatures(reference)))
    assert clustered.value == apart.value
    assert clustered.high - clustered.low > 1.2 * (apart.high - apart.low)
    assert (clustered.clusters, apart.clusters) == (SEEDS, 2 * SEEDS)


def test_pairs_of_one_seed_move_together() -> None:
    rng = np.random.default_rng(6)
    reference = _rows(rng, 0.0)
    pictures = reference + 0.4 + 0.1 * rng.normal(size=reference.shape)
    paired = frechet(ArrayFeatures(pictures), FrechetReference(ArrayFeatures(reference), CLUSTERS), CLUSTERS)
    apart = _frechet(pictures, reference)
    assert paired.high - paired.low < 0.5 * (apart.high - apart.low)


def test_one_cluster_has_no_interval() -> None:
    rows = ArrayFeatures(np.random.default_rng(1).normal(size=(12, 3)))
    estimate = frechet(rows, FrechetReference(rows, ["one"] * 12), ["one"] * 12)
    assert np.isnan(estimate.low) and np.isnan(estimate.high) and estimate.method == ""
    assert np.isnan(inception_score(rows, clusters=["one"] * 12).low)
    assert np.isnan(kernel_distance(rows, rows, clusters=["one"] * 12, reference_clusters=["one"] * 12).low)


def test_too_few_pictures_give_neither_a_figure_nor_an_error() -> None:
    single = ArrayFeatures(np.zeros((1, 3)))
    many = ArrayFeatures(np.random.default_rng(1).normal(size=(9, 3)))
    assert np.isnan(frechet(single, FrechetReference(many)).value)
    assert np.isnan(kernel_distance(single, many).value)
    assert np.isnan(inception_score(ArrayFeatures(np.zeros((0, 3)))).value)
    with pytest.raises(ValueError, match="two pictures"):
        FrechetReference(single)
