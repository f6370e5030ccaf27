"""Optimizer of a recipe and its learning rate schedule, both torch's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

from torch import nn, optim
from torch.optim import lr_scheduler

from medtest.training.settings.recipe import ConstantRate, Cosine, Milestones, Optimizer, Plateau, Poly, Schedule

ENCODERS = ("resnet.", "bkbone.", "backbone.", "layer0.", "layer1.", "layer2.", "layer3.")
"""Prefixes of the encoders' parameter names."""
Scheduler: TypeAlias = "lr_scheduler.LRScheduler | lr_scheduler.ReduceLROnPlateau"


def make_optimizer(network: nn.Module, settings: Optimizer) -> optim.Optimizer:
    """Return the optimizer of a recipe.

    Args:
        network: Network with the parameters to optimise.
        settings: The recipe's optimizer.
    """
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        inner = settings.backbone_rate is not None and name.startswith(ENCODERS)
        rate = settings.backbone_rate if inner and settings.backbone_rate is not None else settings.rate
        decays = settings.decay_all or parameter.ndim > 1
        groups.setdefault((rate, settings.decay if decays else 0.0), []).append(parameter)
    listed: Iterable[dict[str, Any]] = [
        {"params": members, "lr": rate, "weight_decay": decay} for (rate, decay), members in groups.items()
    ]
    if settings.name == "sgd":
        return optim.SGD(listed, lr=settings.rate, momentum=settings.momentum, nesterov=settings.nesterov)
    kind = optim.Adam if settings.name == "adam" else optim.AdamW
    return kind(listed, lr=settings.rate)


def make_scheduler(optimizer: optim.Optimizer, schedule: Schedule, *, steps: int, steps_per_epoch: int) -> Scheduler:
    """Return an optimizer's scheduler: a plateau's steps after each validation, all others after each step.

    Args:
        optimizer: Optimizer with its highest rates.
        schedule: The recipe's schedule.
        steps: Total number of optimizer steps.
        steps_per_epoch: Optimizer steps of one epoch.
    """
    if isinstance(schedule, Plateau):
        # Without eps=0 torch leaves rates below 1e-8 unchanged.
        return lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=schedule.factor, patience=schedule.patience, threshold=schedule.threshold, eps=0.0
        )
    if isinstance(schedule, Poly):
        return lr_scheduler.PolynomialLR(optimizer, total_iters=steps, power=schedule.power)
    if isinstance(schedule, Milestones):
        starts = [max(0, start - 1) * steps_per_epoch for start in schedule.at]
        return lr_scheduler.MultiStepLR(optimizer, starts, gamma=schedule.factor)
    if isinstance(schedule, Cosine):
        return _cosine(optimizer, schedule, steps)
    return _constant(optimizer, schedule, steps_per_epoch)


def _cosine(optimizer: optim.Optimizer, schedule: Cosine, steps: int) -> Scheduler:
    """Return a warm-up and half a cosine; torch's own cosine ends at one rate for encoder and head."""
    warm = schedule.warmup_steps

    def factor(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        done = min(1.0, (step - warm) / max(1, steps - warm))
        return schedule.last + (1 - schedule.last) * 0.5 * (1 + math.cos(math.pi * done))

    return lr_scheduler.LambdaLR(optimizer, factor)


def _constant(optimizer: optim.Optimizer, schedule: ConstantRate, steps_per_epoch: int) -> Scheduler:
    warm = round(schedule.warmup_epochs * steps_per_epoch)
    parts: list[lr_scheduler.LRScheduler] = []
    if warm > 1:  # step k, from 0, has (k + 1) / warm of the rate
        parts.append(lr_scheduler.LinearLR(optimizer, 1 / warm, total_iters=warm - 1))
    if schedule.every:
        parts.append(lr_scheduler.StepLR(optimizer, schedule.every * steps_per_epoch, gamma=schedule.factor))
    return lr_scheduler.ChainedScheduler(parts or [lr_scheduler.ConstantLR(optimizer, 1.0)], optimizer)
