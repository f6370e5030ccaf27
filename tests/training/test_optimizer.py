"""Learning rates step by step, against the formulas of the recipes, and rates of parameter groups."""

from __future__ import annotations

import math

import pytest
import torch

from medtest.training.classification import recipe as classification
from medtest.training.engine.optimizer import make_optimizer, make_scheduler
from medtest.training.further import recipe as segmentation
from medtest.training.settings.options import SegmentationOptions
from medtest.training.settings.recipe import (
    ConstantRate,
    Cosine,
    Milestones,
    Optimizer,
    Plateau,
    Poly,
    Recipe,
    Schedule,
)
from medtest.training.settings.recipe_files import names_in


class Two(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bkbone = torch.nn.Conv2d(3, 4, 1)
        self.head = torch.nn.Conv2d(4, 1, 1)


def factors(schedule: Schedule, *, steps: int, epoch: int, many: int | None = None, backbone: bool = False):
    """Return the rate of each step over the highest one, read from the optimizer at that step."""
    optimizer_settings = Optimizer(name="sgd", rate=0.3, backbone_rate=0.03 if backbone else None)
    optimizer = make_optimizer(Two(), optimizer_settings)
    scheduler = make_scheduler(optimizer, schedule, steps=steps, steps_per_epoch=epoch)
    rates = []
    for _ in range(many or steps):
        rates.append([group["lr"] / group["initial_lr"] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    assert all(rate == pytest.approx(row[0], rel=1e-12) for row in rates for rate in row)
    return [row[0] for row in rates]


def formula(schedule: Schedule, step: int, *, steps: int, epoch: int) -> float:
    """Return the factor that a recipe states for a step, in closed form."""
    if isinstance(schedule, Cosine):
        if step < schedule.warmup_steps:
            return (step + 1) / schedule.warmup_steps
        done = (step - schedule.warmup_steps) / (steps - schedule.warmup_steps)
        return schedule.last + (1 - schedule.last) * (1 + math.cos(math.pi * done)) / 2
    if isinstance(schedule, Poly):
        return (1 - step / steps) ** schedule.power
    if isinstance(schedule, Milestones):
        return schedule.factor ** sum(step // epoch + 1 >= start for start in schedule.at)
    assert isinstance(schedule, ConstantRate)
    warm = schedule.warmup_epochs * epoch
    if step < warm:
        return (step + 1) / warm
    return schedule.factor ** (step // epoch // schedule.every) if schedule.every else 1.0


RECIPES: list[Recipe] = [
    *(segmentation.load_recipe(name) for name in names_in(segmentation.FOLDER)),
    *(classification.load_recipe(name) for name in names_in(classification.FOLDER)),
    SegmentationOptions(network="pranet").recipe(),
    SegmentationOptions(network="sanet", warmup=0, last_rate=0.3).recipe(),
]
STEADY = [recipe for recipe in RECIPES if not isinstance(recipe.schedule, Plateau)]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", STEADY, ids=lambda recipe: recipe.name)
@pytest.mark.parametrize("backbone", [False, True])
def test_rates_match_the_recipe(recipe: Recipe, backbone: bool) -> None:
    epoch = 3
    steps = recipe.steps_of(epoch)
    many = min(steps, 2000)
    rates = factors(recipe.schedule, steps=steps, epoch=epoch, many=many, backbone=backbone)
    expected = [formula(recipe.schedule, step, steps=steps, epoch=epoch) for step in range(many)]
    assert rates == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "epochs"),
    [
        ("sanet", {1: 1, 63: 1, 64: 0.5, 95: 0.5, 96: 0.25, 128: 0.25}),
        ("pranet", {1: 1, 19: 1}),  # the decay of every 50 epochs is never reached
        ("ssformer", {2: 1, 200: 1, 201: 0.1, 401: 0.01}),
        ("agdn", {59: 1, 60: 0.1}),
        ("attnmel", {1: 1, 10: 1, 11: 0.1, 20: 0.1, 21: 0.01, 50: 1e-4}),
        # M. Xu et al., Messidor/main.py: below epoch 10, below epoch 20, later; its epochs are counted from 0.
        ("inceptionv3_dr", {1: 1, 10: 1, 11: 0.1, 20: 0.1, 21: 0.01, 100: 0.01}),
        ("dsinet", {1: 1, 101: 0.5**0.9}),
    ],
)
def test_published_rates_fall_at_published_epochs(name: str, epochs: dict[int, float]) -> None:
    room = segmentation if name in names_in(segmentation.FOLDER) else classification
    recipe = room.load_recipe(name)
    rates = factors(recipe.schedule, steps=recipe.steps_of(7), epoch=7, many=7 * max(epochs))
    assert {epoch: rates[7 * (epoch - 1)] for epoch in epochs} == pytest.approx(epochs)


def test_a_warm_up_begins_above_zero() -> None:
    rates = factors(segmentation.load_recipe("ssformer").schedule, steps=10**6, epoch=8, many=10)
    assert rates[:9] == pytest.approx([*(step / 8 for step in range(1, 9)), 1.0])
    cosine = factors(segmentation.load_recipe("compact").schedule, steps=200, epoch=50)
    assert (cosine[0], cosine[20]) == (pytest.approx(1 / 20), pytest.approx(1.0))
    assert cosine[-1] == pytest.approx(0.02, abs=1e-3)


def test_a_plateau_keeps_falling_and_resumes_from_its_state() -> None:
    schedule = Plateau(kind="plateau", patience=2, factor=0.1)
    losses = [1.0, 0.9, 0.95, 0.92, 0.91, 0.90, 0.89, 0.89, 0.889999, 0.8899, 0.9, 0.7, 0.71, 0.72, 0.73, 0.74]
    rates, state = [], None
    for loss in losses:
        optimizer = make_optimizer(Two(), Optimizer(name="sgd", rate=1e-8))
        scheduler = make_scheduler(optimizer, schedule, steps=100, steps_per_epoch=1)
        if state is not None:
            optimizer.load_state_dict(state[0])
            scheduler.load_state_dict(state[1])
        scheduler.step(loss)
        rates.append(optimizer.param_groups[0]["lr"])
        state = optimizer.state_dict(), scheduler.state_dict()
    # By hand: 0.95, 0.92, 0.91 are three without a gain on 0.9, and 0.71, 0.72, 0.73 on 0.7; 0.889999 is none on 0.89.
    expected = [1e-8] * 4 + [1e-9] * 10 + [1e-10] * 2
    assert rates == pytest.approx(expected, rel=1e-12)


def test_encoders_and_heads_have_their_own_rates() -> None:
    optimizer = make_optimizer(Two(), segmentation.load_recipe("sanet").optimizer)
    assert sorted(group["lr"] for group in optimizer.param_groups) == [0.04, 0.4]
    assert isinstance(optimizer, torch.optim.SGD)
    groups = make_optimizer(Two(), segmentation.load_recipe("compact").optimizer).param_groups
    assert sorted((group["weight_decay"], len(group["params"])) for group in groups) == [(0.0, 2), (0.01, 2)]
