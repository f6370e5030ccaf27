"""Well-known pictures shipped with scikit-image: a default set for filters, without a download.

Only files in scikit-image's wheel are named; its other pictures are fetched over the network, which medtest never does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.core.errors import MedtestError
from medtest.core.files.images import BadFileError, read_rgb

_FILES: dict[str, str] = {
    "astronaut": "astronaut.png",
    "brick": "brick.png",
    "camera": "camera.png",
    "cell": "cell.png",
    "chelsea": "chelsea.png",
    "coffee": "coffee.png",
    "coins": "coins.png",
    "grass": "grass.png",
    "gravel": "gravel.png",
    "ihc": "ihc.png",
    "moon": "moon.png",
    "retina": "retina.jpg",
    "rocket": "rocket.jpg",
}

NAMES: tuple[str, ...] = tuple(_FILES)
"""Thirteen pictures: people, objects, textures, and three of medicine and biology (cell, ihc, retina)."""

MOST_SIDE = 512
"""Larger pictures (cell, retina, rocket) are cropped to their centre: scaling would remove their noise."""


def load_image(name: str) -> NDArray[np.uint8]:
    """Return one picture as uint8, H×W if grey, H×W×3 RGB if coloured.

    Args:
        name: One of :data:`NAMES`.

    Raises:
        MedtestError: scikit-image is not installed, or its installation lacks the file.
        KeyError: There is no such picture.
    """
    path = _folder() / _FILES[name]
    try:
        image = read_rgb(path)
    except (BadFileError, OSError) as error:
        raise MedtestError(f"picture {path.name} of scikit-image {error}") from error
    image = central_crop(image, MOST_SIDE)
    grey = (image[..., 0] == image[..., 1]).all() and (image[..., 1] == image[..., 2]).all()
    return np.ascontiguousarray(image[..., 0] if grey else image)


def central_crop(image: Image, side: int) -> Image:
    """Return the centre of an image, at most ``side`` pixels high and wide."""
    height, width = image.shape[:2]
    top, start = max(0, (height - side) // 2), max(0, (width - side) // 2)
    return image[top : top + side, start : start + side]


def _folder() -> Path:
    try:
        import skimage
    except ImportError as error:
        raise MedtestError("the default pictures come with scikit-image: pip install scikit-image") from error
    return Path(skimage.__file__).parent / "data"
