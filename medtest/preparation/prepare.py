"""From a seed as its file holds it to one ready for relations and systems (report 4.1.2)."""

from __future__ import annotations

from typing import Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.cases import SERIES_KINDS, Image, Mask, PreparedSeed, Seed
from medtest.preparation.frame import fit_field
from medtest.preparation.grey import grey_mask
from medtest.preparation.series import prepare_series

REVISION = 1
"""Raised whenever preparation gives other bytes for the same seed; enters a run's digest."""

A = TypeVar("A", bound=NDArray[Any])


def prepare(seed: Seed, *, size: int | None) -> PreparedSeed:
    """Resize a seed and compute the masks that every relation shares.

    Args:
        seed: The loaded source case, uint8 H×W×3; a series is as :func:`prepare_series` says.
        size: Side of the square in pixels (the report uses 512), or None to keep the native size.

    Returns:
        The prepared seed; its arrays are contiguous and read-only.
    """
    if seed.kind in SERIES_KINDS:
        return prepare_series(seed)
    image = resize_image(seed.image, size)
    height, width = seed.image.shape[:2]
    # The shape is fitted on the resized image, which has more pixels than the fit uses and is cheaper to shrink.
    frame = fit_field(image, aspect=width / height).frame(*image.shape[:2])
    original = None if seed.expected is None else np.ascontiguousarray(seed.expected, dtype=np.bool_)
    return PreparedSeed(
        ref=seed.ref,
        image=_locked(image),
        mask=None if original is None else _locked(resize_mask(original, size)),
        original_mask=None if original is None else _locked(original.copy()),
        frame=_locked(frame),
        grey=_locked(grey_mask(image, frame)),
        avoid=None if seed.avoid is None else _locked(resize_mask(seed.avoid, size)),
        spec=seed.spec,
    )


def resize_image(image: Image, size: int | None) -> Image:
    """Return the image as size×size, antialiased; a contiguous copy at its own size when ``size`` is None.

    Shrinking averages exactly over the area of each new pixel (``INTER_AREA``, a box filter, so detail finer than the
    new grid cannot alias into stripes beyond what a box leaves); enlarging is bilinear. When one axis shrinks and the
    other grows, the axes are treated one after the other.
    """
    height, width = image.shape[:2]
    if size is None or (height, width) == (size, size):
        return np.array(image, order="C")
    shrunk = (min(width, size), min(height, size))
    if shrunk != (width, height):
        image = cv2.resize(image, shrunk, interpolation=cv2.INTER_AREA)
    if shrunk != (size, size):
        image = cv2.resize(image, (size, size), interpolation=cv2.INTER_LINEAR)
    return np.ascontiguousarray(image)


def resize_mask(mask: Mask, size: int | None) -> Mask:
    """Return a bool mask as size×size by nearest neighbour (pixel centres); a copy when ``size`` is None."""
    if size is None or mask.shape == (size, size):
        return np.array(mask, dtype=np.bool_, order="C")
    source = np.ascontiguousarray(mask, dtype=np.bool_).view(np.uint8)
    small: Mask = cv2.resize(source, (size, size), interpolation=cv2.INTER_NEAREST_EXACT).view(np.bool_)
    return small


def _locked(array: A) -> A:
    array.setflags(write=False)
    return array
