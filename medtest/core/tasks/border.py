"""The border where a system's answer comes in: what adapters and networks may give, checked once for all of them.

The one interface of every system, whether a network of ours, a user's function, an ONNX graph or a folder of maps:

* In: a batch of images, uint8 RGB H×W×3, contiguous. Of one size under ``prepare.size: 512``.
* Out: one answer per image, in the same order. An answer is a two-dimensional array of any size (it is resized to the
  image's): ``bool`` (a mask), ``uint8`` (probability × 255), or a float type (probability in [0, 1]). Leading and
  trailing axes of length 1 are dropped, so that 1×H×W, H×W×1 and 1×1×H×W are fine. What has two channels or more is
  refused: which of them is the lesion is the user's to say (see ``channel`` of the adapters).
* ``Missing(reason)`` instead of an array: the system has no answer; the case becomes SKIP.
* Everything else (a wrong shape or dtype, NaN, values outside of [0, 1], an exception) is a fault of the system under
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
"""A pixel belongs to the lesion where its probability exceeds this; systems with another threshold map theirs to it."""
SLACK = 1e-3
"""How far float answers may leave [0, 1], as rounding in half precision does; they are clipped."""


def check_mask(raw: Any, shape: tuple[int, int]) -> MaskOutput:
    """Return a system's raw answer as a segmentation of the prepared image.

    Args:
        raw: The answer, see the module's text.
        shape: Height and width of the prepared image.

    Returns:
        Probability (float32) and mask at that size; ``native`` holds the probability at the answer's own size where it
        is another.

    Raises:
        BadOutput: It is not an answer; the message says why.
    """
    if _holds_maps(raw):
        raise _several(raw, "the map")
    own = _probability(_plane(as_array(raw)))
    if own.shape == tuple(shape):
        return MaskOutput(mask=own > CUT, probability=own)
    resized = resize_probability(own, shape)
    return MaskOutput(mask=resized > CUT, probability=resized, native=own)


def resize_probability(probability: Probability, shape: tuple[int, int]) -> Probability:
    """Resize a map to height and width: bilinear with half-pixel centres, averaging areas where both sides shrink."""
    height, width = shape
    shrinks = height <= probability.shape[0] and width <= probability.shape[1]
    how = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return np.clip(np.asarray(cv2.resize(probability, (width, height), interpolation=how), np.float32), 0.0, 1.0)


def as_array(raw: Any, what: str = "a mask") -> NDArray[Any]:
    """Return the answer as a NumPy array; tensors of torch and what else knows ``__array__`` are taken too.

    Args:
        raw: What a system gave.
        what: What is expected, for the message.

    Raises:
        BadOutput: It is no array of numbers.
    """
    if raw is None:
        raise BadOutput(f"gave None where {what} is expected")
    if isinstance(raw, str | bytes | dict):
        raise BadOutput(f"gave {type(raw).__name__} where {what} is expected")
    for method in ("detach", "cpu"):
        if hasattr(raw, method):
            raw = getattr(raw, method)()
    try:
        found = np.asarray(raw)
    except Exception as error:
        if _holds_maps(raw):
            raise _several(raw, "the map" if what == "a mask" else what) from None
        raise BadOutput(f"gave {type(raw).__name__}, which is no array: {error}") from error
    if found.dtype == object:
        raise BadOutput(f"gave {type(raw).__name__}, which is no array of numbers")
    return found


def _holds_maps(raw: Any) -> bool:
    """Whether a function returned a map and something else beside it."""
    return isinstance(raw, list | tuple) and len(raw) > 1 and any(getattr(one, "ndim", 0) > 1 for one in raw)


def _several(raw: Any, what: str) -> BadOutput:
    return BadOutput(f"gave a {type(raw).__name__} of {len(raw)}; return {what} alone")


def _plane(found: NDArray[Any]) -> NDArray[Any]:
    if found.size == 0:
        raise BadOutput(f"gave an empty array of shape {found.shape}")
    plane = found
    while plane.ndim > 2 and plane.shape[0] == 1:
        plane = plane[0]
    while plane.ndim > 2 and plane.shape[-1] == 1:
        plane = plane[..., 0]
    if plane.ndim != 2:
        raise BadOutput(f"gave shape {found.shape}; one height × width map per image is expected")
    return plane


def _probability(plane: NDArray[Any]) -> Probability:
    if plane.dtype == np.bool_:
        return plane.astype(np.float32)
    if plane.dtype == np.uint8:
        return plane.astype(np.float32) * np.float32(1 / 255)
    if not np.issubdtype(plane.dtype, np.floating):
        raise BadOutput(f"gave dtype {plane.dtype}; bool, uint8 (0 to 255) or a float type (0 to 1) is expected")
    low, high = float(plane.min()), float(plane.max())
    # NaN anywhere makes the minimum NaN, and infinities leave the range: both comparisons fail.
    if not (low >= -SLACK and high <= 1 + SLACK):
        if not np.isfinite(plane).all():
            kind = "NaN" if np.isnan(plane).any() else "an infinite value"
            raise BadOutput(f"gave {kind}")
        raise BadOutput(f"gave values from {low:.4g} to {high:.4g}; probabilities in [0, 1] are expected")
    exact = np.ascontiguousarray(plane, dtype=np.float32)
    return exact if low >= 0 and high <= 1 else np.clip(exact, np.float32(0), np.float32(1))
