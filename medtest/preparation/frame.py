"""The black frame around the field of view (first, rough version; being replaced by the geometric fit)."""

from __future__ import annotations

import cv2
import numpy as np

from medtest.cases import Image, Mask


def find_frame(image: Image) -> Mask:
    """Return True on the black frame of an uint8 H×W×3 image."""
    dark = cv2.GaussianBlur(image.max(axis=2), (0, 0), 2) < 24
    bright = np.zeros(dark.shape, np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats((~dark).astype(np.uint8))
    if count > 1:
        bright[labels == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))] = 1
    points = cv2.findNonZero(bright)
    if points is None:
        return np.ones(dark.shape, bool)
    field = cv2.fillConvexPoly(np.zeros(dark.shape, np.uint8), cv2.convexHull(points), 1)
    frame: Mask = field == 0
    return frame
