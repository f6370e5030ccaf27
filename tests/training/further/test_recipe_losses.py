"""Losses of the recipes against hand computation, the compact losses and torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from medtest.training.further.losses import (
    answers_of,
    border_weights,
    pixel_dice_loss,
    recipe_loss,
    structure_loss,
)
from medtest.training.further.recipe import Loss, Quirks
from medtest.training.segmentation import losses as compact
from medtest.training.segmentation.steps import judgement_losses


def _batch(side: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(2, 1, side, side, generator=generator)
    truth = torch.zeros(2, 1, side, side)
    truth[0, 0, 5:20, 8:30] = 1
    truth[1, 0, 25:33, 2:9] = 1
    return logits, truth


def test_border_weights_are_one_pooling():
    _, truth = _batch(90)
    pooled = functional.avg_pool2d(truth, 31, stride=1, padding=15)
    assert torch.allclose(border_weights(truth), 1 + 5 * (pooled - truth).abs(), atol=1e-5)
    for weights, mask in zip(border_weights(truth), truth, strict=True):
        compact_weights = compact.border_weights((mask[0].numpy() * 255).astype(np.uint8))
        assert np.abs(weights[0].numpy() - compact_weights).max() < 1e-5


def test_structure_loss_and_its_quirk():
    logits, truth = _batch()
    weights = border_weights(truth)
    fixed = structure_loss(logits, truth, weights, mean_cross_entropy=False)
    quirk = structure_loss(logits, truth, weights, mean_cross_entropy=True)
    entropy = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    weighted = ((weights * entropy).sum((2, 3)) / weights.sum((2, 3))).mean()
    assert (quirk - fixed).item() == pytest.approx((entropy.mean() - weighted).item(), abs=1e-6)
    probability = torch.sigmoid(logits)
    for index in range(2):
        p, m, w = probability[index], truth[index], weights[index]
        inter, union = (p * m * w).sum(), ((p + m) * w).sum()
        share = 1 - (inter + 1) / (union - inter + 1)
        single = structure_loss(logits[[index]], truth[[index]], weights[[index]], mean_cross_entropy=True)
        assert single.item() == pytest.approx((entropy[index].mean() + share).item(), abs=1e-5)


def test_pixel_dice_by_hand():
    logits = torch.tensor([[[[0.0, 2.0]]]])
    truth = torch.tensor([[[[0.0, 1.0]]]])
    p = 1 / (1 + np.exp(-2.0))
    expected = (1 - 1 / 1.5 + 1 - (2 * p + 1) / (p + 2)) / 2
    assert pixel_dice_loss(logits, truth).item() == pytest.approx(expected, abs=1e-6)


def test_double_sigmoid_is_a_sigmoid_before_the_loss():
    logits, truth = _batch()
    answers = (logits,)
    loss = Loss(map="bce_pixel_dice")
    quirk = recipe_loss(answers, truth, loss, Quirks(double_sigmoid=True), family="ssformer")
    squeezed = (torch.sigmoid(logits),)
    assert quirk.item() == pytest.approx(recipe_loss(squeezed, truth, loss, Quirks(), family="ssformer").item())
    assert quirk.item() != pytest.approx(
        recipe_loss(answers, truth, loss, Quirks(), family="ssformer").item(), abs=1e-3
    )


def test_classifications_and_the_double_softmax():
    _, truth = _batch()
    number, size = torch.tensor([[2.0, -1.0], [0.5, 0.0]]), torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
    # first mask: one box of 15 by 22 in 40 by 40 (0.206: medium); second: one box of 8 by 7 (0.035: small)
    targets = (torch.tensor([0, 0]), torch.tensor([1, 0]))
    plain = functional.cross_entropy(number, targets[0]) + functional.cross_entropy(size, targets[1])
    assert float(sum(judgement_losses((number, size), truth, double_softmax=False))) == pytest.approx(
        plain.item(), abs=1e-6
    )
    twice = functional.cross_entropy(number.softmax(1), targets[0]) + functional.cross_entropy(
        size.softmax(1), targets[1]
    )
    assert float(sum(judgement_losses((number, size), truth, double_softmax=True))) == pytest.approx(
        twice.item(), abs=1e-6
    )


def test_outputs_are_sorted_and_resized():
    logits, truth = _batch()
    maps, judgements = answers_of("tganet", (logits, torch.zeros(2, 2), torch.zeros(2, 3)))
    assert len(maps) == 1 and [tuple(judgement.shape) for judgement in judgements] == [(2, 2), (2, 3)]
    assert [len(kind) for kind in answers_of("pranet", (logits,) * 4)] == [4, 0]
    small = torch.randn(2, 1, 5, 5)
    aligned = functional.interpolate(small, size=(40, 40), mode="bilinear", align_corners=True)
    result = recipe_loss((small,), truth, Loss(map="bce_dice"), Quirks(), family="sanet")
    expected = functional.binary_cross_entropy_with_logits(aligned, truth) + compact.dice_loss(aligned, truth)
    assert result.item() == pytest.approx(expected.item(), abs=1e-6)


def test_side_maps_count_with_their_weight():
    logits, truth = _batch()
    side = torch.zeros_like(logits)
    weights = border_weights(truth)

    def total(auxiliary: float) -> float:
        loss = Loss(map="structure", auxiliary=auxiliary)
        return recipe_loss((side, logits), truth, loss, Quirks(), family="pranet").item()

    extra = structure_loss(side, truth, weights, mean_cross_entropy=False).item()
    assert total(1.0) - total(0.0) == pytest.approx(extra, abs=1e-5)
    assert total(0.5) - total(0.0) == pytest.approx(0.5 * extra, abs=1e-5)
