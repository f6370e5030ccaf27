"""Losses of the two capsule endoscopy networks against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special

from medtest.systems.classification.networks.agdn import AGDNOutputs, inputs_of
from medtest.systems.pytorch import networks
from medtest.training.classification.losses.agdn import (
    DEFORMATION,
    agdn_loss,
    classifier_losses,
    consistency_losses,
)
from medtest.training.classification.losses.dsinet import dice_losses, dsinet_loss, interaction_loss

Array = NDArray[np.float64]


def _outputs(count: int, seed: int) -> AGDNOutputs:
    rng = np.random.default_rng(seed)
    logits = [torch.from_numpy(2 * rng.standard_normal((count, 3))) for _ in range(3)]
    maps = [torch.from_numpy(rng.uniform(size=(count, 1, 8, 8))) for _ in range(2)]
    for tensor in (*logits, *maps):
        tensor.requires_grad_()
    return AGDNOutputs(*logits, *maps)


def _numbers(*tensors: torch.Tensor) -> list[Array]:
    return [tensor.detach().numpy() for tensor in tensors]


def test_agdns_cross_entropies_match_numpy() -> None:
    outputs, truth = _outputs(5, 1), torch.tensor([0, 1, 2, 1, 0])
    got = classifier_losses(outputs, truth, smoothing=0.1)
    for loss, logits in zip(got, _numbers(*outputs[:3]), strict=True):
        target = 0.9 * np.eye(3)[truth.numpy()] + 0.1 / 3
        expected = -(target * special.log_softmax(logits, axis=1)).sum(axis=1).mean()
        assert abs(loss.item() - expected) < 1e-12


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_agdns_consistency_matches_numpy(seed: int) -> None:
    outputs = _outputs(12, seed)
    truth = torch.from_numpy(np.random.default_rng(seed).integers(0, 3, 12))
    got1, got2 = consistency_losses(outputs, truth)
    first, second, _, warped, attention = _numbers(*outputs)
    p1, p2 = special.softmax(first, axis=1), special.softmax(second, axis=1)
    wanted1 = wanted2 = 0.0
    for i, y in enumerate(truth.tolist()):
        if y == 0:
            continue
        apart = np.sqrt(((warped[i] - attention[i]) ** 2).sum())
        wanted1 += apart / 12
        if p1[i].argmax() == y and p1[i, y] > max(p2[i, y], 0.5):
            wanted2 += apart / 12
    assert abs(got1.item() - wanted1) < 1e-12
    assert abs(got2.item() - wanted2) < 1e-12


def test_each_branch_is_drawn_by_its_own_consistency_alone() -> None:
    outputs, truth = _outputs(40, 3), torch.ones(40, dtype=torch.int64)
    first, second = consistency_losses(outputs, truth)
    first.backward(retain_graph=True)
    assert outputs.warped.grad is not None and outputs.attention.grad is None
    outputs.warped.grad = None
    second.backward()
    assert outputs.attention.grad is not None and outputs.warped.grad is None
    assert outputs.first.grad is None and outputs.second.grad is None


def test_agdns_variants_differ_by_half_the_consistency() -> None:
    outputs, truth = _outputs(9, 4), torch.tensor([0, 1, 2] * 3)
    released = agdn_loss(outputs, truth, deformation=DEFORMATION["released"])
    paper = agdn_loss(outputs, truth, deformation=DEFORMATION["paper"])
    assert torch.allclose(released, sum(classifier_losses(outputs, truth)))  # type: ignore[arg-type]
    assert torch.allclose(paper - released, 0.5 * sum(consistency_losses(outputs, truth)))  # type: ignore[arg-type]
    assert paper > released
    assert torch.allclose(agdn_loss(outputs, truth), released), "as released by default"


def test_agdns_equal_maps_give_a_finite_gradient() -> None:
    outputs = _outputs(2, 5)
    outputs = outputs._replace(attention=outputs.warped.detach().clone().requires_grad_())
    agdn_loss(outputs, torch.tensor([1, 2]), deformation=0.5).backward()
    assert outputs.warped.grad is not None and torch.isfinite(outputs.warped.grad).all()


@pytest.mark.slow
def test_a_step_of_agdn_lowers_its_loss() -> None:
    torch.manual_seed(1)
    network = networks.make(networks.COMPACT["agdn"]).train()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    images, truth = torch.rand(2, 3, 128, 128), torch.tensor([0, 1])
    losses = []
    for _ in range(3):
        loss = agdn_loss(network(*inputs_of(images)), truth, deformation=0.5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


# -------------------------------------------------------------------------------------------------------------- DSI-Net


def _maps(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    masks = (rng.uniform(size=(count, 1, 6, 8)) > 0.6).astype(float)
    masks[0] = 0
    return torch.from_numpy(2 * rng.standard_normal((count, 2, 6, 8))), torch.from_numpy(masks)


def test_dsinets_dice_matches_numpy() -> None:
    logits, masks = _maps(4, 2)
    shares = special.softmax(logits.numpy(), axis=1)
    for i, got in enumerate(dice_losses(logits, masks).tolist()):
        lesion = masks[i, 0].numpy()
        expected = 0.0
        for share, truth in ((shares[i, 0], 1 - lesion), (shares[i, 1], lesion)):
            expected += (1 - 2 * (share * truth).sum() / (share.sum() + truth.sum() + 1e-5)) / 2
        assert abs(got - expected) < 1e-12
    perfect = torch.cat([1 - masks, masks], dim=1) * 60 - 30
    assert (dice_losses(perfect, masks)[1:] < 1e-6).all()
    assert abs(dice_losses(perfect, masks)[0].item() - 0.5) < 1e-6, "an empty mask's lesion term is 1"


@pytest.mark.parametrize("pooling", ["released", "mean"])
@pytest.mark.parametrize("seed", range(6))
def test_dsinets_interaction_matches_numpy(pooling: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = rng.standard_normal((9, 3))
    maps = _maps(9, seed)[0].numpy() + 3 * rng.standard_normal((9, 2, 1, 1))
    truth = rng.integers(0, 3, 9)
    total, counted = 0.0, 0
    for i in range(9):
        folded = np.array([classes[i, 0], classes[i, 1] + classes[i, 2]])
        summed = special.logsumexp(maps[i], axis=(1, 2))
        pooled = summed / 48 if pooling == "released" else np.log(np.exp(maps[i]).mean(axis=(1, 2)))
        p, q = special.softmax(folded), special.softmax(pooled)
        if (p[0] > p[1]) == (truth[i] == 0):
            total += special.rel_entr(p, q).sum()
            counted += 1
        if (q[0] > q[1]) == (truth[i] == 0):
            total += special.rel_entr(q, p).sum()
            counted += 1
    assert 0 < counted < 18
    got = interaction_loss(
        torch.from_numpy(classes),
        torch.from_numpy(maps),
        torch.from_numpy(truth),
        pooling=pooling,  # type: ignore[arg-type]
    )
    assert abs(got.item() - total / 2 / 9) < 1e-6


def test_the_released_pooling_leaves_large_maps_undecided() -> None:
    """The reason for the variant's name: a sure map that agrees with the classes costs as much as an undecided one."""
    classes, truth = torch.tensor([[0.0, 2.0, 2.0]]), torch.tensor([1])
    sure = torch.cat([torch.full((1, 1, 128, 128), -8.0), torch.full((1, 1, 128, 128), 8.0)], dim=1)
    undecided = torch.zeros(1, 2, 128, 128)
    with_sure, without = (interaction_loss(classes, maps, truth) for maps in (sure, undecided))
    assert abs(with_sure - without) < 0.01
    assert interaction_loss(classes, sure, truth, pooling="mean") < with_sure / 2


