"""Steps along a gradient: equal to other tools' from an equal start, exact for a known optimum, within their ball."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from medtest.core.errors import BadOutput
from medtest.relations.adversarial.projected_gradient import projected_gradient

EPSILON, STEP, STEPS = 6 / 255, 2 / 255, 5


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2), nn.Tanh(), nn.Conv2d(8, 8, 3), nn.Softplus(), nn.Flatten(), nn.LazyLinear(4)
    ).eval()


@pytest.fixture
def case() -> tuple[nn.Module, Tensor, Tensor, Tensor]:
    """Return a network, images, their labels and a start."""
    torch.manual_seed(1)
    net, images = network(), torch.rand(3, 3, 14, 14)
    net(images)
    labels = torch.tensor([0, 2, 3])
    return net, images, labels, (torch.rand_like(images) * 2 - 1) * EPSILON


def cross_entropy(labels: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda logits, rows: functional.cross_entropy(logits, labels[rows], reduction="none")


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_torchattacks_from_an_equal_start(case: Any, norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torchattacks = pytest.importorskip("torchattacks")
    net, images, labels, start = case
    epsilon, step = (EPSILON, STEP) if norm == "linf" else (0.8, 0.3)
    if norm == "linf":
        attack = torchattacks.PGD(net, eps=epsilon, alpha=step, steps=STEPS, random_start=True)
        monkeypatch.setattr(torch.Tensor, "uniform_", lambda self, low, high: self.copy_(start))
        expected = attack(images, labels)
        begin = (images + start).clamp(0, 1) - images
    else:
        attack = torchattacks.PGDL2(net, eps=epsilon, alpha=step, steps=STEPS, random_start=False)
        expected, begin = attack(images, labels), None
    monkeypatch.undo()
    result = projected_gradient(
        net, images, cross_entropy(labels), epsilon=epsilon, step=step, steps=STEPS, norm=norm, start=begin
    )
    assert torch.allclose(result.images, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_foolbox_from_the_source(case: Any, norm: str) -> None:
    foolbox = pytest.importorskip("foolbox")
    net, images, labels, _ = case
    epsilon, step = (EPSILON, STEP) if norm == "linf" else (0.8, 0.3)
    kind = foolbox.attacks.LinfPGD if norm == "linf" else foolbox.attacks.L2PGD
    attack = kind(abs_stepsize=step, steps=STEPS, random_start=False)
    model = foolbox.PyTorchModel(net, bounds=(0, 1), device="cpu")
    expected, _, _ = attack(model, images, labels, epsilons=epsilon)
    result = projected_gradient(net, images, cross_entropy(labels), epsilon=epsilon, step=step, steps=STEPS, norm=norm)
    assert torch.allclose(result.images, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_optimum_of_a_linear_function(norm: str) -> None:
    torch.manual_seed(0)
    weight, images = torch.randn(3, 6, 6), 0.5 + torch.rand(2, 3, 6, 6) / 100
    epsilon = 0.1 if norm == "linf" else 0.4
    result = projected_gradient(
        lambda x: (x * weight).flatten(1).sum(1, keepdim=True),
        images,
        lambda z, rows: z[:, 0],
        epsilon=epsilon,
        step=epsilon / 4,
        steps=6,
        norm=norm,
    )
    best = images + epsilon * (weight.sign() if norm == "linf" else weight / weight.norm())
    assert torch.allclose(result.images, best, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    epsilon=st.floats(0, 0.6),
    step=st.floats(1e-4, 0.5),
    norm=st.sampled_from(["linf", "l2"]),
    best=st.booleans(),
)
def test_it_stays_in_the_ball_and_in_the_mask(seed: int, epsilon: float, step: float, norm: str, best: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    images, weight = torch.rand(3, 3, 5, 5, generator=generator), torch.randn(3, 5, 5, generator=generator)
    within = torch.rand(3, 1, 5, 5, generator=generator) > 0.4
    start = torch.randn(3, 3, 5, 5, generator=generator)
    result = projected_gradient(
        lambda x: (x * weight).sin().flatten(1).sum(1, keepdim=True),
        images,
        lambda z, rows: z[:, 0],
        epsilon=epsilon,
        step=step,
        steps=torch.tensor([0, 1, 3]),
        norm=norm,
        start=start,
        best=best,
        within=within,
    )
    away = result.images - images
    far = away.abs().amax((1, 2, 3)) if norm == "linf" else away.flatten(1).norm(dim=1)
    assert (far <= epsilon + 1e-5).all()
    assert ((result.images >= 0) & (result.images <= 1)).all()
    assert (away.masked_select(~within.expand_as(away)) == 0).all()
    assert result.queries.tolist() == [n + best for n in (0, 1, 3)]


def test_images_of_fewer_steps_leave_and_are_what_they_would_be_alone(case: Any) -> None:
    net, images, labels, start = case
    loss = cross_entropy(labels)
    together = projected_gradient(
        net.double(),
        images.double(),
        loss,
        epsilon=torch.tensor([2.0, 4.0, 8.0]) / 255,
        step=1 / 255,
        steps=torch.tensor([1, 4, 9]),
        start=start.double(),
    )
    for row, (epsilon, steps) in enumerate(((2, 1), (4, 4), (8, 9))):
        alone = projected_gradient(
            net,
            images[row : row + 1].double(),
            cross_entropy(labels[row : row + 1]),
            epsilon=epsilon / 255,
            step=1 / 255,
            steps=steps,
            start=start[row : row + 1].double(),
        )
        assert torch.allclose(together.images[row], alone.images[0], atol=1e-12)


def test_the_best_iterate_is_no_worse_than_the_last(case: Any) -> None:
    net, images, labels, start = case
    loss, everyone = cross_entropy(labels), torch.arange(len(images))
    results = {
        best: projected_gradient(net, images, loss, epsilon=0.3, step=0.2, steps=4, start=start, best=best)
        for best in (False, True)
    }
    assert (loss(net(results[True].images), everyone) >= loss(net(results[False].images), everyone) - 1e-6).all()


def test_no_epsilon_is_the_source_and_the_network_is_left_alone(case: Any) -> None:
    net, images, labels, start = case
    result = projected_gradient(net, images, cross_entropy(labels), epsilon=0.0, step=0.1, steps=2, start=start)
    assert torch.equal(result.images, images)
    assert all(parameter.grad is None for parameter in net.parameters())


def test_shares_of_zero_gradients_are_reported() -> None:
    images = torch.full((2, 3, 4, 4), 0.5)
    half = torch.zeros(3, 4, 4)
    half[:, :2] = 1.0
    result = projected_gradient(
        lambda x: (x * half).flatten(1).sum(1, keepdim=True),
        images,
        lambda z, rows: z[:, 0],
        epsilon=0.1,
        step=0.1,
        steps=3,
    )
    assert result.zero_gradient.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("broken", ["loss", "gradient"])
def test_values_that_are_not_finite_are_reported(broken: str) -> None:
    images = torch.zeros(1, 3, 4, 4)
    loss = (lambda z, rows: z[:, 0] * torch.nan) if broken == "loss" else (lambda z, rows: z[:, 0].sqrt())
    with pytest.raises(BadOutput, match="not finite"):
        projected_gradient(lambda x: x.flatten(1).sum(1, keepdim=True), images, loss, epsilon=0.1, step=0.1, steps=2)
