"""Image processors of transformers on tensors with gradients: first the geometry, then the values.

The processors for torch tensors are differentiable. On 8-bit pictures each of their steps rounds and stays within 0 to
255; on floats the filters overshoot, so pixels are rounded to levels between the two halves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medtest.systems.pytorch.pixels import whole

if TYPE_CHECKING:
    from torch import Tensor

WHITE = 255.0
GEOMETRY = ("do_resize", "do_center_crop", "do_flip_channel_order")
NUMBERS = ("do_rescale", "do_normalize", "include_top", "do_pad")
"""Steps by their settings' names; padding uses numbers and comes last."""


def sized(pixels: Tensor, processor: Any, changes: Mapping[str, Any]) -> Tensor:
    """Return pixels resized and cropped by an image processor.

    Args:
        pixels: Float B×3×H×W RGB in [0, 1].
        processor: The image processor.
        changes: Overrides of its settings.
    """
    processed: Tensor = _made(pixels, processor, changes, NUMBERS)["pixel_values"]
    return (processed if processed.shape == pixels.shape else whole(processed)) / WHITE


def scaled(pixels: Tensor, processor: Any, changes: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """Return the network's input: pixels of :func:`sized`, rescaled, normalised and padded."""
    batch: Mapping[str, Tensor] = _made(pixels, processor, changes, GEOMETRY)
    return batch


def _made(pixels: Tensor, processor: Any, changes: Mapping[str, Any], left_out: tuple[str, ...]) -> Any:
    options = {**changes, **{step: False for step in left_out if getattr(processor, step, None) or step in changes}}
    return processor(
        images=list(pixels * WHITE),
        return_tensors="pt",
        input_data_format="channels_first",
        device=pixels.device,
        **options,
    )