def test_dsinets_loss_is_the_sum_of_its_parts() -> None:
    coarse, masks = _maps(4, 6)
    fine = _maps(4, 7)[0]
    classes = torch.from_numpy(np.random.default_rng(8).standard_normal((4, 3)))
    truth = torch.tensor([0, 1, 2, 1])
    entropy = -special.log_softmax(classes.numpy(), axis=1)[np.arange(4), truth].mean()
    dice = dice_losses(coarse, masks) + dice_losses(fine, masks)
    both = interaction_loss(classes, fine, truth).item()
    got = dsinet_loss((coarse, fine, classes), truth, masks)
    assert abs(got.item() - (entropy + dice.mean().item() + 0.05 * both)) < 1e-9
    has_mask = torch.tensor([True, False, True, False])
    got = dsinet_loss((coarse, fine, classes), truth, masks, has_mask, segmentation=2.0, interaction=0.0)
    assert abs(got.item() - (entropy + 2 * (dice[0] + dice[2]).item() / 2)) < 1e-9
    nothing = dsinet_loss((coarse, fine, classes), truth, masks, torch.zeros(4, dtype=torch.bool), interaction=0.0)
    assert abs(nothing.item() - entropy) < 1e-9


def test_a_step_of_dsinet_lowers_its_loss() -> None:
    torch.manual_seed(2)
    network = networks.make(networks.COMPACT["dsinet"]).train()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    images, truth = torch.rand(3, 3, 96, 96), torch.tensor([0, 1, 2])
    masks = torch.zeros(3, 1, 96, 96)
    masks[1:, :, 20:50, 30:70] = 1
    losses = []
    for step in range(6):
        torch.manual_seed(step)
        loss = dsinet_loss(network(images), truth, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
