"""Validation of answers for series: images or regions of any dimension.

* Kind ``image``: an array of the input's shape, of a number type. Answers to integer images are rounded and clipped to
  the dtype (an 8-bit picture cannot hold 255.4); answers to floating-point images are not changed. A length-1 axis at
  either end is dropped, and a grey answer to a colour image is refused.
* Kind ``region``: an array of the input's spatial shape: ``bool``; integers (labels, every value but 0 is inside); or
  floats in [0, 1] (probability, inside above 0.5).

Everything else (another shape, NaN, text, an exception) is a fault of the system: the case becomes ERROR.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, ImageOutput, ImageSpec, RegionOutput
from medtest.core.errors import BadOutput
from medtest.core.tasks.border import CUT, SLACK, as_array


def check_image(raw: Any, image: Image) -> ImageOutput:
    """Check a raw answer as a processed image.

    Args:
        raw: The answer.
        image: The input image.

    Raises:
        BadOutput: It is not an image of that shape; the message gives the reason.
    """
    processed = _shaped(as_array(raw, "an image"), image.shape)
    if processed.dtype == np.bool_ or not (
        np.issubdtype(processed.dtype, np.integer) or np.issubdtype(processed.dtype, np.floating)
    ):
        raise BadOutput(f"gave dtype {processed.dtype} where an image is expected")
    _refuse_not_finite(processed)
    if np.issubdtype(image.dtype, np.integer):
        if processed.dtype != image.dtype:
            limits = np.iinfo(image.dtype)
            processed = np.clip(np.rint(processed), limits.min, limits.max).astype(image.dtype)
    else:
        processed = processed.astype(image.dtype, copy=False)
        _refuse_not_finite(processed)  # conversion from double to single precision may overflow
    return ImageOutput(image=np.ascontiguousarray(processed), given=image)


def check_region(raw: Any, image: Image, spec: ImageSpec) -> RegionOutput:
    """Check a raw answer as a region.

    Args:
        raw: The answer.
        image: The input image.
        spec: Meaning of its axes.

    Raises:
        BadOutput: It is not a region of that shape; the message gives the reason.
    """
    array = _shaped(as_array(raw, "a region"), spec.spatial(image.shape))
    if array.dtype == np.bool_:
        region = array
    elif np.issubdtype(array.dtype, np.integer):
        region = array != 0
    elif np.issubdtype(array.dtype, np.floating):
        _refuse_not_finite(array)
        low, high = float(array.min()), float(array.max())
        if low < -SLACK or high > 1 + SLACK:
            raise BadOutput(f"gave values from {low:.4g} to {high:.4g}; probabilities in [0, 1] are expected")
        region = array > CUT
    else:
        raise BadOutput(f"gave dtype {array.dtype}; bool, labels or probabilities are expected")
    return RegionOutput(region=np.ascontiguousarray(region))


def _shaped(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    trimmed = array
    while trimmed.ndim > len(shape) and trimmed.shape[0] == 1:
        trimmed = trimmed[0]
    while trimmed.ndim > len(shape) and trimmed.shape[-1] == 1:
        trimmed = trimmed[..., 0]
    if trimmed.shape != shape:
        raise BadOutput(f"gave shape {array.shape}; {shape} is expected")
    return trimmed


def _refuse_not_finite(array: NDArray[Any]) -> None:
    if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
        raise BadOutput("gave NaN" if np.isnan(array).any() else "gave an infinite value")
