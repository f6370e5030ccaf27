"""An image processor of transformers on tensors that carry gradients: its geometry first, its numbers after that.

The processors that work on torch tensors are differentiable. On 8-bit pictures each of their steps rounds and stays
within 0 to 255; on floats the filters overshoot, so that pixels are brought back to levels between the two halves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

WHITE = 255.0
GEOMETRY = ("do_resize", "do_center_crop", "do_flip_channel_order")
NUMBERS = ("do_rescale", "do_normalize", "include_top", "do_pad")
"""Steps by their settings' names; what is padded is padded with numbers, after all else."""


def sized(pixels: Tensor, processor: Any, changes: Mapping[str, Any]) -> Tensor:
    """Return pixels resized and cut as an image processor does it.

    Args:
        pixels: Float B×3×H×W RGB in [0, 1].
        processor: The image processor.
        changes: What it is told beside its own file.
    """
    from medtest.systems.pytorch.pixels import whole

    given: Tensor = _made(pixels, processor, changes, NUMBERS)["pixel_values"]
    return (given if given.shape == pixels.shape else whole(given)) / WHITE


def scaled(pixels: Tensor, processor: Any, changes: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """Return what a network is given: pixels of :func:`sized`, rescaled, normalised and padded."""
    made: Mapping[str, Tensor] = _made(pixels, processor, changes, GEOMETRY)
    return made


def _made(pixels: Tensor, processor: Any, changes: Mapping[str, Any], left_out: tuple[str, ...]) -> Any:
    told = {**changes, **{step: False for step in left_out if getattr(processor, step, None) or step in changes}}
    return processor(
        images=list(pixels * WHITE),
        return_tensors="pt",
        input_data_format="channels_first",
        device=pixels.device,
        **told,
    )
