"""The bilateral filter, OpenCV's."""

from __future__ import annotations

from typing import ClassVar

import cv2
import numpy as np
from pydantic import Field as Setting

from medtest.systems.base import SystemSettings
from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import Field


def bilateral(image: Field, *, size: int = 9, tonal: float = 50.0, sigma: float = 2.0) -> Field:
    """Filter by a mean weighted by distance and by likeness.

    Tomasi, Manduchi: Bilateral filtering for gray and color images. ICCV 1998; both weights Gaussian. In OpenCV the
    likeness of colours is judged by the sum of the channels' differences.

    Args:
        image: Float H×W or H×W×3 in grey levels.
        size: Diameter of the window, pixels.
        tonal: Standard deviation of likeness, grey levels.
        sigma: Standard deviation of distance, pixels.

    Returns:
        Same shape, float32.
    """
    given = np.ascontiguousarray(image, dtype=np.float32)
    return np.asarray(cv2.bilateralFilter(given, size, tonal, sigma, borderType=cv2.BORDER_REPLICATE))


class BilateralSettings(SystemSettings):
    """Settings; see :func:`bilateral`."""

    size: int = Setting(default=9, ge=3, le=51)
    tonal: float = Setting(default=50.0, gt=0.0, le=1000.0)
    sigma: float = Setting(default=2.0, gt=0.0, le=50.0)


class Bilateral(ImageFilter):
    """Tomasi and Manduchi's bilateral filter."""

    digest_name: ClassVar[str] = "medtest.systems.restoration.bilateral:Bilateral"
    Settings: ClassVar[type[SystemSettings]] = BilateralSettings

    def filter(self, pixels: Field) -> Field:
        """Filter one image."""
        one = self.settings
        return bilateral(pixels, size=one.size, tonal=one.tonal, sigma=one.sigma)
