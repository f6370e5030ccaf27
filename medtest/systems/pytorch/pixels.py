"""Differentiable picture tensors: resizing, cropping, and logits of maps and classes.

Official preprocessing works on 8-bit pictures. This module has the same filters on floats in [0, 1], differentiable;
for 8-bit pictures they give the same results as the official ones, up to a level of 255 in a few pixels. A system's
answers always use the official way.
"""

from __future__ import annotations

from functools import cache
from math import gcd
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from medtest.core.deferred import torch

if TYPE_CHECKING:
    from torch import Tensor

Filter: TypeAlias = Literal["nearest", "bilinear", "bicubic", "lanczos", "linear", "area"]
"""``nearest`` to ``lanczos`` follow Pillow (antialiased when shrinking); ``linear`` and ``area`` follow OpenCV's
INTER_LINEAR (never antialiased) and INTER_AREA (when both sides shrink).
"""

WHITE = 255.0
LITTLE = 1e-4
"""Tolerance for floats near a half, in levels."""
TINY = float(np.finfo(np.float32).tiny)
LANCZOS_REACH = 3.0


def resized(pixels: Tensor, size: tuple[int, int], filter_name: Filter = "bilinear") -> Tensor:
    """Return pixels at another size, rounded to levels of 255 as in official preprocessing.

    Rounding to levels has no gradient; the gradient of the filter alone is used (the straight-through estimator of
    Bengio, Léonard and Courville, arXiv 1308.3432).

    Args:
        pixels: Float B×C×H×W in [0, 1].
        size: Target height and width.
        filter_name: Filter.
    """
    before = (int(pixels.shape[2]), int(pixels.shape[3]))
    if before == tuple(size):
        return pixels
    levels = pixels * WHITE  # in levels, for which many filters are exact in float32
    if filter_name in ("linear", "area", "nearest"):
        return _as_opencv(levels, size, filter_name) / WHITE
    # Pillow filters rows, rounds, and then filters columns.
    levels = whole(filtered(levels, (before[0], size[1]), filter_name))
    return whole(filtered(levels, size, filter_name)) / WHITE


def _as_opencv(values: Tensor, size: tuple[int, int], filter_name: Filter) -> Tensor:
    """Return levels filtered and rounded as in OpenCV (and in Pillow for nearest)."""
    before = (int(values.shape[2]), int(values.shape[3]))
    halved = before == (2 * size[0], 2 * size[1])
    shrinks = before[0] >= size[0] and before[1] >= size[1]
    if filter_name == "nearest" or halved or (filter_name == "area" and shrinks):
        # Area means round halves to even, except when reducing two by two.
        return whole(filtered(values, size, filter_name), even=filter_name == "area" and not halved)
    smooth = filtered(values, size, "linear")
    exact = _fixed_point(values.detach(), size).to(smooth)
    return smooth + (exact - smooth.detach()) if values.requires_grad else exact


def _fixed_point(values: Tensor, size: tuple[int, int]) -> Tensor:
    """Return levels filtered linearly in OpenCV's 11-bit integers, int32: one in eight differs from plain rounding."""
    levels = values.round().clamp_(0, WHITE).int()
    (top, bottom, upper, lower), (left, right, first, second) = (
        [taps.to(values.device) for taps in _linear_taps(int(old), new)]
        for old, new in zip(values.shape[2:], size, strict=True)
    )
    wide = (levels[..., left] * first + levels[..., right] * second) >> 4
    tall = (wide[:, :, top] * upper[:, None] >> 16) + (wide[:, :, bottom] * lower[:, None] >> 16)
    return (tall + 2) >> 2


def whole(values: Tensor, *, even: bool = False) -> Tensor:
    """Round values to 0, 1 … 255, with the gradient of the identity.

    Args:
        values: Floats.
        even: Whether halves are rounded to even; otherwise up, as in fixed-point arithmetic.
    """
    detached = values.detach()
    rounded = (torch.round(detached) if even else torch.floor(detached + (0.5 + LITTLE))).clamp_(0, WHITE)
    return values + (rounded - detached) if values.requires_grad else rounded


