"""Warps of the whole picture: matrices about its centre, exact bilinear sampling, crops of a wider picture.

If a seed was cropped from the centre of a wider picture, the wider one is warped and cropped again, so that the warp
brings in pixels from beyond the crop, as in ImageNet-P (256 pixels, crop of 224). Everything outside is black.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, PreparedSeed
from medtest.core.portable import product
from medtest.core.recent import per_seed

Matrix = NDArray[np.float64]
"""3×3 matrix that maps a point (x, y, 1) in pixels; pixel centres are at integer coordinates."""


def wide_picture(seed: PreparedSeed) -> Image:
    """Return the picture to warp: the wider one if available, else the image; uint8 H'×W'×3 or H×W×3."""
    return seed.image if seed.wide is None else seed.wide


@per_seed
def crop_corner(seed: PreparedSeed) -> tuple[int, int]:
    """Return row and column of the image's corner in the wide picture; (0, 0) without one."""
    if seed.wide is None:
        return 0, 0
    spare = seed.wide.shape[0] - seed.height, seed.wide.shape[1] - seed.width
    # Half of an odd number of spare pixels may have been rounded either way.
    for row in (spare[0] // 2, -(-spare[0] // 2)):
        for column in (spare[1] // 2, -(-spare[1] // 2)):
            if np.array_equal(seed.wide[row : row + seed.height, column : column + seed.width], seed.image):
                return row, column
    return spare[0] // 2, spare[1] // 2


def about_centre(matrix: Matrix, shape: tuple[int, ...]) -> Matrix:
    """Return a 3×3 matrix that acts about the exact centre of a picture; pixel centres are at integer coordinates."""
    height, width = shape[:2]
    centre = shifted((width - 1) / 2.0, (height - 1) / 2.0)
    back = shifted(-(width - 1) / 2.0, -(height - 1) / 2.0)
    return product(product(centre, matrix), back)


def shifted(right: float, down: float) -> Matrix:
    """Return the 3×3 matrix of a translation."""
    return np.array([[1.0, 0.0, right], [0.0, 1.0, down], [0.0, 0.0, 1.0]])


def warped(seed: PreparedSeed, matrix: Matrix) -> Image:
    """Warp the wide picture and crop it to the image in one step.

    Args:
        seed: Seed whose image or wide picture is warped.
        matrix: 3×3, maps a point (x, y) of the wide picture to the warped one.

    Returns:
        uint8 of the image's shape, sampled bilinearly, black outside the picture.
    """
    row, column = crop_corner(seed)
    full = product(shifted(-column, -row), matrix)
    picture, size = wide_picture(seed), (seed.width, seed.height)
    if np.array_equal(full[2], [0.0, 0.0, 1.0]):
        return np.asarray(cv2.warpAffine(picture, full[:2], size, flags=cv2.INTER_LINEAR))
    return np.asarray(cv2.warpPerspective(picture, full, size, flags=cv2.INTER_LINEAR))


def image_matrix(seed: PreparedSeed, matrix: Matrix) -> Matrix:
    """Convert a matrix from coordinates of the wide picture to those of the image.

    Args:
        seed: Seed that gives the image's position in the wide picture.
        matrix: 3×3, acts on points (x, y) of the wide picture.

    Returns:
        3×3, acts on points (x, y) of the image; the same matrix without a wide picture.
    """
    row, column = crop_corner(seed)
    return product(product(shifted(-column, -row), matrix), shifted(column, row))
