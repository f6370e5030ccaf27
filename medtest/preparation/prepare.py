"""Preparation of loaded seeds for relations and systems (report 4.1.2)."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from medtest.core.cases import NO_IMAGE, Image, Mask, PreparedSeed, Seed
from medtest.core.tasks.base import task_of
from medtest.preparation.frame import fit_field
from medtest.preparation.grey import grey_mask
from medtest.preparation.series import locked, prepare_series

REVISION = 1
"""Increased whenever preparation gives other bytes for the same seed; part of a run's digest."""


def prepare(seed: Seed, *, size: int | None, resize: int | None = None) -> PreparedSeed:
    """Resize a seed and compute the masks shared by all relations.

    Args:
        seed: The loaded source case, uint8 H×W×3; for a series see :func:`prepare_series`.
        size: Side of the square in pixels (the report uses 512), or None to keep the native size. A prompt has none.
        resize: Length in pixels, at least ``size``, of the shorter side before the central ``size`` × ``size`` is
            cropped; None stretches the whole image to the square.

    Returns:
        The prepared seed; its arrays are contiguous and read-only.
    """
    if seed.prompt is not None:
        return _prepare_prompt(seed)
    if task_of(seed.kind).series:
        return prepare_series(seed)
    if resize is not None and size is not None:
        return _cropped(seed, size, resize)
    image = resize_image(seed.image, size)
    height, width = seed.image.shape[:2]
    # The shape is fitted to the resized image, which has enough pixels for the fit and is cheaper to shrink.
    frame = fit_field(image, aspect=width / height).frame(*image.shape[:2])
    original = None if seed.expected is None else np.ascontiguousarray(seed.expected, dtype=np.bool_)
    return PreparedSeed(
        image=locked(image),
        mask=None if original is None else locked(resize_mask(original, size)),
        original_mask=None if original is None else locked(original.copy()),
        frame=locked(frame),
        grey=locked(grey_mask(image, frame)),
        avoid=None if seed.avoid is None else locked(resize_mask(seed.avoid, size)),
        **_unchanged_fields(seed),
    )


def _prepare_prompt(seed: Seed) -> PreparedSeed:
    """Return a seed whose input is a prompt, without pixels, frame or grey mask."""
    nothing = np.zeros((0, 0), np.bool_)
    return PreparedSeed(
        image=NO_IMAGE,
        mask=None,
        original_mask=None,
        frame=locked(nothing),
        grey=locked(nothing.astype(np.float32)),
        **_unchanged_fields(seed),
    )


def _unchanged_fields(seed: Seed) -> dict[str, Any]:
    """Return the fields that a prepared seed takes unchanged from its seed."""
    names = ("ref", "spec", "kind", "classes", "labels", "asks", "together", "truth", "prompt")
    return {"properties": dict(seed.properties), **{name: getattr(seed, name) for name in names}}


def _cropped(seed: Seed, size: int, resize: int) -> PreparedSeed:
    """Return the centre crop of a seed whose shorter side was resized, with the whole picture as ``wide``."""
    shape = shorter_side(seed.image.shape[:2], resize)
    wide = _to_shape(seed.image, shape)
    middle = _middle(shape, size)
    image = np.array(wide[middle], order="C")
    frame = fit_field(image).frame(size, size)

    def cut(mask: Mask | Image | None) -> Mask | None:
        return None if mask is None else locked(np.array(_mask_to_shape(mask, shape)[middle], order="C"))

    return PreparedSeed(
        image=locked(image),
        mask=cut(seed.expected),
        original_mask=None,  # at the file's size it would contain parts outside the crop
        frame=locked(frame),
        grey=locked(grey_mask(image, frame)),
        avoid=cut(seed.avoid),
        **_unchanged_fields(seed),
        wide=None if shape == (size, size) else locked(wide),
    )


def _middle(shape: tuple[int, int], size: int) -> tuple[slice, slice]:
    """Return the window of the central ``size`` × ``size`` of a picture of this height and width."""
    top, left = (round((side - size) / 2) for side in shape)
    return slice(top, top + size), slice(left, left + size)


def prepared_image(image: Image, *, size: int | None, resize: int | None = None) -> Image:
    """Return only the image that :func:`prepare` makes of a seed, as a contiguous copy.

    Args:
        image: uint8 H×W×3.
        size: Side of the result in pixels; None leaves the image at its own size.
        resize: Length of the shorter side before the central ``size`` × ``size`` is cropped; None stretches instead.

    Returns:
        uint8 size×size×3, or H×W×3 if ``size`` is None.
    """
    if size is None or resize is None:
        return resize_image(image, size)
    shape = shorter_side(image.shape[:2], resize)
    return np.array(_to_shape(image, shape)[_middle(shape, size)], order="C")


def shorter_side(shape: tuple[int, ...], length: int) -> tuple[int, int]:
    """Return height and width after resizing the shorter side to ``length``; the longer one is rounded down."""
    height, width = shape[:2]
    return (length, length * width // height) if height <= width else (length * height // width, length)


def resize_image(image: Image, size: int | None) -> Image:
    """Return a uint8 H×W×3 image as size×size, antialiased; a contiguous copy at its own size if ``size`` is None.

    Shrinking averages exactly over the area of each new pixel (``INTER_AREA``, a box filter, so detail finer than the
    new grid cannot alias into stripes beyond what a box leaves); enlarging is bilinear. When one axis shrinks and the
    other grows, the axes are resized one after the other.
    """
    return np.array(image, order="C") if size is None else _to_shape(image, (size, size))


def _to_shape(image: Image, shape: tuple[int, int]) -> Image:
    """Return the image at height and width, resized as in :func:`resize_image`; a copy if it has them."""
    height, width = image.shape[:2]
    if (height, width) == shape:
        return np.array(image, order="C")
    shrunk = (min(width, shape[1]), min(height, shape[0]))
    if shrunk != (width, height):
        image = cv2.resize(image, shrunk, interpolation=cv2.INTER_AREA)
    if shrunk != shape[::-1]:
        image = cv2.resize(image, shape[::-1], interpolation=cv2.INTER_LINEAR)
    return np.ascontiguousarray(image)


def resize_mask(mask: Mask, size: int | None) -> Mask:
    """Return a bool mask as size×size by nearest neighbour (pixel centres); a copy if ``size`` is None."""
    return np.array(mask, dtype=np.bool_, order="C") if size is None else _mask_to_shape(mask, (size, size))


def _mask_to_shape(mask: Mask | Image, shape: tuple[int, int]) -> Mask:
    if mask.shape == shape:
        return np.array(mask, dtype=np.bool_, order="C")
    source = np.ascontiguousarray(mask, dtype=np.bool_).view(np.uint8)
    small: Mask = cv2.resize(source, shape[::-1], interpolation=cv2.INTER_NEAREST_EXACT).view(np.bool_)
    return small
