"""Networks that mislead an attack, or have no gradient to follow: ``strongest`` succeeds where others do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from attack_parts import ONE, SIDE, SmallProbe, crafted, logits_of, relation, seed_of
from torch.nn import functional

from medtest.core.probes import CraftCase
from medtest.relations.adversarial.strongest.passing import PassingGradients, passing_helps

LEVELS = {3: {"epsilon": 4}}
PGD = {"severities": [3], "levels": {3: {"epsilon": 4, "steps": 10, "step": 1}}, "where": "everywhere"}
WORST = {"severities": [3], "levels": LEVELS, "steps": 12, "tries": 60, "where": "everywhere"}


def weights(seed: int = 0, smooth: int = 5) -> torch.Tensor:
    """Return weights of three classes, K×3×H×W, that do not depend on mean brightness."""
    drawn_weights = torch.randn(3, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))
    drawn_weights = functional.avg_pool2d(drawn_weights, smooth, stride=1, padding=smooth // 2)
    drawn_weights[:, :, :3] = 0  # the frame
    return drawn_weights - drawn_weights.mean(dim=(1, 2, 3), keepdim=True)


def quantised(x: torch.Tensor) -> torch.Tensor:
    """Round to steps of 16 levels, plus a small slope the other way: the gradient is the slope's alone."""
    return torch.einsum("bchw,kchw->bk", torch.round(x * 255 / 16) * 16 / 255 - 0.02 * x, weights())


def cast(x: torch.Tensor) -> torch.Tensor:
    """Do the same by a cast to whole numbers."""
    return torch.einsum("bchw,kchw->bk", (x * 255 / 16 + 0.5).int().float() * 16 / 255 - 0.02 * x, weights())


class Rounding(torch.nn.Module):
    """The same as a scripted module."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weights(), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        stepped = torch.round(x * 255 / 16) * 16 / 255 - 0.02 * x
        return torch.einsum("bchw,kchw->bk", [stepped, self.weight])


def shut(x: torch.Tensor) -> torch.Tensor:
    """Return two constant classes, and one behind a rectifier that is shut on every image: no slope is near."""
    lean = x[:, :, SIDE // 2 :].mean(dim=(1, 2, 3)) - x[:, :, : SIDE // 2].mean(dim=(1, 2, 3))
    return torch.stack([lean * 0 + 1, lean * 0, 1000 * functional.relu(lean - 0.16)], dim=1)


def rooted(x: torch.Tensor) -> torch.Tensor:
    """Take the square root of pixels, some of which are 0: the gradient is infinite there."""
    return torch.einsum("bchw,kchw->bk", x.sqrt(), weights())


def indexed(x: torch.Tensor) -> torch.Tensor:
    """Look levels up in a table, which has no gradient."""
    table = torch.linspace(0, 1, 256).sqrt()
    return torch.einsum("bchw,kchw->bk", table[(x * 255).round().clamp(0, 255).long()], weights())


class Shattered(torch.autograd.Function):
    """A Python function whose backward pass is zero: such functions are not recognised."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return (x * 255).round() / 255

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 0


def smooth(x: torch.Tensor) -> torch.Tensor:
    """Apply a linear network."""
    return torch.einsum("bchw,kchw->bk", x, weights())


def shattered(x: torch.Tensor) -> torch.Tensor:
    """Do the same behind 8 bits that stop every gradient."""
    return smooth(Shattered.apply(x))


def right(probe: SmallProbe, follows: list[Any], seeds: list[Any]) -> int:
    decided = logits_of(probe, [follow.image for follow in follows]).argmax(1).tolist()
    return sum(ONE.names[row] == seed.labels[0] for row, seed in zip(decided, seeds, strict=True))


def attacked(network: Any, count: int = 8, epsilon: int = 4) -> tuple[SmallProbe, list[Any], dict[str, list[Any]]]:
    probe = SmallProbe(ONE, network)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(count)]
    follow_ups = {
        "strongest": crafted(relation("strongest", **{**WORST, "levels": {3: {"epsilon": epsilon}}}), probe, seeds)
    }
    return probe, seeds, follow_ups


@pytest.mark.parametrize("network", [quantised, cast, torch.jit.script(Rounding())], ids=["round", "cast", "script"])
def test_rounding_hides_no_answer(network: Any) -> None:
    probe, seeds, follow_ups = attacked(network)
    pgd = crafted(relation("pgd", **PGD), probe, seeds)
    assert right(probe, pgd, seeds) >= 7, "the slope beside the rounding leads the other way"
    right_count = right(probe, follow_ups["strongest"], seeds)
    origins = {follow.crafting.found_by for follow in follow_ups["strongest"]}
    if isinstance(network, torch.jit.ScriptModule):  # a program cannot be changed: only Square remains
        assert right_count < 8 and origins <= {"square", "auto_pgd", ""}
    else:
        assert right_count <= 1 and "straight_through" in origins


