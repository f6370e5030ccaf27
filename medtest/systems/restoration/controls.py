"""Control systems: what a study of robustness must say of algorithms that do nothing.

``identity`` falls as the input falls; ``constant`` never falls (α = 0) and is useless all the same, which is why mean
quality stands beside α. Their counterparts for regions: a threshold in the middle of the range, which reads the image
itself as the answer, and the empty region.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.cases import Address, Image, ImageSpec
from medtest.systems.base import RawAnswer
from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.segmenter import Segmenter


class Identity(ImageFilter):
    """Gives the image back, byte by byte."""

    def filter(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the pixels."""
        return pixels

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Return the images themselves, not by way of grey levels."""
        return list(images)


class Constant(ImageFilter):
    """Gives a picture of the range's middle, whatever it is shown."""

    def filter(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return middle grey."""
        return np.full_like(pixels, 127.5)


class Threshold(Segmenter):
    """Takes for the region what is brighter than the middle of the range (the mean of colours)."""

    revision: ClassVar[int] = 1

    def segment(self, volume: Image, spec: ImageSpec) -> NDArray[np.bool_]:
        """Return where the image is above the middle of its range."""
        grey = volume.mean(axis=-1, dtype=np.float32) if spec.coloured else volume
        return np.asarray(grey > (spec.low + spec.high) / 2)


class Empty(Segmenter):
    """Finds nothing, ever."""

    def segment(self, volume: Image, spec: ImageSpec) -> NDArray[np.bool_]:
        """Return the empty region."""
        return np.zeros(spec.spatial(volume.shape), np.bool_)
