"""Conversion of pictures to the values and the layout that a library expects, and back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.core.errors import BadOutput, NotApplicable

_WHITE = np.float32(255.0)
_SHARE = np.float32(1.0 / 255.0)
_AT_ONCE = 1 << 16
"""Numbers that are converted at a time, so that they stay in the processor's cache."""


def float_planes(image: Image) -> NDArray[np.float32]:
    """Return a picture, uint8 H×W×C, as float32 C×H×W from 0 to 1."""
    return np.asarray(np.multiply(planes(image), _SHARE, dtype=np.float32))


def planes(array: NDArray[Any]) -> NDArray[Any]:
    """Return H×W×C as C×H×W, contiguous."""
    turned = array.transpose(2, 0, 1)
    if turned.flags.c_contiguous:
        return turned
    result = np.empty(turned.shape, array.dtype)
    cv2.split(array, list(result))  # faster than NumPy's copy of a transposed array
    return result


@contextmanager
def seeded_torch(seed: int) -> Iterator[None]:
    """Seed torch's generator of this machine, and put it back afterwards.

    ``torch.manual_seed`` would also note the seed, with the whole stack, for every kind of device: more than a
    millisecond.
    """
    state = torch.default_generator.get_state()
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.default_generator.set_state(state)


def pixels(channels: NDArray[Any]) -> NDArray[Any]:
    """Return C×H×W as H×W×C, contiguous."""
    return np.asarray(cv2.merge([np.ascontiguousarray(channel) for channel in channels])).reshape(
        *channels.shape[1:], channels.shape[0]
    )


def levels(values: NDArray[Any], white: np.float32 = _WHITE) -> NDArray[np.uint8]:
    """Return numbers on the scale of 0 to ``white`` as uint8 of their shape, rounded and clipped.

    Raises:
        BadOutput: A number is not finite.
    """
    numbers = np.ascontiguousarray(values, np.float32).reshape(-1)
    result, scale = np.empty(numbers.shape, np.uint8), float(_WHITE / white)
    clipped = np.empty(min(_AT_ONCE, len(numbers)), np.float32)
    for start in range(0, len(numbers), _AT_ONCE):
        part = numbers[start : start + _AT_ONCE]
        if not math.isfinite(cv2.sumElems(part)[0]):  # summed in float64, which no float32 overflows
            raise BadOutput("made numbers that are not finite")
        within = np.clip(part, 0.0, white, out=clipped[: len(part)])
        cv2.convertScaleAbs(within, result[start : start + _AT_ONCE], scale)
    return result.reshape(values.shape)


def share_levels(shares: NDArray[Any]) -> NDArray[np.uint8]:
    """Return numbers from 0 to 1 as :func:`levels` does."""
    return levels(shares, np.float32(1.0))


def as_picture(changed: NDArray[Any], like: Image) -> Image:
    """Convert the picture of a library to uint8 in a source's shape: clip, round, repeat grey.

    Args:
        changed: H×W×3, or H×W×1 or H×W if it is grey; uint8, or other numbers on the scale of 0 to 255.
        like: The picture that was changed.

    Raises:
        NotApplicable: It has another size, as of a quarter turn of a picture that is no square.
        BadOutput: It has numbers that are not finite.
    """
    array = np.asarray(changed)
    array = array[..., None] if array.ndim == 2 else array
    if array.shape[:2] != like.shape[:2] or array.shape[2:] not in ((1,), (3,)):
        size, source_size = ("×".join(map(str, shape)) for shape in (changed.shape, like.shape))
        raise NotApplicable(f"it makes a picture of {size} from one of {source_size}")
    array = array if array.dtype == np.uint8 else levels(array)
    array = np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array
    picture = np.ascontiguousarray(array, dtype=np.uint8)
    return picture.copy() if np.may_share_memory(picture, like) else picture
