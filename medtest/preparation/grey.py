"""Grey mask: relative illumination of pasted content at each pixel.

The report (4.1.2) makes "gray masks" by a sigmoid of the image's brightness, so that pasted content fits the light
around it. Its constants are not given; ours are below. The local brightness is a Gaussian blur of the luminance over
the field alone (the black frame does not darken its neighbours), compared with the field's mean and spread:

    grey = 1 / (1 + exp(-SLOPE * (local - mean) / spread - OFFSET))

so an average pixel has ``sigmoid(OFFSET)``, a dark lumen tends to 0, and the result does not depend on the exposure of
the whole image. It is 0 on the frame.
"""

from __future__ import annotations

import cv2
import numpy as np

from medtest.core.cases import Image, Mask, Probability

BLUR = 1 / 24
"""Standard deviation of the blur, as a fraction of the image's shorter side."""

SLOPE = 1.5
"""Steepness of the sigmoid per standard deviation of the field's local brightness."""

OFFSET = 1.4
"""Value of the sigmoid's argument at the field's mean brightness: sigmoid(1.4) = 0.80."""

MIN_SPREAD = 12.0
"""Smallest spread in grey levels; an evenly lit field gets an even mask instead of amplified noise."""

WORKING_SIDE = 128
"""Approximate pixels on the longer side for computing the smooth grey mask before enlarging it."""


def grey_mask(image: Image, frame: Mask) -> Probability:
    """Return float32 H×W in [0, 1]: sigmoid of local brightness relative to the field's, 0 on the frame.

    Args:
        image: uint8 H×W×3 RGB.
        frame: bool H×W, True on the black frame.
    """
    height, width = frame.shape
    if frame.all():
        return np.zeros((height, width), np.float32)
    scale = min(1.0, WORKING_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    light = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY).astype(np.float32)
    inside = cv2.resize((~frame).astype(np.float32), size, interpolation=cv2.INTER_AREA)
    sigma = max(0.5, BLUR * min(size))
    weight = cv2.GaussianBlur(inside, (0, 0), sigma)
    local = cv2.GaussianBlur(light * inside, (0, 0), sigma) / np.maximum(weight, 1e-3)
    total = float(inside.sum())
    mean = float((local * inside).sum()) / total
    spread = float(np.sqrt((np.square(local - mean) * inside).sum() / total))
    argument = (local - mean) * (SLOPE / max(spread, MIN_SPREAD)) + OFFSET
    grey = 1 / (1 + np.exp(-argument))
    full = cv2.resize(grey.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    full[frame] = 0
    return np.clip(full, 0, 1)
