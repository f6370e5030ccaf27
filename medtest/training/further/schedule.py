"""Optimizers of the recipes and how their rate changes, with a state that a resumed training goes on from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

import torch
from torch import nn

from medtest.training.further.networks import ENCODERS
from medtest.training.further.recipe import Cosine, Milestones, Optimizer, Plateau, Poly, Schedule


def make_optimizer(network: nn.Module, how: Optimizer) -> torch.optim.Optimizer:
    """Return the optimizer of a recipe; each group keeps its own highest rate under ``top``.

    Args:
        network: Whose parameters it moves.
        how: The recipe's.
    """
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        inner = how.backbone_rate is not None and name.startswith(ENCODERS)
        rate = how.backbone_rate if inner and how.backbone_rate is not None else how.rate
        decays = how.decay_all or parameter.ndim > 1
        groups.setdefault((rate, how.decay if decays else 0.0), []).append(parameter)
    listed: Iterable[dict[str, Any]] = [
        {"params": members, "lr": rate, "top": rate, "weight_decay": decay} for (rate, decay), members in groups.items()
    ]
    if how.name == "sgd":
        return torch.optim.SGD(listed, lr=how.rate, momentum=how.momentum, nesterov=how.nesterov)
    kind = torch.optim.Adam if how.name == "adam" else torch.optim.AdamW
    return kind(listed, lr=how.rate)


class Scheduled(Protocol):
    """A recipe of any kind."""

    @property
    def schedule(self) -> Schedule:
        """How the rate changes."""


class RateFactors:
    """The factor by which every group's highest rate is multiplied at a step.

    Args:
        recipe: The recipe.
        steps: Optimizer steps in all.
        steps_per_epoch: Optimizer steps of one pass over the training set.
    """

    def __init__(self, recipe: Scheduled, *, steps: int, steps_per_epoch: int) -> None:
        self._schedule = recipe.schedule
        self._steps = steps
        self._epoch = steps_per_epoch
        self._reduced = 1.0
        self._lowest = math.inf
        self._waited = 0

    def factor(self, step: int) -> float:
        """Return the factor of a step, from 0."""
        schedule = self._schedule
        epoch = step // self._epoch
        if isinstance(schedule, Plateau):
            return self._reduced
        if isinstance(schedule, Cosine):
            if step < schedule.warmup_steps:
                return (step + 1) / schedule.warmup_steps
            done = (step - schedule.warmup_steps) / max(1, self._steps - schedule.warmup_steps)
            return schedule.last + (1 - schedule.last) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
        if isinstance(schedule, Poly):
            return float((1 - min(1.0, step / max(1, self._steps))) ** schedule.power)
        if isinstance(schedule, Milestones):
            return schedule.factor ** sum(epoch + 1 >= start for start in schedule.at)
        warm = schedule.warmup_epochs * self._epoch
        if step < warm:
            return (step + 1) / warm
        return schedule.factor ** (epoch // schedule.every) if schedule.every else 1.0

    def validated(self, loss: float) -> None:
        """Tell of a validation's loss; only a plateau schedule minds.

        The rule is that of ``torch.optim.lr_scheduler.ReduceLROnPlateau`` (mode min, relative threshold).
        """
        schedule = self._schedule
        if not isinstance(schedule, Plateau):
            return
        if loss < self._lowest * (1 - schedule.threshold):
            self._lowest, self._waited = loss, 0
            return
        self._waited += 1
        if self._waited > schedule.patience:
            self._reduced *= schedule.factor
            self._waited = 0

    def state(self) -> dict[str, float]:
        """Return what a resumed training needs."""
        return {"reduced": self._reduced, "lowest": self._lowest, "waited": self._waited}

    def resume(self, state: dict[str, float]) -> None:
        """Go on from :meth:`state`."""
        self._reduced, self._lowest = float(state["reduced"]), float(state["lowest"])
        self._waited = int(state["waited"])
