"""Projected gradient descent on pixels, for any function from pixels to logits.

A. Madry et al., "Towards deep learning models resistant to adversarial attacks", ICLR 2018; as equations 1 and 2 of
M. Xu et al., "Towards evaluating the robustness of deep diagnostic models by adversarial attack", Medical Image
Analysis 2021: x ← Π(x + α·sign ∇L), Π the projection onto the ball of ε around the source and onto valid pixels. One
step from the source itself is FGSM. It is independent of relations and systems, as adversarial training uses it too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from medtest.core.errors import BadOutput
from medtest.core.probes import NOT_FINITE

Logits: TypeAlias = Callable[[Tensor], Tensor]
"""Pixels, float32 B×3×H×W in [0, 1], to logits; differentiable."""
RowLosses: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Logits, and the int64 batch indices of their images, to one loss per image, which is maximised."""
Norm: TypeAlias = Literal["linf", "l2"]
_TINY = 1e-12


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """Result of an attack.

    Attributes:
        images: float32 B×3×H×W in [0, 1], not rounded.
        zero_gradient: float64 B: share of (step, changeable value) whose gradient was exactly 0; NaN without a step.
        queries: int64 B: forward passes that each image took part in.
    """

    images: Tensor
    zero_gradient: Tensor
    queries: Tensor


def projected_gradient(
    logits: Logits,
    images: Tensor,
    loss: RowLosses,
    *,
    epsilon: float | Tensor,
    step: float | Tensor,
    steps: int | Tensor,
    norm: Norm = "linf",
    start: Tensor | None = None,
    best: bool = False,
    within: Tensor | None = None,
    low: float | Tensor = 0.0,
    high: float | Tensor = 1.0,
) -> Attacked:
    """Maximise a loss by steps along its gradient's sign (L∞) or direction (L2), within ε of the source.

    Args:
        logits: Pixels to logits.
        images: float32 B×3×H×W in [0, 1], the source.
        loss: Logits, and the indices in ``images`` of their rows, to one loss per image; finished images leave the
            batch.
        epsilon: Radius of the ball, in units of the pixels (1 is 255 levels); scalar, float B, or for L∞ float B×3×1×1.
        step: Length of a step, in the same form; for L∞ the change of each value, for L2 the norm of the change.
        steps: Number of steps; scalar or int B.
        norm: ``linf`` or ``l2``.
        start: Initial offset from the source, B×3×H×W; None for the source itself.
        best: Return the iterate of greatest loss, including the last (one more pass); else the last.
        within: bool, B×1×H×W or B×3×H×W: values that may change; None for all.
        low: Least valid value of a pixel; scalar or broadcastable to the images.
        high: Greatest valid value of a pixel.

    Raises:
        BadOutput: A loss or a gradient is not finite.
        Exception: Any error of ``logits``.
    """
    count = len(images)
    source = images.detach()
    radius, move = (_by_image(value, source) for value in (epsilon, step))
    remaining = torch.as_tensor(steps, device=source.device).expand(count).clone()
    mask = None if within is None else within.to(source.device)
    bounds = tuple(torch.as_tensor(end, dtype=source.dtype, device=source.device) for end in (low, high))
    reach = _reach(mask, source)
    now = source.clone() if start is None else _projected(source + start.detach(), source, radius, norm, mask, bounds)
    greatest, best_pixels = torch.full((count,), -torch.inf, device=source.device), now.clone() if best else now
    some = torch.zeros(count, dtype=torch.int64, device=source.device)
    queries = remaining.to(torch.int64) + (1 if best else 0)
    least, most = _box(source, radius, mask, bounds) if norm == "linf" else (source, source)
    for number in range(int(remaining.max()) if count else 0):
        rows = (remaining > number).nonzero().flatten()
        every = len(rows) == count
        current, pace = (tensor if every else tensor[rows] for tensor in (now, move))
        inside = mask if mask is None or every else mask[rows]
        losses, gradient = loss_and_gradient(logits, current, loss, rows)
        if best:
            _keep_greatest(best_pixels, greatest, rows, losses, current)
        followed = gradient if inside is None else gradient * inside
        some[rows] += torch.count_nonzero(followed, dim=(1, 2, 3))
        if norm == "linf":
            low_end, high_end = (tensor if every else tensor[rows] for tensor in (least, most))
            moved = torch.addcmul(current, followed.sign_(), pace).clamp_(low_end, high_end)
        else:
            home, ball = (tensor if every else tensor[rows] for tensor in (source, radius))
            ends = bounds if every else tuple(end[rows] if end.ndim == 4 else end for end in bounds)
            moved = _projected(
                current + pace * followed / lengths(followed).clamp_min(_TINY), home, ball, norm, inside, ends
            )
        now = moved if every else now.index_copy(0, rows, moved)
    if best:
        with torch.no_grad():
            everyone = torch.arange(count, device=source.device)
            _keep_greatest(best_pixels, greatest, everyone, _finite(loss(logits(now), everyone)), now)
        now = best_pixels
    share = 1 - some.double() / (remaining.double() * reach.to(some.device))
    return Attacked(images=now, zero_gradient=share, queries=queries)


