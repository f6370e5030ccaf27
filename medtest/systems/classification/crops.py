"""Resizing and cropping of pictures to a classifier's input size.

Yields the same pixels as torchvision's transforms of Pillow images, which the authors of published classifiers use:
bilinear, antialiased when shrinking. Tests compare them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from medtest.core.cases import Image

Interpolation: TypeAlias = Literal["nearest", "bilinear", "bicubic", "lanczos"]
_FILTERS = {
    "nearest": Pillow.Resampling.NEAREST,
    "bilinear": Pillow.Resampling.BILINEAR,
    "bicubic": Pillow.Resampling.BICUBIC,
    "lanczos": Pillow.Resampling.LANCZOS,
}


def stretched(image: Image, height: int, width: int, filter_name: Interpolation = "bilinear") -> Image:
    """Return an image resized to a height and width, ignoring its aspect ratio.

    Args:
        image: uint8 RGB H×W×3.
        height: Target height.
        width: Target width.
        filter_name: Filter.
    """
    if image.shape[:2] == (height, width):
        return image
    return np.asarray(Pillow.fromarray(image).resize((width, height), _FILTERS[filter_name]))


def shorter_side(image: Image, side: int, filter_name: Interpolation = "bilinear") -> Image:
    """Return an image resized so that its shorter side has ``side`` pixels; the longer one is rounded down."""
    height, width = image.shape[:2]
    if height <= width:
        return stretched(image, side, int(side * width / height), filter_name)
    return stretched(image, int(side * height / width), side, filter_name)


def middle(image: Image, side: int) -> Image:
    """Return the central square of ``side`` pixels, with an odd margin split as in torchvision.

    Args:
        image: uint8 RGB, both sides at least ``side``.
        side: Rows and columns of the crop.
    """
    top, left = round((image.shape[0] - side) / 2), round((image.shape[1] - side) / 2)
    return image[top : top + side, left : left + side]


def ten_crops(image: Image, side: int) -> NDArray[np.uint8]:
    """Return four corners and the centre, and the same of the mirrored image.

    Args:
        image: uint8 RGB, both sides at least ``side``.
        side: Rows and columns of each crop.

    Returns:
        uint8 10×side×side×3.
    """
    return np.stack([crop for view in (image, image[:, ::-1]) for crop in _five(view, side)])


def _five(image: Image, side: int) -> list[Image]:
    bottom, right = image.shape[0] - side, image.shape[1] - side
    corners = [(0, 0), (0, right), (bottom, 0), (bottom, right)]
    cut = [image[top : top + side, left : left + side] for top, left in corners]
    return [*cut, middle(image, side)]
