"""Conversion of a generator's field to an image within the budget, as in the paper and as in the published code.

Paper (Xu et al. 2021, section 4.2.2, equation 3): δ = G(x) · min(1, ε / ‖G(x)‖∞), x' = clip(x + δ), in pixels. The
published code (``released``) treats the field as an image, normalises it and bounds each channel separately;
back-propagation sees the identity there.
"""

from __future__ import annotations

import torch
from torch import Tensor


def seen(images: Tensor) -> Tensor:
    """Return images in [0, 1], of any shape, in a generator's input range [-1, 1]."""
    return images * 2.0 - 1.0


def fixed_input(side: int, seed: int) -> Tensor:
    """Return the fixed input of a universal generator: uniform noise, 1×3×S×S in [-1, 1].

    Poursaeed et al., section 3.1: one pattern, drawn once.
    """
    source = torch.Generator().manual_seed(seed)
    return torch.rand((1, 3, side, side), generator=source) * 2.0 - 1.0


def bounded(field: Tensor, epsilon: float, within: Tensor | None = None) -> Tensor:
    """Return the perturbation of a field: scaled so that no value exceeds ε (equation 3).

    Args:
        field: float32 B×3×H×W in [-1, 1].
        epsilon: ε, in units of [0, 1].
        within: bool B×1×H×W, pixels that may change; None for all.
    """
    inside = field if within is None else field * within
    largest = inside.abs().amax(dim=(1, 2, 3), keepdim=True)
    return inside * (epsilon / largest.clamp_min(epsilon))


def perturbed(images: Tensor, field: Tensor, epsilon: float, within: Tensor | None = None) -> Tensor:
    """Return images with the field's perturbation added, kept in [0, 1]; differentiable in the field.

    Args:
        images: float32 B×3×H×W in [0, 1].
        field: As in :func:`bounded`; a single field if the perturbation is universal.
        epsilon: ε, in units of [0, 1].
        within: As in :func:`bounded`.
    """
    return (images + bounded(field.expand_as(images), epsilon, within)).clamp(0.0, 1.0)


def released(images: Tensor, field: Tensor, epsilon: float, mean: Tensor, std: Tensor) -> Tensor:
    """Return the images that the published code shows to the network, in pixels.

    With t = (field + 1) / 2 the code takes δ = (t - mean) / std, multiplies each channel of each image by min(1, ε /
    std / max|δ|), adds it to the normalised image and clamps each channel to its least and largest value in the clean
    batch. Normalisation is linear per channel, so the same is done here in pixels. The code works on ``.data``, so the
    gradient with respect to the field equals that with respect to the normalised image, regardless of scaling.

    Args:
        images: float32 B×3×H×W in [0, 1].
        field: float32 B×3×H×W in [-1, 1].
        epsilon: ε, in units of [0, 1].
        mean: Channel means of the attacked network's normalisation, 3 numbers.
        std: Channel standard deviations of that normalisation, 3 numbers.
    """
    means, stds = mean[:, None, None], std[:, None, None]
    with torch.no_grad():
        shift = (field + 1.0) / 2.0 - means
        largest = shift.abs().amax(dim=(2, 3), keepdim=True)
        moved = images + shift * (epsilon / largest.clamp_min(epsilon))
        low, high = images.amin(dim=(0, 2, 3), keepdim=True), images.amax(dim=(0, 2, 3), keepdim=True)
        moved = torch.minimum(torch.maximum(moved, low), high)
    through = (field - field.detach()) * stds
    return moved + through
