"""Colour exchange: a training image takes the colours of another one.

Wei et al., "Shallow Attention Network for Polyp Segmentation", MICCAI 2021, section 2.1: both images are converted to
LAB, and each channel of the first is moved to the mean and standard deviation of the second.
"""

from __future__ import annotations

from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
FLAT = 1e-3
"""Smaller standard deviations (in LAB's 8-bit steps) are not used as divisors: the channel is constant."""


Colours: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Mean and standard deviation of the three channels of an image in OpenCV's 8-bit LAB."""


def colours_of(image: Pixels) -> Colours:
    """Return the colour statistics of an image, uint8 RGB."""
    mean, std = cv2.meanStdDev(cv2.cvtColor(image, cv2.COLOR_RGB2LAB))
    return np.asarray(mean[:, 0], np.float64), np.asarray(std[:, 0], np.float64)


def exchange_colours(image: Pixels, donor: Colours, *, wrap: bool = False) -> Pixels:
    """Return an image with the colours of another.

    Args:
        image: uint8 H×W×3 RGB.
        donor: Statistics of the other.
        wrap: Whether values outside of 0 to 255 wrap around, an oversight in the published training that causes
            speckles; otherwise they are clipped.

    Returns:
        uint8 H×W×3 RGB.
    """
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB).astype(np.float32)
    mean, std = colours_of(image)
    scale = np.divide(donor[1], std, out=np.ones(3), where=std > FLAT).astype(np.float32)
    moved = (lab - mean.astype(np.float32)) * scale + np.asarray(donor[0], np.float32)
    whole = moved.astype(np.int64) % 256 if wrap else np.clip(np.rint(moved), 0, 255)
    return np.asarray(cv2.cvtColor(whole.astype(np.uint8), cv2.COLOR_LAB2RGB), np.uint8)
