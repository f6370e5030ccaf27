"""Defended steps against the paper's equations, written out here: attack, losses, unchanged state of the network."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from medtest.systems.checkpoints.inputs import INPUTS
from medtest.training.classification.batches import LabelledBatch
from medtest.training.classification.families import loss_of
from medtest.training.classification.recipe import Losses, load_recipe
from medtest.training.defences.attack import as_tested, draw, start_noise
from medtest.training.defences.defence import Defence
from medtest.training.defences.step import attacked_images, defended_loss, misclassification, single_loss

PAPER = {name: Defence(name=name) for name in ("standard", "mpadvt", "maadvt")}


class Tiny(nn.Module):
    """A network in AttnMel's form (logits and two maps), with batch norm and dropout; of CheXNet's with ``logits``."""

    def __init__(self, classes=2, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.conv, self.norm = nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.BatchNorm2d(6)
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(6, classes)

    def logits(self, images):
        return self.head(self.drop(torch.tanh(self.norm(self.conv(images))).mean(dim=(2, 3)))) * 4

    def forward(self, images):
        flat = torch.full((len(images), 1, 2, 2), 0.5)
        return [self.logits(images), flat, flat]


def batch_of(count=4, side=16, classes=2, seed=1, multi=False):
    rng = np.random.default_rng(seed)
    truth = np.zeros((count, classes), np.float32)
    truth[np.arange(count), rng.integers(classes, size=count)] = 1
    if multi:
        truth = rng.integers(2, size=(count, classes)).astype(np.float32)
    return LabelledBatch(
        images=rng.integers(0, 256, (count, side, side, 3), dtype=np.uint8),
        truth=truth,
        masks=np.zeros((count, side, side), np.uint8),
        has_mask=np.zeros(count, bool),
    )


def loss_for(defence, network, family="attnmel", multi=False, gamma=None):
    compare = loss_of(family, Losses(gamma=gamma), network)
    return defended_loss(family, defence, compare, extra=None, multi=multi, precision="fp32", device="cpu")


def normalise(pixels, family):
    kind = INPUTS[family]
    return (pixels - torch.tensor(kind.mean)[:, None, None]) / torch.tensor(kind.std)[:, None, None]


def by_hand(network, family, pixels, raised, epsilon, steps, step, start):
    """Return PGD of algorithm 1, lines 9 to 11, in evaluation mode on a copy of the network."""
    copied = copy.deepcopy(network).eval()
    answer = copied.logits if family == "chexnet" else lambda images: copied(images)[0]
    now = (pixels + start).clamp(pixels - epsilon, pixels + epsilon).clamp(0, 1)
    for _ in range(steps):
        now = now.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(raised(answer(normalise(now, family))).sum(), now)
        now = now.detach() + step * torch.sign(gradient)
        now = torch.max(torch.min(now, pixels + epsilon), pixels - epsilon).clamp(0, 1)
    return now.detach()


def entropy(logits, truth):
    """Return -log of the softmax of the true class, image by image."""
    return torch.logsumexp(logits, dim=1) - logits[torch.arange(len(truth)), truth]


def tensors(batch):
    pixels = torch.from_numpy(batch.images).permute(0, 3, 1, 2).float() / 255
    return pixels, torch.from_numpy(batch.truth)


def replay_draws(defence, shape):
    """Repeat the random draws of a step after the same seed."""
    is_attacked, epsilon, steps = draw(defence)
    start = start_noise(defence, shape, epsilon) if is_attacked else torch.zeros(shape)
    return is_attacked, epsilon, steps, start


def trained_answers(network, state, pixels, random):
    """Return a copy with some state and its logits in training mode, from a given state of random numbers."""
    torch.set_rng_state(random)
    copied = copy.deepcopy(network)
    copied.load_state_dict(state)
    copied.train()
    return copied, copied(normalise(pixels, "attnmel"))[0]


@pytest.mark.parametrize("name", ["standard", "mpadvt"])
@pytest.mark.parametrize("seed", [3, 4, 5, 6])
def test_standard_and_mpadvt_are_the_family_loss_on_pgd_images(name, seed):
    network, batch, defence = Tiny().train(), batch_of(), PAPER[name]
    state = copy.deepcopy(network.state_dict())
    torch.manual_seed(seed)
    loss, parts = loss_for(defence, network, gamma=2.0)(network, batch)
    pixels, truth = tensors(batch)
    index = truth.argmax(1)
    torch.manual_seed(seed)
    is_attacked, epsilon, steps, start = replay_draws(defence, pixels.shape)
    random = torch.get_rng_state()
    before = copy.deepcopy(network)
    before.load_state_dict(state)
    shown = pixels
    if is_attacked:
        raised = lambda logits: entropy(logits, index)  # noqa: E731
        reach = epsilon / 255
        shown = by_hand(before, "attnmel", pixels, raised, reach, steps, 1 / 255, start)
        assert float((shown - pixels).abs().max()) <= reach + 1e-6
        assert parts["epsilon"] == pytest.approx(epsilon) and parts["steps"] == steps
    else:
        assert name == "mpadvt" and parts["epsilon"] == 0 and parts["steps"] == 0
    _, logits = trained_answers(network, state, shown, random)
    right = torch.exp(-entropy(logits, index))
    expected = ((1 - right) ** 2 * entropy(logits, index)).mean()  # focal, gamma 2
    assert loss.item() == pytest.approx(expected.item(), abs=1e-5)


def test_maadvt_is_equation_10_with_equation_8():
    network, batch, defence = Tiny(classes=3).train(), batch_of(classes=3), PAPER["maadvt"]
    state = copy.deepcopy(network.state_dict())
    torch.manual_seed(8)
    loss, parts = loss_for(defence, network)(network, batch)
    pixels, truth = tensors(batch)
    index = truth.argmax(1)
    torch.manual_seed(8)
    _, epsilon, steps, start = replay_draws(defence, pixels.shape)
    random = torch.get_rng_state()
    before = copy.deepcopy(network)
    before.load_state_dict(state)
    assert (epsilon, steps) == (4.0, 4)
    shown = by_hand(before, "attnmel", pixels, lambda z: entropy(z, index), 4 / 255, 4, 1 / 255, start)
    moved, attacked = trained_answers(network, state, shown, random)
    clean = moved(normalise(pixels, "attnmel"))[0]
    expected, regular = 0.0, 0.0
    for row in range(len(index)):
        p, q = torch.softmax(clean[row].double(), 0), torch.softmax(attacked[row].double(), 0)
        divergence = sum(float(p[j]) * math.log(float(p[j]) / float(q[j])) for j in range(3))
        regular += divergence * (1 - float(p[index[row]])) / len(index)
        expected += -math.log(float(q[index[row]])) / len(index)
    assert parts["misclassification"].item() == pytest.approx(regular, abs=1e-6)
    assert loss.item() == pytest.approx(expected + 6.0 * regular, abs=1e-5)


def test_the_released_loss_adds_the_margin_of_mart():
    logits = torch.tensor([[2.0, 1.0, -1.0], [0.3, 0.2, 0.1]], requires_grad=True)
    truth = torch.tensor([0, 2])
    shares = torch.softmax(logits.detach().double(), dim=1).numpy()
    expected = np.mean([-math.log(shares[0, 0]), -math.log(shares[1, 2])])
    expected += np.mean([-math.log(1.0001 - shares[0, 1]), -math.log(1.0001 - shares[1, 0])])
    assert single_loss(logits, truth, boosted=True).item() == pytest.approx(expected, abs=1e-6)
    single_loss(logits, truth, boosted=True).backward()
    assert bool(logits.grad.isfinite().all())


def test_regularisation_is_zero_for_equal_answers_and_has_gradients_through_both():
    clean = torch.randn(5, 4, requires_grad=True)
    attacked = torch.randn(5, 4, requires_grad=True)
    truth = torch.arange(5) % 4
    assert misclassification(clean, clean, truth).item() == pytest.approx(0, abs=1e-7)
    value = misclassification(clean, attacked, truth)
    value.backward()
    assert value.item() > 0 and clean.grad.abs().sum() > 0 and attacked.grad.abs().sum() > 0


def test_several_labels_are_attacked_by_the_binary_cross_entropy():
    network, batch, defence = Tiny(classes=4).train(), batch_of(classes=4, multi=True), PAPER["standard"]
    state = copy.deepcopy(network.state_dict())
    torch.manual_seed(2)
    loss, _ = loss_for(defence, network, family="chexnet", multi=True)(network, batch)
    pixels, truth = tensors(batch)
    torch.manual_seed(2)
    *_, start = replay_draws(defence, pixels.shape)
    random = torch.get_rng_state()
    before = copy.deepcopy(network)
    before.load_state_dict(state)

    def binary(logits):
        return -(truth * torch.log(torch.sigmoid(logits)) + (1 - truth) * torch.log(1 - torch.sigmoid(logits))).mean(1)

    shown = by_hand(before, "chexnet", pixels, binary, 4 / 255, 4, 1 / 255, start)
    torch.set_rng_state(random)
    before.train()
    expected = binary(before.logits(normalise(shown, "chexnet"))).mean()
    assert loss.item() == pytest.approx(expected.item(), abs=1e-5)


# --- what an attack leaves alone --------------------------------------------------------------------------------------


def test_statistics_move_by_training_and_not_by_the_attack():
    network, batch = Tiny().train(), batch_of()
    plain = copy.deepcopy(network)
    pixels, truth = tensors(batch)
    before = copy.deepcopy(network.state_dict())
    with as_tested(network), torch.enable_grad():
        network(normalise(pixels, "attnmel"))
        assert not network.training and not any(parameter.requires_grad for parameter in network.parameters())
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert network.training and all(parameter.requires_grad for parameter in network.parameters())
    loss_for(PAPER["standard"], network)(network, batch)
    # one pass in training mode, of the attacked batch, and no more
    assert network.norm.num_batches_tracked.item() == 1
    assert not torch.equal(network.norm.running_mean, before["norm.running_mean"])
    assert all(parameter.grad is None for parameter in network.parameters())
    loss_for(PAPER["maadvt"], plain)(plain, batch)
    assert plain.norm.num_batches_tracked.item() == 2  # attacked and clean


def test_frozen_parts_stay_frozen_through_an_attack_that_fails():
    network = Tiny().train()
    network.norm.eval()
    network.conv.weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match="broke"), as_tested(network):
        raise RuntimeError("broke")
    assert not network.norm.training and network.training and network.drop.training
    assert not network.conv.weight.requires_grad and network.head.weight.requires_grad


def test_watching_changes_nothing_and_is_the_same_every_time():
    network, batch = Tiny().eval(), batch_of(count=20)
    before, random = copy.deepcopy(network.state_dict()), torch.get_rng_state()
    images = [
        attacked_images(
            "attnmel", network, batch.images, batch.truth, PAPER["mpadvt"], multi=False, seed=3, device="cpu"
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(images[0], images[1])
    away = np.abs(images[0].astype(int) - batch.images.astype(int))
    assert 0 < away.max() <= 4
    assert torch.equal(random, torch.get_rng_state())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


# --- what is drawn ----------------------------------------------------------------------------------------------------


def test_mpadvt_draws_half_of_the_batches_and_the_papers_ranges():
    torch.manual_seed(0)
    attacked, levels, steps = zip(*(draw(PAPER["mpadvt"]) for _ in range(2000)), strict=True)
    assert 0.45 < np.mean(attacked) < 0.55
    epsilon = np.array(levels) / 255
    assert 0.01 <= epsilon.min() < 0.011 and 0.039 < epsilon.max() <= 0.04
    assert np.histogram(epsilon, bins=3, range=(0.01, 0.04))[0].min() > 550
    assert np.bincount(steps)[1:].tolist() == pytest.approx([400] * 5, abs=90)
    assert all(count in range(1, 6) for count in steps)


def test_standard_and_maadvt_always_draw_the_same():
    torch.manual_seed(0)
    for name in ("standard", "maadvt"):
        drawn = [draw(PAPER[name]) for _ in range(20)]
        assert drawn == [(True, 4.0, 4)] * 20


@settings(max_examples=30, deadline=None)
@given(
    low=st.floats(0, 20),
    width=st.floats(0, 20),
    fewest=st.integers(1, 9),
    more=st.integers(0, 9),
    share=st.floats(0.01, 1),
    seed=st.integers(0, 2**31),
)
def test_draws_stay_in_range_and_follow_from_the_seed(low, width, fewest, more, share, seed):
    defence = Defence(name="mpadvt", epsilon=(low, low + width), steps=(fewest, fewest + more), share=share)
    torch.manual_seed(seed)
    first = draw(defence)
    _, epsilon, steps = first
    noise = start_noise(defence, torch.Size((1, 3, 4, 4)), epsilon)
    torch.manual_seed(seed)
    assert draw(defence) == first
    assert low <= epsilon <= low + width and fewest <= steps <= fewest + more
    assert float(noise.abs().max()) <= epsilon / 255 + 1e-7


# --- presets ----------------------------------------------------------------------------------------------------------


def test_presets_hold_the_papers_and_the_released_numbers():
    multi, released = PAPER["mpadvt"], Defence(name="mpadvt", variant="released")
    assert (multi.share, multi.steps) == (0.5, (1, 5))
    assert multi.epsilon == pytest.approx((0.01 * 255, 0.04 * 255))
    assert released.steps == (1, 9) and released.step == 1.0
    melanoma = Defence(name="maadvt", variant="released")
    messidor = Defence(name="maadvt", variant="released_messidor")
    assert (melanoma.loss, melanoma.regularisation, melanoma.steps) == ("boosted", 6.0, (4, 4))
    assert melanoma.epsilon[0] / 255 == pytest.approx(0.031) and melanoma.step / 255 == pytest.approx(0.007)
    assert (messidor.loss, messidor.regularisation, messidor.steps) == ("boosted", 8.0, (1, 9))
    assert PAPER["maadvt"].loss == "cross_entropy" and PAPER["standard"].loss == "family"
    assert all(preset.whose for preset in (*PAPER.values(), released, melanoma, messidor))


def test_a_defence_adds_no_other_perturbation_by_default():
    assert load_recipe("defended").perturbed == 0.125
    assert load_recipe("defended", {"defence.name": "standard"}).perturbed == 0
    assert load_recipe("defended", {"defence.name": "standard", "perturbed": 0.5}).perturbed == 0.5


def test_recipes_without_a_defence_keep_their_digest():
    facts = load_recipe("compact").identity()
    assert "defence" not in facts and "size" not in facts
    assert facts == {k: v for k, v in load_recipe("compact").model_dump(mode="json").items() if k in facts}
    assert load_recipe("defended", {"defence.name": "maadvt"}).identity()["defence"]["regularisation"] == 6.0