def test_gradients_that_pass_change_no_value() -> None:
    x = torch.rand(2, 3, 5, 5, requires_grad=True)
    for leaky in (False, True):
        for name, function, slope in (
            ("round", lambda v: (v * 9).round(), 9.0),
            ("floor", lambda v: torch.floor(v * 9), 9.0),
            ("in place", lambda v: (v * 9).round_(), 9.0),
            ("divided", lambda v: torch.div(v, 0.25, rounding_mode="floor"), 4.0),
            ("byte", lambda v: (v * 255).byte().float(), 255.0),
            ("to", lambda v: (v * 255).to(torch.int64) / 255, 1.0),
            ("threshold", lambda v: (v > 0.5).float(), 1.0),
            ("below", lambda v: (v < 0.5).to(torch.float32), -1.0),
        ):
            with PassingGradients(leaky=leaky) as mode:
                output = function(x)
            assert mode.used, name
            assert torch.equal(output.detach(), function(x.detach()).to(output.dtype)), name
            (gradient,) = torch.autograd.grad(output.sum(), x)
            assert torch.allclose(gradient, torch.full_like(x, slope)), name
    for function in (torch.relu, functional.relu, torch.tanh, torch.sigmoid, functional.relu6):
        inputs = (x * 200 - 100).detach().requires_grad_()
        with PassingGradients(leaky=True):
            output = function(inputs)
        assert torch.equal(output, function(inputs))
        (gradient,) = torch.autograd.grad(output.sum(), inputs)
        assert gradient.min() >= 0.1 - 1e-6
        with PassingGradients() as mode:
            function(inputs)
        assert not mode.used
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1), torch.nn.ReLU(inplace=True))
    with PassingGradients(leaky=True):
        output = module(x)
    assert torch.equal(output, module(x)) and torch.autograd.grad(output.sum(), x)[0].abs().min() > 0
    assert not passing_helps(SmallProbe(ONE), torch.rand(1, 3, SIDE, SIDE), leaky=False)


def test_where_units_are_shut_a_leak_is_followed() -> None:
    probe, seeds, follow_ups = attacked(shut, epsilon=8)
    pgd = crafted(relation("pgd", **{**PGD, "levels": {3: {"epsilon": 8, "steps": 10, "step": 2}}}), probe, seeds)
    assert right(probe, pgd, seeds) == 8 and pgd[0].crafting.zero_gradient == 1
    assert right(probe, follow_ups["strongest"], seeds) == 0
    assert {follow.crafting.found_by for follow in follow_ups["strongest"]} == {"leaky"}
    assert "most gradients are zero" in follow_ups["strongest"][0].crafting.note


def test_where_gradients_are_zero_a_surrogate_of_the_scores_is_followed() -> None:
    probe, seeds, follow_ups = attacked(shattered, epsilon=8)
    alone = {"severities": [3], "levels": {3: {"epsilon": 8}}, "tries": 60, "where": "everywhere"}
    square = crafted(relation("square", **alone), probe, seeds)
    origins = {follow.crafting.found_by for follow in follow_ups["strongest"]}
    assert right(probe, follow_ups["strongest"], seeds) <= right(probe, square, seeds) - 3
    assert origins == {"surrogate"}
    assert all(follow.crafting.zero_gradient == 1 for follow in follow_ups["strongest"])


@pytest.mark.parametrize(("network", "why"), [(rooted, "not finite"), (indexed, "no gradient reaches the pixels")])
def test_where_no_gradient_can_be_had_square_searches_and_says_so(network: Any, why: str) -> None:
    probe = SmallProbe(ONE, network)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(6)]
    strongest = relation("strongest", **{**WORST, "levels": {3: {"epsilon": 8}}, "tries": 120})
    follows = crafted(strongest, probe, seeds)
    assert all(why in follow.crafting.note and "Square" in follow.crafting.note for follow in follows)
    assert {follow.crafting.zero_gradient for follow in follows} == {None}
    assert right(probe, follows, seeds) <= 3
    square = crafted(
        relation("square", severities=[3], levels={3: {"epsilon": 8}}, tries=120, where="everywhere"), probe, seeds
    )
    assert right(probe, follows, seeds) <= right(probe, square, seeds)


def test_one_image_without_a_gradient_leaves_the_others_theirs() -> None:
    probe = SmallProbe(ONE, rooted)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(3)]
    bright = np.maximum(seeds[1].image, 40)
    seeds[1] = replace(seeds[1], image=bright)
    follows = crafted(relation("strongest", **WORST), probe, seeds)
    assert ["not finite" in follow.crafting.note for follow in follows] == [True, False, True]
    assert follows[1].crafting.zero_gradient == pytest.approx(0, abs=0.01)


def dropout(x: torch.Tensor) -> torch.Tensor:
    remaining = functional.dropout(x - 0.5, 0.5, training=True)
    return 3 * torch.einsum("bchw,kchw->bk", remaining, weights(smooth=1)) * 0.2


def drawn_right(probe: SmallProbe, follows: list[Any], seeds: list[Any], draws: int = 200) -> float:
    """Return the share of right answers over random draws that no attack has seen."""
    torch.manual_seed(12345)
    return sum(right(probe, follows, seeds) for _ in range(draws)) / (draws * len(seeds))


