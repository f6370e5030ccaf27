"""Attention-guided zoom of AGDN: resizing and sampling guided by an attention map.

Xing, Yuan and Meng, "Zoom in Lesions for Better Diagnosis: Attention Guided Deformation Network for WCE Image
Classification", IEEE Transactions on Medical Imaging 39(12), 2020, section III-B; the sampling follows Recasens et al.,
"Learning to Zoom", ECCV 2018, eq. 3 and 4. Images are resized as in TensorFlow 1.8, which the published network uses.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

PADDING = 30
"""Padding of an attention map beyond its border, equal to the radius of the Gaussian."""
FULL_WIDTH = 9
"""Full width at half maximum of the Gaussian, in pixels of the map."""
LITTLE = 1e-8


def _places(old: int, new: int, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return lower neighbour, upper neighbour and the upper one's share, for every target position."""
    source = torch.arange(new, dtype=torch.float64) * (old / new)
    low = source.floor().long().clamp(max=old - 1)
    share = (source - low).to(device=like.device, dtype=like.dtype)
    return low.to(like.device), (low + 1).clamp(max=old - 1).to(like.device), share


def legacy_resize(x: Tensor, height: int, width: int) -> Tensor:
    """Resize bilinearly like TensorFlow 1's ``resize_images``: aligned at pixel corners, not antialiased.

    Position i comes from i · (old size / new size), without the half-pixel shift of current libraries; the upper
    neighbour of the last pixel is itself.

    Args:
        x: [B, C, H, W].
        height: Target height.
        width: Target width.
    """
    if x.shape[2] != height:
        low, high, share = _places(int(x.shape[2]), height, x)
        x = torch.lerp(x[:, :, low], x[:, :, high], share[:, None])
    if x.shape[3] != width:
        low, high, share = _places(int(x.shape[3]), width, x)
        x = torch.lerp(x[:, :, :, low], x[:, :, :, high], share)
    return x


def attention_of(features: Tensor) -> Tensor:
    """Return the mean over channels of the features' positive part, [B, 1, h, w], scaled to 0–1.

    Args:
        features: [B, C, h, w].
    """
    strength = torch.relu(features).mean(dim=1, keepdim=True)
    low = strength.amin(dim=(2, 3), keepdim=True)
    span = strength.amax(dim=(2, 3), keepdim=True) - low
    return (strength - low + LITTLE) / (span + LITTLE)


def _gaussian(like: Tensor) -> Tensor:
    """Return the 61 weights of the Gaussian."""
    steps = torch.arange(-PADDING, PADDING + 1, device=like.device, dtype=like.dtype)
    return torch.exp(-4 * math.log(2) * steps**2 / FULL_WIDTH**2)


def _blurred(x: Tensor, weights: Tensor, axis: int) -> Tensor:
    """Convolve [B, 1, h, w] along an axis (2 or 3), without padding."""
    kernel = weights.view(1, 1, -1, 1) if axis == 2 else weights.view(1, 1, 1, -1)
    return functional.conv2d(x, kernel)


def _coordinates(size: int, like: Tensor) -> Tensor:
    """Return coordinates of a padded axis: 0 to 1 over the map, -1 to 2 in total for a map of 31 pixels."""
    steps = torch.arange(-PADDING, size + PADDING, device=like.device, dtype=like.dtype)
    return steps / (size - 1)


def structured_grid(attention: Tensor) -> Tensor:
    """Return the source position of each column and row of the result: the structured grids of the paper.

    Columns are attracted to columns with a large maximum of attention, and rows to such rows.

    Args:
        attention: [B, 1, n, n], positive.

    Returns:
        [B, 2, n, n], x and y in [0, 1]; x is the same in all rows, y in all columns.
    """
    size = int(attention.shape[2])
    padded = functional.pad(attention, (PADDING,) * 4, mode="replicate")
    weights, places = _gaussian(attention), _coordinates(size, attention)
    grids = []
    for axis, profile, steps in (
        (3, padded.amax(dim=2, keepdim=True), places.view(1, 1, 1, -1)),
        (2, padded.amax(dim=3, keepdim=True), places.view(1, 1, -1, 1)),
    ):
        grid = _blurred(profile * steps, weights, axis) / _blurred(profile, weights, axis)
        grids.append(grid.clamp(0, 1).expand(-1, -1, size, size))
    return torch.cat(grids, dim=1)


def pixel_grid(attention: Tensor) -> Tensor:
    """Return the source position of each pixel of the result: the pixel-wise grids of the paper.

    Pixels are attracted to strong attention nearby, weighted by a Gaussian in two dimensions.

    Args:
        attention: [B, 1, n, n], positive.

    Returns:
        [B, 2, n, n], x and y in [0, 1].
    """
    size = int(attention.shape[2])
    padded = functional.pad(attention, (PADDING,) * 4, mode="replicate")
    weights, places = _gaussian(attention), _coordinates(size, attention)

    def drawn(x: Tensor) -> Tensor:
        # The two-dimensional Gaussian is the product of two one-dimensional ones.
        return _blurred(_blurred(x, weights, 3), weights, 2)

    total = drawn(padded)
    across = drawn(padded * places.view(1, 1, 1, -1)) / total
    down = drawn(padded * places.view(1, 1, -1, 1)) / total
    return torch.cat([across, down], dim=1).clamp(0, 1)


def deform(image: Tensor, attention: Tensor, *, side: int, share: float = 0.5) -> Tensor:
    """Return an image in which areas of high attention are enlarged.

    Args:
        image: [B, C, H, W].
        attention: [B, 1, n, n], positive.
        side: Target height and width.
        share: Weight of the pixel-wise grid; the structured one has the rest.

    Returns:
        [B, C, side, side], of the image's dtype; bilinear.
    """
    attention = attention.float()
    grid = share * pixel_grid(attention) + (1 - share) * structured_grid(attention)
    grid = legacy_resize(grid, side, side)
    height, width = int(image.shape[2]), int(image.shape[3])
    # Published in pixels up to size - 2; grid_sample expects -1 to 1 from the first to the last pixel centre.
    x = grid[:, 0] * (2 * (width - 2) / (width - 1)) - 1
    y = grid[:, 1] * (2 * (height - 2) / (height - 1)) - 1
    sampled = functional.grid_sample(
        image.float(), torch.stack([x, y], dim=-1), mode="bilinear", padding_mode="border", align_corners=True
    )
    return sampled.to(image.dtype)
