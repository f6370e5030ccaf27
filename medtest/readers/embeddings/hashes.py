"""The perceptual hash of a picture: the signs of its lowest frequencies.

C. Zauner, Implementation and benchmarking of perceptual image hash functions, 2010, with 256 bits instead of 64.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np

from medtest.core.cases import Image

HASH: Final = "perceptual hash 256, revision 1"
"""Key under which hashes are stored, instead of a network's key."""
BITS: Final = 256
_SIDE: Final = 64
_LOW: Final = 16


def perceptual_hash(image: Image) -> bytes:
    """Return the signs of 256 low frequencies of a picture's brightness relative to their median: 32 bytes.

    Args:
        image: uint8 H×W×3 RGB.
    """
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(grey, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    low = cv2.dct(small)[:_LOW, :_LOW].copy()
    low[0, 0] = 0.0  # overall brightness
    return np.packbits((low > np.median(low)).ravel()).tobytes()