def _by_image(value: float | Tensor, images: Tensor) -> Tensor:
    tensor = torch.as_tensor(value, dtype=images.dtype, device=images.device)
    return tensor if tensor.ndim == 4 else tensor.expand(len(images))[:, None, None, None]


def _reach(mask: Tensor | None, images: Tensor) -> Tensor:
    """Return the number of changeable values of each image, float64 B."""
    if mask is None:
        return torch.full((len(images),), float(images[0].numel()) if len(images) else 0.0, dtype=torch.float64)
    return mask.expand_as(images).flatten(1).sum(dim=1).double()


def loss_and_gradient(logits: Logits, pixels: Tensor, loss: RowLosses, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the losses of images at ``rows`` of the batch and their gradient with respect to the pixels.

    Raises:
        BadOutput: A loss or a gradient is not finite.
    """
    with torch.enable_grad():
        inputs = pixels.detach().requires_grad_()
        losses = loss(logits(inputs), rows)
        (gradient,) = torch.autograd.grad(losses.sum(), inputs)
    # Non-finite values show in the sum, which is cheap; a sum may overflow even if all values are finite.
    if not bool(gradient.sum().isfinite()) and not bool(gradient.isfinite().all()):
        raise BadOutput(f"{NOT_FINITE} while it was attacked")
    return _finite(losses.detach()), gradient


def _finite(losses: Tensor) -> Tensor:
    if not bool(losses.isfinite().all()):
        raise BadOutput("gave a loss that is not finite while it was attacked")
    return losses


def _keep_greatest(best_pixels: Tensor, greatest: Tensor, rows: Tensor, losses: Tensor, pixels: Tensor) -> None:
    better = losses > greatest[rows]
    greatest[rows[better]] = losses[better]
    best_pixels[rows[better]] = pixels[better]


def _box(source: Tensor, radius: Tensor, mask: Tensor | None, bounds: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Return the least and greatest valid value within ε of each value; both equal the source outside ``mask``."""
    least, most = torch.maximum(source - radius, bounds[0]), torch.minimum(source + radius, bounds[1])
    if mask is None:
        return least, most
    return torch.where(mask, least, source), torch.where(mask, most, source)


def lengths(values: Tensor) -> Tensor:
    """Return the Euclidean norm of each image's values, B×1×1×1."""
    norms: Tensor = torch.linalg.vector_norm(values.flatten(1), dim=1)
    return norms[:, None, None, None]


def _projected(
    pixels: Tensor, source: Tensor, radius: Tensor, norm: Norm, mask: Tensor | None, bounds: tuple[Tensor, ...] = ()
) -> Tensor:
    """Return the nearest valid pixels within the ball; pixels outside ``mask`` keep the source's values."""
    if norm == "linf":
        near = torch.minimum(torch.maximum(pixels, source - radius), source + radius)
    else:
        away = pixels - source
        near = source + away * (radius / lengths(away).clamp_min(_TINY)).clamp_max(1.0)
    near = torch.minimum(torch.maximum(near, bounds[0]), bounds[1]) if bounds else near.clamp(0.0, 1.0)
    return near if mask is None else torch.where(mask, near, source)


def projected(pixels: Tensor, source: Tensor, *, epsilon: float | Tensor, norm: Norm, within: Tensor | None) -> Tensor:
    """Return the nearest valid pixels within ε of the source; arguments as in :func:`projected_gradient`."""
    return _projected(pixels, source, _by_image(epsilon, source), norm, within)
