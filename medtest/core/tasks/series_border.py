"""The border of series: what an algorithm may answer where an image or a region of any dimension is expected.

* Kind ``image``: an array of the input's shape, of a number type. Answers to integer images are rounded and clipped to
  the dtype (an 8-bit picture cannot hold 255.4); answers to floating-point images are taken as they are. A length-1
  axis at either end is dropped, and a grey answer to a colour image is refused.
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


def check_image(raw: Any, given: Image) -> ImageOutput:
    """Return a raw answer as a processed image.

    Args:
        raw: The answer.
        given: The image that was asked about.

    Raises:
        BadOutput: It is no image of that shape; the message says why.
    """
    found = _shaped(as_array(raw, "an image"), given.shape)
    if found.dtype == np.bool_ or not (
        np.issubdtype(found.dtype, np.integer) or np.issubdtype(found.dtype, np.floating)
    ):
        raise BadOutput(f"gave dtype {found.dtype} where an image is expected")
    _refuse_not_finite(found)
    if np.issubdtype(given.dtype, np.integer):
        if found.dtype != given.dtype:
            limits = np.iinfo(given.dtype)
            found = np.clip(np.rint(found), limits.min, limits.max).astype(given.dtype)
    else:
        found = found.astype(given.dtype, copy=False)
        _refuse_not_finite(found)  # a double may overflow on its way to single precision
    return ImageOutput(image=np.ascontiguousarray(found), given=given)


def check_region(raw: Any, given: Image, spec: ImageSpec) -> RegionOutput:
    """Return a raw answer as a region.

    Args:
        raw: The answer.
        given: The image that was asked about.
        spec: What its axes are.

    Raises:
        BadOutput: It is no region of that shape; the message says why.
    """
    found = _shaped(as_array(raw, "a region"), spec.spatial(given.shape))
    if found.dtype == np.bool_:
        region = found
    elif np.issubdtype(found.dtype, np.integer):
        region = found != 0
    elif np.issubdtype(found.dtype, np.floating):
        _refuse_not_finite(found)
        low, high = float(found.min()), float(found.max())
        if low < -SLACK or high > 1 + SLACK:
            raise BadOutput(f"gave values from {low:.4g} to {high:.4g}; probabilities in [0, 1] are expected")
        region = found > CUT
    else:
        raise BadOutput(f"gave dtype {found.dtype}; bool, labels or probabilities are expected")
    return RegionOutput(region=np.ascontiguousarray(region))


def _shaped(found: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    trimmed = found
    while trimmed.ndim > len(shape) and trimmed.shape[0] == 1:
        trimmed = trimmed[0]
    while trimmed.ndim > len(shape) and trimmed.shape[-1] == 1:
        trimmed = trimmed[..., 0]
    if trimmed.shape != shape:
        raise BadOutput(f"gave shape {found.shape}; {shape} is expected")
    return trimmed


def _refuse_not_finite(found: NDArray[Any]) -> None:
    if np.issubdtype(found.dtype, np.floating) and not np.isfinite(found).all():
        raise BadOutput("gave NaN" if np.isnan(found).any() else "gave an infinite value")
