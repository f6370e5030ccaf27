"""Validation of system answers, shared by all adapters and networks.

The interface is the same for a network of medtest, a user's function, an ONNX graph or a folder of maps:

* Input: a batch of images, uint8 RGB H×W×3, contiguous. All of one size with ``prepare.size: 512``.
* Output: one answer per image, in the same order. An answer is a two-dimensional array of any size (it is resized to
  the image's): ``bool`` (a mask), ``uint8`` (probability × 255), or a float type (probability in [0, 1]). Leading and
  trailing axes of length 1 are dropped, so that 1×H×W, H×W×1 and 1×1×H×W are accepted. Two or more channels are
  refused: the user must select the lesion's channel (see ``channel`` of the adapters).
* ``Missing(reason)`` instead of an array: the system has no answer; the case becomes SKIP.
* Everything else (a wrong shape or dtype, NaN, values outside [0, 1], an exception) is a fault of the system under
  test: the case becomes ERROR with the reason. A system that hangs is stopped by the runner's time limit.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import MaskOutput, Probability
from medtest.core.errors import BadOutput

CUT = 0.5
"""Probability above which a pixel belongs to the lesion; systems with another threshold are mapped to it."""
SLACK = 1e-3
"""Tolerance of float answers outside [0, 1], for rounding in half precision; they are clipped."""


def check_mask(raw: Any, shape: tuple[int, int]) -> MaskOutput:
    """Check a system's raw answer as a segmentation of the prepared image.

    Args:
        raw: The answer, see the module's text.
        shape: Height and width of the prepared image.

    Returns:
        Probability (float32) and mask at that size; ``native`` holds the probability at the answer's own size if that
        differs.

    Raises:
        BadOutput: The answer is invalid; the message gives the reason.
    """
    if _holds_maps(raw):
        raise _too_many_outputs(raw, "the map")
    own = _probability(_plane(as_array(raw)))
    if own.shape == tuple(shape):
        return MaskOutput(mask=own > CUT, probability=own)
    resized = resize_probability(own, shape)
    return MaskOutput(mask=resized > CUT, probability=resized, native=own)


def resize_probability(probability: Probability, shape: tuple[int, int]) -> Probability:
    """Resize a map: bilinear with half-pixel centres, or area averaging if both sides shrink."""
    height, width = shape
    shrinks = height <= probability.shape[0] and width <= probability.shape[1]
    interpolation = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return np.clip(
        np.asarray(cv2.resize(probability, (width, height), interpolation=interpolation), np.float32), 0.0, 1.0
    )


def as_array(raw: Any, expected: str = "a mask") -> NDArray[Any]:
    """Return the answer as a NumPy array; torch tensors and other objects with ``__array__`` are accepted.

    Args:
        raw: The system's answer.
        expected: Description of the expected answer, for the message.

    Raises:
        BadOutput: It is not an array of numbers.
    """
    if raw is None:
        raise BadOutput(f"gave None where {expected} is expected")
    if isinstance(raw, str | bytes | dict):
        raise BadOutput(f"gave {type(raw).__name__} where {expected} is expected")
    for method in ("detach", "cpu"):
        if hasattr(raw, method):
            raw = getattr(raw, method)()
    try:
        array = np.asarray(raw)
    except Exception as error:
        if _holds_maps(raw):
            raise _too_many_outputs(raw, "the map" if expected == "a mask" else expected) from None
        raise BadOutput(f"gave {type(raw).__name__}, which is not an array: {error}") from error
    if array.dtype == object:
        raise BadOutput(f"gave {type(raw).__name__}, which is not an array of numbers")
    return array


def _holds_maps(raw: Any) -> bool:
    """Return True if a function returned a map together with other values."""
    return isinstance(raw, list | tuple) and len(raw) > 1 and any(getattr(part, "ndim", 0) > 1 for part in raw)


def _too_many_outputs(raw: Any, expected: str) -> BadOutput:
    return BadOutput(f"gave a {type(raw).__name__} of {len(raw)}; return {expected} alone")


def _plane(array: NDArray[Any]) -> NDArray[Any]:
    if array.size == 0:
        raise BadOutput(f"gave an empty array of shape {array.shape}")
    plane = array
    while plane.ndim > 2 and plane.shape[0] == 1:
        plane = plane[0]
    while plane.ndim > 2 and plane.shape[-1] == 1:
        plane = plane[..., 0]
    if plane.ndim != 2:
        raise BadOutput(f"gave shape {array.shape}; one height × width map per image is expected")
    return plane


def _probability(plane: NDArray[Any]) -> Probability:
    if plane.dtype == np.bool_:
        return plane.astype(np.float32)
    if plane.dtype == np.uint8:
        return plane.astype(np.float32) * np.float32(1 / 255)
    if not np.issubdtype(plane.dtype, np.floating):
        raise BadOutput(f"gave dtype {plane.dtype}; bool, uint8 (0 to 255) or a float type (0 to 1) is expected")
    low, high = float(plane.min()), float(plane.max())
    # NaN anywhere makes the minimum NaN, and infinities are out of range: both comparisons fail.
    if not (low >= -SLACK and high <= 1 + SLACK):
        if not np.isfinite(plane).all():
            kind = "NaN" if np.isnan(plane).any() else "an infinite value"
            raise BadOutput(f"gave {kind}")
        raise BadOutput(f"gave values from {low:.4g} to {high:.4g}; probabilities in [0, 1] are expected")
    exact = np.ascontiguousarray(plane, dtype=np.float32)
    return exact if low >= 0 and high <= 1 else np.clip(exact, np.float32(0), np.float32(1))
