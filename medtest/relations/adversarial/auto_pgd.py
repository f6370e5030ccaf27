"""Auto-PGD: projected gradient descent with automatic step halving.

F. Croce, M. Hein, "Reliable evaluation of adversarial robustness with an ensemble of diverse parameter-free attacks",
ICML 2020, section 3 and algorithm 1: a step of 2ε and momentum 0.75. At checkpoints (after 0.22 of the steps, then
after intervals that shrink by 0.03 to no less than 0.06) the step is halved and the search restarts from its best point
if fewer than 0.75 of the steps raised the loss, or if neither step nor best loss changed since the last checkpoint.
This prevents a too long step, which makes the margin oscillate, from looking like robustness.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from medtest.relations.adversarial.projected_gradient import (
    Attacked,
    Logits,
    Norm,
    RowLosses,
    lengths,
    loss_and_gradient,
    projected,
)

_MOMENTUM, _RISES, _TINY = 0.75, 0.75, 1e-12


def checkpoints(steps: int) -> list[int]:
    """Return the step counts at which the step length is reviewed."""
    at, before = [0.0, 0.22], 0.22
    while at[-1] < 1.0:
        before = max(before - 0.03, 0.06)
        at.append(at[-1] + before)
    return sorted({math.ceil(round(share * steps, 6)) for share in at[1:] if share <= 1.0})


def auto_pgd(
    logits: Logits,
    images: Tensor,
    loss: RowLosses,
    *,
    epsilon: Tensor,
    steps: int,
    norm: Norm = "linf",
    start: Tensor,
    within: Tensor | None = None,
) -> Attacked:
    """Maximise a loss and return the point of greatest loss.

    Args:
        logits: Pixels to logits.
        images: float32 B×3×H×W in [0, 1], the source.
        loss: Function from logits and their int64 row indices to one loss per image.
        epsilon: Radius of the ball in [0, 1] units, float B.
        steps: Number of steps.
        norm: ``linf`` or ``l2``.
        start: Initial offset from the source.
        within: bool B×1×H×W: values that may change.

    Raises:
        BadOutput: A loss or a gradient is not finite.
    """
    count = len(images)
    everyone = torch.arange(count, device=images.device)

    def near(pixels: Tensor) -> Tensor:
        return projected(pixels, images, epsilon=epsilon, norm=norm, within=within)

    now = near(images + start)
    before = now
    pace = 2 * epsilon[:, None, None, None].clone()
    losses, gradient = loss_and_gradient(logits, now, loss, everyone)
    best, greatest, best_gradient = now.clone(), losses.clone(), gradient.clone()
    zeros = _zeros(gradient, within)
    rises = torch.zeros(count, device=images.device)
    halved = torch.ones(count, dtype=torch.bool, device=images.device)
    marked, last, looks = greatest.clone(), 0, set(checkpoints(steps))
    for number in range(1, steps + 1):
        direction = gradient if within is None else gradient * within
        step = direction.sign() if norm == "linf" else direction / lengths(direction).clamp_min(_TINY)
        ahead = near(now + pace * step)
        share = 1.0 if number == 1 else _MOMENTUM
        moved = near(now + share * (ahead - now) + (1 - share) * (now - before))
        before, now = now, moved
        earlier = losses
        losses, gradient = loss_and_gradient(logits, now, loss, everyone)
        zeros += _zeros(gradient, within)
        rises += losses > earlier
        better = losses > greatest
        best[better], best_gradient[better] = now[better], gradient[better]
        greatest = torch.where(better, losses, greatest)
        if number in looks:
            slow = rises < _RISES * (number - last)
            stuck = ~halved & (marked >= greatest)
            halved = slow | stuck
            pace = torch.where(halved[:, None, None, None], pace / 2, pace)
            now, gradient = now.clone(), gradient.clone()
            now[halved], gradient[halved] = best[halved], best_gradient[halved]
            losses = torch.where(halved, greatest, losses)
            before = torch.where(halved[:, None, None, None], now, before)
            marked, last, rises = greatest.clone(), number, torch.zeros_like(rises)
    size = images[0].numel() if within is None else within.expand_as(images).flatten(1).sum(dim=1)
    none = zeros.double() / (torch.as_tensor(size).double() * (steps + 1))
    return Attacked(images=best, zero_gradient=none, queries=torch.full((count,), steps + 1))


def _zeros(gradient: Tensor, within: Tensor | None) -> Tensor:
    none = gradient == 0
    return (none if within is None else none & within).flatten(1).sum(dim=1)
