"""Preparation of series: images of any dtype, range and dimension are kept unchanged."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import PreparedSeed, Seed
from medtest.core.tasks.base import task_of
from medtest.preparation.frame import fit_field
from medtest.preparation.grey import grey_mask


def prepare_series(seed: Seed) -> PreparedSeed:
    """Check a seed of a series and add the masks that relations of other suites need.

    Nothing is resized and no byte of the image changes. A flat 8-bit RGB image gets its black frame and grey mask, so
    that relations for such images apply; all others have no frame (arrays that take no memory).

    Args:
        seed: Seed of a task on series.

    Raises:
        ValueError: Image, truth and spec do not match; the seed becomes an ERROR with this reason.
    """
    image, spec = seed.image, seed.spec
    _check(seed)
    spatial = spec.spatial(image.shape)
    if is_flat_rgb(seed):
        height, width = spatial
        frame = fit_field(image, aspect=width / height).frame(height, width)
        grey = grey_mask(image, frame)
    else:
        frame = np.broadcast_to(np.False_, spatial)
        grey = np.broadcast_to(np.float32(0), spatial)
    mask, clean = task_of(seed.kind).border.truth(seed)
    return PreparedSeed(
        ref=seed.ref,
        image=locked(np.ascontiguousarray(image)),
        mask=None if mask is None else locked(np.ascontiguousarray(mask)),
        original_mask=None,
        frame=locked(frame),
        grey=locked(grey),
        spec=spec,
        kind=seed.kind,
        clean=None if clean is None else locked(np.ascontiguousarray(clean)),
        properties=dict(seed.properties),
        truth=seed.truth,
    )


A = TypeVar("A", bound=NDArray[Any])


def is_flat_rgb(seed: Seed | PreparedSeed) -> bool:
    """Return True if the image has the usual format: 8-bit RGB, height by width."""
    image = seed.image
    return seed.spec.axes == "yxc" and image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3


def _check(seed: Seed) -> None:
    image, spec = seed.image, seed.spec
    if image.ndim != len(spec.axes) or image.size == 0:
        raise ValueError(f"the image has shape {image.shape}; its axes are {spec.axes}")
    if spec.coloured and image.shape[-1] != 3:
        raise ValueError(f"the image has {image.shape[-1]} colours where 3 are expected")
    if image.dtype != np.dtype(spec.dtype):
        raise ValueError(f"the image is {image.dtype}; {spec.dtype} was announced")
    if not (np.isfinite(spec.low) and np.isfinite(spec.high) and spec.low < spec.high):
        raise ValueError(f"the range from {spec.low} to {spec.high} is empty")
    if np.issubdtype(image.dtype, np.floating) and not np.isfinite(image).all():
        raise ValueError("the image holds NaN or infinite values")


def locked(array: A) -> A:
    """Make an array read-only and return it."""
    array.setflags(write=False)
    return array
