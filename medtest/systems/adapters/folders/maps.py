"""Prediction maps from files, with size checks before decoding and one clear reason on failure.

A map holds a number per pixel, so 16 bits and floats must be preserved, unlike in an image.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from medtest.core.errors import BadOutput
from medtest.core.files.images import MAX_BYTES_A_PIXEL, SPARE_BYTES, BadFileError, opened_picture, read_bytes


def read_map(path: Path, *, max_pixels: int, labels: bool) -> NDArray[Any]:
    """Return a picture or ``.npy`` file as a map for :func:`medtest.core.tasks.border.check_mask`.

    Args:
        path: The file.
        max_pixels: Larger maps are rejected before decoding.
        labels: Whether every value but 0 is lesion, instead of values being probabilities.

    Returns:
        h×w bool for labels; otherwise uint8 (8-bit pictures) or float32 (16-bit ones, divided by 65535; floats
        unchanged). A ``.npy`` array is returned unchanged.

    Raises:
        BadOutput: It is not a readable map within the limit.
    """
    try:
        if path.stat().st_size > max_pixels * MAX_BYTES_A_PIXEL + SPARE_BYTES:
            raise BadOutput(f"{path.name} is larger than a map of {max_pixels / 1e6:g} Mpixel can be")
        values = _npy(path, max_pixels) if path.suffix.lower() == ".npy" else _picture(path, max_pixels)
    except OSError as error:
        raise BadOutput(f"{path.name} cannot be read: {error}") from error
    return np.asarray(values != 0) if labels else values


def _npy(path: Path, max_pixels: int) -> NDArray[Any]:
    try:
        # memory-mapped, because the header of a small file may declare an array of any size
        mapped = np.load(path, allow_pickle=False, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise BadOutput(f"{path.name} is not an array that can be read: {error}") from error
    if mapped.size > max_pixels:
        raise BadOutput(f"{path.name} holds {mapped.size / 1e6:.1f} million values; the bound is {max_pixels / 1e6:g}")
    return np.array(mapped)


def _picture(path: Path, max_pixels: int) -> NDArray[Any]:
    try:
        with opened_picture(read_bytes(path, max_pixels=max_pixels), max_pixels) as picture:
            picture.load()
            return _values(picture)
    except BadFileError as error:
        raise BadOutput(f"{path.name} {error}") from error


def _values(picture: Pillow.Image) -> NDArray[Any]:
    if picture.mode.startswith("F"):
        return np.asarray(picture, np.float32)
    if picture.mode.startswith("I"):
        return np.asarray(picture).astype(np.float32) / np.float32(65535)
    if picture.mode == "1":
        return np.asarray(picture, np.bool_)
    if picture.mode == "L":
        return np.asarray(picture)
    # In a coloured map any lit channel counts; transparency is not part of a prediction.
    return np.asarray(np.asarray(picture.convert("RGB")).max(axis=2))
