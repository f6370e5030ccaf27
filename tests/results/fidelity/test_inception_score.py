"""The inception score with a temperature, and the temperature of the least negative log-likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.results.fidelity.features import Chosen
from medtest.results.fidelity.measures.inception_score import fit_temperature, inception_score, negative_log_likelihood
from tests.results.fidelity.array_features import ArrayFeatures


def _draw_scores(temperature: float, count: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Return scores whose classes are drawn at a temperature."""
    rng = np.random.default_rng(8)
    scores = 3 * rng.normal(size=(count, 5))
    labels = np.argmax(scores / temperature + rng.gumbel(size=scores.shape), axis=1)
    return scores, labels


@pytest.mark.parametrize("true", [0.6, 1.0, 2.2])
def test_the_temperature_that_labels_were_drawn_at_is_found(true: float) -> None:
    scores, labels = _draw_scores(true)
    temperature = fit_temperature(scores, labels)
    assert temperature == pytest.approx(true, rel=0.08)
    best = negative_log_likelihood(scores, labels, temperature)
    assert all(negative_log_likelihood(scores, labels, temperature * other) > best for other in (0.97, 1.03))


def test_the_temperature_matches_scipy() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    scores, labels = _draw_scores(1.4, 500)
    minimum = optimize.minimize_scalar(
        lambda log: negative_log_likelihood(scores, labels, float(np.exp(log))), bounds=(-3, 3), method="bounded"
    )
    assert fit_temperature(scores, labels) == pytest.approx(float(np.exp(minimum.x)), rel=1e-3)


def test_scores_that_no_temperature_fits_give_a_warning() -> None:
    sure = 10 * np.eye(4)
    with pytest.raises(ValueError, match="no temperature"):
        fit_temperature(sure, np.arange(4))
    with pytest.raises(ValueError, match="do not match"):
        fit_temperature(sure, np.arange(3))
    with pytest.raises(ValueError, match="label"):
        fit_temperature(sure, np.array([0, 1, 2, 4]))


@given(st.integers(2, 12), st.integers(0, 1000))
def test_scores_of_identical_pictures_and_of_certain_classes(classes: int, seed: int) -> None:
    alike = np.tile(np.random.default_rng(seed).normal(size=classes), (30, 1))
    assert inception_score(ArrayFeatures(alike)).value == pytest.approx(1.0)
    sure = np.tile(500 * np.eye(classes), (10, 1))
    score = inception_score(ArrayFeatures(sure), splits=10, shuffle=False)
    assert score.value == pytest.approx(classes)
    assert score.spread == pytest.approx(0.0, abs=1e-9)


def test_a_lower_temperature_sharpens_and_a_temperature_of_zero_is_refused() -> None:
    scores = ArrayFeatures(np.random.default_rng(2).normal(size=(200, 6)))
    values = [inception_score(scores, temperature=t).value for t in (2.0, 1.0, 0.5)]
    assert values == sorted(values)
    with pytest.raises(ValueError, match="above 0"):
        inception_score(scores, temperature=0.0)


def test_a_temperature_divides_the_scores() -> None:
    scores = np.random.default_rng(2).normal(size=(200, 6))
    at = inception_score(ArrayFeatures(scores), temperature=0.9091363549)
    assert at.value == pytest.approx(inception_score(ArrayFeatures(scores / 0.9091363549)).value, rel=1e-12)


def test_few_pictures_a_split_are_warned_of() -> None:
    scores = ArrayFeatures(np.random.default_rng(2).normal(size=(50, 6)))
    assert "5 pictures per split are fewer than the 6 classes" in inception_score(scores).warning
    assert inception_score(scores, splits=5).warning == ""
    assert inception_score(Chosen(scores, np.arange(3))).count == 3