@pytest.mark.slow
def test_gradients_of_a_random_network_are_averaged_and_no_lucky_draw_ends_the_search() -> None:
    probe = SmallProbe(ONE, dropout)
    plain = SmallProbe(ONE, lambda x: 0.6 * torch.einsum("bchw,kchw->bk", x - 0.5, weights(smooth=1)))
    seeds = [seed_of(ONE, number=n, probe=plain) for n in range(10)]
    pgd = crafted(relation("pgd", **PGD), probe, seeds)
    worst = crafted(relation("strongest", **WORST), probe, seeds)
    assert drawn_right(probe, worst, seeds) <= drawn_right(probe, pgd, seeds) - 0.02
    assert {follow.crafting.note for follow in worst} == {"answers do not repeat: gradients are averaged over 8 draws"}
    assert "averaged" in {follow.crafting.found_by for follow in worst}


@pytest.mark.parametrize("name", ["pgd", "fgsm", "square", "strongest"])
def test_attacks_on_a_random_network_depend_on_no_batch_and_no_earlier_draw(name: str) -> None:
    probe = SmallProbe(ONE, dropout)
    seeds = [seed_of(ONE, number=n, labels=("odd",)) for n in range(3)]
    attack = relation(name, **{"strongest": {"steps": 2, "tries": 3}, "square": {"tries": 5}}.get(name, {}))
    cases = [
        CraftCase(seed=seed, params=attack.sample(seed, 3, np.random.default_rng(n))) for n, seed in enumerate(seeds)
    ]
    state = torch.get_rng_state()
    together = attack.craft(cases, probe)
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(77)
    for case, follow in zip(reversed(cases), reversed(together), strict=True):
        (alone,) = attack.craft([case], probe)
        assert np.array_equal(alone.image, follow.image)
        assert alone.crafting == follow.crafting


def test_the_worst_image_of_other_attacks_is_kept() -> None:
    """An image of another attack counts if it is within ε and reach, and its answer is worse."""
    probe, twin = SmallProbe(ONE, shattered), SmallProbe(ONE, smooth)
    seed = seed_of(ONE, number=1, probe=probe)

    def pgd(epsilon: int) -> Any:
        levels = {3: {"epsilon": epsilon, "steps": 10, "step": epsilon / 4}}
        return crafted(relation("pgd", **{**PGD, "levels": levels}), twin, [seed])[0].image

    near, far = pgd(2), pgd(6)
    beside = [("noise", seed.image), ("far", far), ("search", near)]
    small = {**WORST, "tries": 0, "levels": {3: {"epsilon": 2}}}
    for where, inside in (("everywhere", True), ("lesion", False)):
        strongest = relation("strongest", **{**small, "where": where})
        params = strongest.sample(seed, 3, np.random.default_rng(0))
        (alone,) = strongest.craft([CraftCase(seed=seed, params=params)], probe)
        assert alone.crafting.found_by in ("auto_pgd", None)  # no more than its random start
        (worst,) = strongest.craft([CraftCase(seed=seed, params=params, beside=beside)], probe)
        assert np.array_equal(worst.image, near if inside else alone.image)
        assert (worst.crafting.found_by == "search") == inside


# --- the smallest ε -------------------------------------------------------------------------------------------------


def linear(x: torch.Tensor) -> torch.Tensor:
    """Separate two classes by a hyperplane: the smallest ε is the margin over the sum of absolute weights."""
    torch.manual_seed(5)
    weight = torch.randn(3, SIDE, SIDE) * 0.05
    score = torch.einsum("bchw,chw->b", x - 0.5, weight)
    return torch.stack([score, -score, torch.full_like(score, -100.0)], dim=1)


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "step"), [(10, 1), (40, 0.5)])
@pytest.mark.parametrize("name", ["pgd", "strongest"])
def test_the_smallest_epsilon_of_a_linear_network_is_the_one_in_closed_form(name: str, steps: int, step: float) -> None:
    probe = SmallProbe(ONE, linear)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(8)]
    torch.manual_seed(5)
    amounts = float((torch.randn(3, SIDE, SIDE) * 0.05).abs().sum())
    level = {"epsilon": 8, "steps": steps, "step": step} if name == "pgd" else {"epsilon": 8}
    more = {} if name == "pgd" else {"steps": steps, "tries": 10}
    attack = relation(name, minimal=True, where="everywhere", severities=[4], levels={4: level}, **more)
    exact = []
    for seed in seeds:
        image = np.clip(seed.image, 16, 239)  # no clipping at 0 and 255 within ε
        exact.append(replace(seed, image=image))
    expected = [float(np.floor(abs(float(logits_of(probe, [seed.image])[0, 0])) * 255 / amounts) + 1) for seed in exact]
    assert len(set(expected)) > 1 and max(expected) <= 8
    smallest = [follow.crafting.smallest_epsilon for follow in crafted(attack, probe, exact, 4)]
    assert smallest == expected