def filtered(values: Tensor, size: tuple[int, int], filter_name: Filter) -> Tensor:
    """Return values B×C×H×W filtered to another size, of any range and unrounded; differentiable."""
    before = (int(values.shape[2]), int(values.shape[3]))
    if before == tuple(size):
        return values
    if filter_name == "area" and (size[0] > before[0] or size[1] > before[1]):
        filter_name = "linear"
    if filter_name == "linear":
        return torch.nn.functional.interpolate(values, size=size, mode="bilinear", align_corners=False)
    if filter_name == "nearest":
        rows, columns = (_nearest(old, new).to(values.device) for old, new in zip(before, size, strict=True))
        return values[:, :, rows][:, :, :, columns]
    if filter_name in ("bilinear", "bicubic"):
        return torch.nn.functional.interpolate(values, size=size, mode=filter_name, align_corners=False, antialias=True)
    if filter_name == "lanczos":
        down, along = (_lanczos(old, new).to(values) for old, new in zip(before, size, strict=True))
        return down @ values @ along.T
    if before[0] % size[0] == 0 and before[1] % size[1] == 0:
        return torch.nn.functional.avg_pool2d(values, (before[0] // size[0], before[1] // size[1]))
    return _area(_area(values, size[1]).transpose(2, 3), size[0]).transpose(2, 3)


def _area(pixels: Tensor, new: int) -> Tensor:
    """Average areas along the last axis, in blocks, because old and new pixels share borders at common divisors."""
    old = int(pixels.shape[-1])
    blocks = gcd(old, new)
    weights = _area_weights(old // blocks, new // blocks).to(pixels)
    return (pixels.reshape(-1, old // blocks) @ weights.T).reshape(*pixels.shape[:-1], new)


@cache
def _area_weights(old: int, new: int) -> Tensor:
    """Return each old pixel's share of each new one, float32 new×old."""
    borders = np.arange(new + 1, dtype=np.float64)[:, None] * (old / new)
    covered = np.clip(borders - np.arange(old), 0, 1)
    return torch.from_numpy((np.diff(covered, axis=0) * (new / old)).astype(np.float32))


@cache
def _linear_taps(old: int, new: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the two old pixels of each new one, and their weights in 2048ths."""
    place = ((np.arange(new) + 0.5) * (old / new) - 0.5).astype(np.float32)
    first = np.floor(place).astype(np.int64)
    share = place - first.astype(np.float32)
    share[(first < 0) | (first >= old - 1)] = 0
    first = first.clip(0, old - 1)
    taps = (first, np.minimum(first + 1, old - 1))
    weights = (np.rint((1 - share) * np.float32(2048)), np.rint(share * np.float32(2048)))
    near, far = (torch.from_numpy(indices) for indices in taps)
    much, rest = (torch.from_numpy(weight.astype(np.int32)) for weight in weights)
    return near, far, much, rest


@cache
def _nearest(old: int, new: int) -> Tensor:
    """Return the old pixel of each new one by accumulated steps, as in Pillow, where rounding decides at borders."""
    steps = np.full(new, old / new)
    steps[0] /= 2
    return torch.from_numpy(np.minimum(np.add.accumulate(steps).astype(np.int64), old - 1))


@cache
def _lanczos(old: int, new: int) -> Tensor:
    """Return Pillow's weights of LANCZOS along one axis, float32 new×old."""
    scale = max(old / new, 1.0)
    centre = (np.arange(new)[:, None] + 0.5) * (old / new)
    low = np.maximum(np.floor(centre - LANCZOS_REACH * scale + 0.5), 0)
    high = np.minimum(np.floor(centre + LANCZOS_REACH * scale + 0.5), old)
    place = np.arange(old)[None]
    distance = (place + 0.5 - centre) / scale
    values = np.sinc(distance) * np.sinc(distance / LANCZOS_REACH)
    values[(np.abs(distance) >= LANCZOS_REACH) | (place < low) | (place >= high)] = 0
    return torch.from_numpy((values / values.sum(axis=1, keepdims=True)).astype(np.float32))


def grey(pixels: Tensor) -> Tensor:
    """Return the brightness of RGB pixels, in all three channels, with OpenCV's weights."""
    weights = pixels.new_tensor([0.299, 0.587, 0.114])[:, None, None]
    return (pixels * weights).sum(dim=1, keepdim=True).expand(-1, 3, -1, -1)


def shorter_side(pixels: Tensor, side: int, filter_name: Filter = "bilinear") -> Tensor:
    """Return pixels with the shorter side resized to ``side``, as :func:`~.classification.crops.shorter_side`."""
    height, width = int(pixels.shape[2]), int(pixels.shape[3])
    size = (side, int(side * width / height)) if height <= width else (int(side * height / width), side)
    return resized(pixels, size, filter_name)


def middle(pixels: Tensor, side: int) -> Tensor:
    """Return the central square of ``side`` pixels, as :func:`~.classification.crops.middle`."""
    top, left = round((pixels.shape[2] - side) / 2), round((pixels.shape[3] - side) / 2)
    return pixels[:, :, top : top + side, left : left + side]


def ten_crops(pixels: Tensor, side: int) -> Tensor:
    """Return corners and centre of each image and its mirror image, B·10×C×side×side, grouped by image."""
    bottom, right = pixels.shape[2] - side, pixels.shape[3] - side
    corners = [(0, 0), (0, right), (bottom, 0), (bottom, right)]
    crops = [
        crop
        for view in (pixels, pixels.flip(3))
        for crop in [*(view[:, :, top : top + side, left : left + side] for top, left in corners), middle(view, side)]
    ]
    return torch.stack(crops, dim=1).flatten(0, 1)


# --- maps ---------------------------------------------------------------------------------------------------------


LEAST = 1e-30
"""Smallest probability in a map's logits: a logit of -69, where the gradient is still finite."""


@cache
def _log_odds() -> Any:
    """Return the function log(share / rest): one logarithm instead of two, and a gradient that does not overflow."""
    from torch.autograd.function import once_differentiable

    class LogOdds(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, share: Tensor, rest: Tensor) -> Tensor:
            context.save_for_backward(share, rest)
            return (share / rest).log_()

        @staticmethod
        @once_differentiable
        def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
            share, rest = context.saved_tensors
            return gradient / share, -gradient / rest

    return LogOdds.apply


def log_odds(share: Tensor, rest: Tensor, least: float = LEAST) -> Tensor:
    """Return log(share / rest) of two exact complements, at least ``least`` each.

    With ``1 - share`` in place of ``rest`` nothing would remain where a sigmoid is saturated.
    """
    return _log_odds()(share.clamp_min(least), rest.clamp_min(least))


def resized_map(logits: Tensor, size: tuple[int, int], threshold: float = 0.5) -> Tensor:
    """Return logits B×H×W of the sigmoid of ``logits``, resized like final answers.

    Args:
        logits: B×h×w.
        size: Target height and width.
        threshold: Threshold of the resized probability, moved to 0.5 as in :func:`at_half`.
    """
    if tuple(logits.shape[1:]) == tuple(size):
        return at_half(logits, threshold)
    both: Tensor = torch.stack([logits.sigmoid(), (-logits).sigmoid()], dim=1)
    share, rest = filtered(both, size, "area").unbind(1)
    return log_odds(*_halved(share, rest, threshold))


def at_half(logits: Tensor, threshold: float) -> Tensor:
    """Return logits of probabilities rescaled so that a threshold maps to 0.5; 0 and 1 stay, piecewise linear.

    Equivalent to :func:`medtest.systems.adapters.libraries.lesion.at_half` for probabilities.
    """
    if threshold == 0.5:
        return logits
    return log_odds(*_halved(logits.sigmoid(), (-logits).sigmoid(), threshold))


def _halved(share: Tensor, rest: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """Return a probability with its threshold moved to 0.5, and its complement."""
    if threshold == 0.5:
        return share, rest
    lesion = share.detach() > threshold
    # In each pixel one of the two is at most 0.5 and the other its complement.
    share, rest = share * (0.5 / threshold), rest * (0.5 / (1 - threshold))
    return torch.where(lesion, 1 - rest, share), torch.where(lesion, rest, 1 - share)


# --- labels -------------------------------------------------------------------------------------------------------

ALMOST = 1 - 2.0**-24
"""The largest float32 below 1."""


def logits_of(probabilities: Tensor, *, multi: bool) -> Tensor:
    """Return logits of a network's probabilities, so that sigmoid or softmax reproduces them.

    Values that a saturated sigmoid has rounded to 0 or 1 cannot be recovered: their logits are those of the nearest
    number in between, and have no gradient.
    """
    if not multi:
        return probabilities.clamp_min(TINY).log()
    inner = probabilities.clamp(TINY, ALMOST)
    return inner.log() - torch.log1p(-inner)


def merged(logits: Tensor, groups: list[list[int]], *, multi: bool) -> Tensor:
    """Return one logit per group of classes, B×G.

    For exclusive classes a group's probability is the sum of its members', that is, the softmax of log-sum-exp values;
    if several classes may be true, the largest member counts.
    """
    if all(group == [index] for index, group in enumerate(groups)) and len(groups) == logits.shape[1]:
        return logits
    parts = [logits[:, group] for group in groups]
    columns = [part.amax(dim=1) if multi else torch.logsumexp(part, dim=1) for part in parts]
    return torch.stack(columns, dim=1)


def mean_odds(logits: Tensor) -> Tensor:
    """Return logits B×C of the mean of the sigmoid of B×N×C logits over the middle axis, exact beyond saturation."""
    signed = torch.nn.functional.logsigmoid(torch.stack([logits, -logits]))
    return torch.logsumexp(signed, dim=2).diff(dim=0)[0].neg()


def enlarged(x: Tensor, factor: int = 2) -> Tensor:
    """Return maps enlarged bilinearly with their corners aligned: [B, C, H, W] to [B, C, H × factor, W × factor]."""
    return torch.nn.functional.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=True)
