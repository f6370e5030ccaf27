"""The median filter, OpenCV's."""

from __future__ import annotations

from typing import ClassVar, Literal

import cv2
import numpy as np
from pydantic import Field as Setting

from medtest.systems.base import SystemSettings
from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import Field


def median(image: Field, *, size: Literal[3, 5] = 3) -> Field:
    """Filter by the median of a square window.

    Huang, Yang, Tang: A fast two-dimensional median filtering algorithm. IEEE Trans. ASSP 27 (1979).

    Args:
        image: Float H×W or H×W×C in grey levels; channels are filtered one by one.
        size: Side of the window, pixels.

    Returns:
        Same shape, float32.
    """
    return np.asarray(cv2.medianBlur(np.ascontiguousarray(image, dtype=np.float32), size))


class MedianSettings(SystemSettings):
    """Settings; see :func:`median`."""

    size: Literal[3, 5] = Setting(default=3)


class Median(ImageFilter):
    """The median of a square window."""

    digest_name: ClassVar[str] = "medtest.systems.restoration.median:Median"
    Settings: ClassVar[type[SystemSettings]] = MedianSettings

    def filter(self, pixels: Field) -> Field:
        """Filter one image."""
        return median(pixels, size=self.settings.size)
