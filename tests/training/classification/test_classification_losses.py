from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, log_softmax

from medtest.training.classification.families import loss_of, norm_of
from medtest.training.classification.losses.attnmel import attention_dice_loss, attnmel_loss, focal_loss
from medtest.training.classification.losses.chexnet import findings_loss, positive_shares
from medtest.training.classification.recipe import Losses

# --- AttnMel ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.5, 2.0, 5.0])
def test_focal_loss_of_two_classes_is_torchvisions_of_their_difference(gamma: float) -> None:
    """An independent implementation: the softmax of two classes is the logistic function of their difference."""
    from torchvision.ops import sigmoid_focal_loss

    torch.manual_seed(1)
    logits, targets = 3 * torch.randn(40, 2).double(), torch.randint(0, 2, (40,))
    expected = sigmoid_focal_loss(
        logits[:, 1] - logits[:, 0], targets.double(), alpha=-1, gamma=gamma, reduction="mean"
    )
    assert torch.allclose(focal_loss(logits, targets, gamma=gamma), expected, rtol=1e-9)


def test_focal_loss_by_hand() -> None:
    """p = 1/4 of three classes: (3/4)^2 · log 4."""
    logits = torch.log(torch.tensor([[0.25, 0.5, 0.25]]))
    assert focal_loss(logits, torch.tensor([0])).item() == pytest.approx(0.5625 * math.log(4), rel=1e-6)


@given(st.lists(st.floats(-8, 8), min_size=6, max_size=6), st.integers(0, 2), st.integers(0, 2))
def test_focal_loss_lies_below_cross_entropy_and_is_it_without_gamma(
    values: list[float], first_class: int, second_class: int
) -> None:
    logits, targets = torch.tensor(values).double().view(2, 3), torch.tensor([first_class, second_class])
    entropy = -log_softmax(logits.numpy(), axis=1)[[0, 1], [first_class, second_class]].mean()
    assert focal_loss(logits, targets, gamma=0.0).item() == pytest.approx(entropy, abs=1e-9)
    assert 0 <= focal_loss(logits, targets).item() <= entropy + 1e-12


def test_a_certain_answer_has_a_finite_gradient() -> None:
    logits = torch.tensor([[200.0, -200.0], [-200.0, 200.0]], requires_grad=True)
    loss = focal_loss(logits, torch.tensor([0, 0]))
    loss.backward()
    assert loss.item() == pytest.approx(200.0)
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


def test_dice_of_attention() -> None:
    """A mask that covers half of the left places, weights of one on the left: 2 · 1 / (2 + 1)."""
    weights = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]])
    mask = torch.zeros(1, 1, 4, 4)
    mask[..., :, 0] = 1
    assert attention_dice_loss(weights, mask).item() == pytest.approx(1 - 2 / 3)
    assert attention_dice_loss(weights, torch.nn.functional.interpolate(weights, scale_factor=2)).item() == 0
    assert attention_dice_loss(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 4, 4)).item() == 1


def test_attnmels_loss_is_the_sum_of_its_parts() -> None:
    torch.manual_seed(2)
    logits, targets = torch.randn(3, 2), torch.tensor([0, 1, 1])
    maps = [torch.rand(3, 1, 8, 8), torch.rand(3, 1, 4, 4)]
    masks = (torch.rand(3, 1, 32, 32) > 0.5).float()
    plain = attnmel_loss([logits, *maps], targets)
    guided = attnmel_loss([logits, *maps], targets, masks)
    dice = [attention_dice_loss(attention, masks).item() for attention in maps]
    assert plain.item() == pytest.approx(focal_loss(logits, targets).item())
    assert guided.item() - plain.item() == pytest.approx(0.001 * dice[0] + 0.01 * dice[1], abs=1e-6)
    entropy = torch.nn.functional.cross_entropy(logits, targets)
    assert attnmel_loss([logits, *maps], targets, gamma=None).item() == pytest.approx(entropy.item())


# --- Inception -------------------------------------------------------------------------------------------------------


def test_l1_norm_is_the_sum_of_absolute_values() -> None:
    layer = torch.nn.Linear(5, 3)
    expected = sum(np.abs(value.numpy()).sum() for value in layer.state_dict().values())
    norm = norm_of(Losses(l1=0.5), layer)
    assert norm is not None and norm().item() == pytest.approx(0.5 * expected, rel=1e-6)
    assert norm_of(Losses(), layer) is None


def test_inceptions_loss_is_cross_entropy_of_the_main_head_and_the_l1_norm() -> None:
    torch.manual_seed(3)
    main, side, targets = torch.randn(4, 4), torch.randn(4, 4), torch.tensor([0, 3, 1, 2])
    network = torch.nn.Linear(10, 1, bias=False)
    torch.nn.init.constant_(network.weight, -2.0)
    entropy = -log_softmax(main.numpy(), axis=1)[np.arange(4), targets.numpy()].mean()
    for l1, outputs in ((0.0, main), (1e-5, (main, side))):
        loss = loss_of("inceptionv3_dr", Losses(l1=l1), network)(outputs, targets, None, None)
        assert loss.item() == pytest.approx(entropy + 20 * l1, rel=1e-6)


def test_the_l1_norm_pulls_every_parameter_towards_zero() -> None:
    network = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[2.0, -3.0]]))
    loss_of("inceptionv3_dr", Losses(l1=0.01), network)(torch.zeros(1, 4), torch.tensor([0]), None, None).backward()
    assert network.weight.grad is not None
    assert network.weight.grad[0].tolist() == pytest.approx([0.01, -0.01])


# --- CheXNet ---------------------------------------------------------------------------------------------------------


def test_findings_loss_is_the_mean_binary_cross_entropy() -> None:
    torch.manual_seed(4)
    logits, truth = 3 * torch.randn(6, 14), (torch.rand(6, 14) > 0.7).float()
    p, y = expit(logits.double().numpy()), truth.numpy()
    expected = -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()
    assert findings_loss(logits, truth).item() == pytest.approx(expected, rel=1e-5)
    assert findings_loss(logits, truth).item() == pytest.approx(
        torch.nn.functional.binary_cross_entropy(logits.sigmoid(), truth).item(), rel=1e-4
    )


def test_findings_loss_weighs_the_rare_state_more() -> None:
    """Equation 1 of the paper: w+ = share of absent, w- = share of present."""
    logits, truth = torch.tensor([[0.7, -1.2]]), torch.tensor([[1.0, 0.0]])
    share = torch.tensor([0.1, 0.3])
    expected = -(0.9 * math.log(expit(0.7)) + 0.3 * math.log(1 - expit(-1.2))) / 2
    assert findings_loss(logits, truth, share).item() == pytest.approx(expected, rel=1e-6)


def test_shares_of_findings_stay_off_zero_and_one() -> None:
    truth = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 0, 0]])
    assert positive_shares(truth).tolist() == pytest.approx([0.99, 0.25, 0.01])
