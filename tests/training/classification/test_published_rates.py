"""Rates of published trainings, epoch by epoch, as their code sets them."""

from __future__ import annotations

import pytest

from medtest.training.classification.recipes import load_recipe
from medtest.training.further.schedule import RateFactors


def rate(recipe: str, epoch: int) -> float:
    """Return the rate in the middle of an epoch, counted from 0."""
    found = load_recipe(recipe)
    steps = RateFactors(found, steps=7 * 100, steps_per_epoch=7)
    return found.optimizer.rate * steps.factor(7 * epoch + 3)


@pytest.mark.parametrize(("epochs", "expected"), [(range(10), 0.01), (range(10, 20), 0.001), (range(20, 100), 0.0001)])
def test_inception_of_messidor(epochs: range, expected: float) -> None:
    """M. Xu et al., Messidor/main.py: below epoch 10, below epoch 20, later; its epochs are counted from 0."""
    assert [rate("inceptionv3_dr", epoch) for epoch in epochs] == pytest.approx([expected] * len(epochs))


def test_attnmel() -> None:
    """A tenth every ten epochs."""
    assert [rate("attnmel", epoch) for epoch in (0, 9, 10, 19, 20, 49)] == pytest.approx(
        [0.01, 0.01, 0.001, 0.001, 1e-4, 1e-6]
    )
