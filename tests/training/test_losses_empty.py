"""The structure loss of an image without lesion."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from medtest.training.segmentation.losses import structure_loss  # noqa: E402


def test_a_smaller_false_region_is_better_and_has_a_gradient() -> None:
    """With the official smoothing of 1 the IoU term is 0.999 for all three of these regions."""
    truth = torch.zeros(1, 1, 100, 100)
    losses, gradients = [], []
    for side in (0, 10, 30, 60):
        logits = torch.full((1, 1, 100, 100), -20.0)
        logits[..., :side, :side] = 2.0
        logits.requires_grad_()
        loss = structure_loss(logits, truth, torch.ones_like(truth))
        loss.backward()
        losses.append(loss.item())
        gradients.append(logits.grad[..., :side, :side].sum().item())
    assert losses[0] == pytest.approx(0.0, abs=1e-3)
    assert losses == sorted(losses)
    # by hand: area 100 of 10,000 at p = sigmoid(2), smoothing 100: 1 - 100 / (88.08 + 100), and 1 % of BCE 2.127
    assert losses[1] == pytest.approx(1 - 100 / 188.08 + 0.02127, abs=1e-3)
    # by hand: (p(1-p) = 0.105) × 100 pixels × 100 / 188.08² of the IoU term, and 100 × 0.8808 / 10,000 of the BCE
    assert gradients[1] == pytest.approx(0.105 * 100 * 100 / 188.08**2 + 0.0088, rel=0.02)


def test_an_image_with_a_lesion_is_smoothed_by_one() -> None:
    """By hand: p = 0.5 everywhere, 4 of 16 pixels true: I = 2, U = 8 + 4 - 2 = 10, BCE = ln 2."""
    truth = torch.zeros(1, 1, 4, 4)
    truth[..., :2, :2] = 1.0
    loss = structure_loss(torch.zeros(1, 1, 4, 4), truth, torch.ones_like(truth))
    assert loss.item() == pytest.approx(0.6931 + 1 - 3 / 11, abs=1e-4)
