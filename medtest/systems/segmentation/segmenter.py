"""What a bundled segmenter of volumes or films is: one image in, one region out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Image, ImageSpec
from medtest.systems.base import RawAnswer
from medtest.systems.restoration.algorithm import Algorithm


class Segmenter(Algorithm):
    """An algorithm that gives a region for an image of any dimension. Subclasses write :meth:`segment`."""

    tasks: ClassVar[tuple[str, ...]] = ("region",)

    @abstractmethod
    def segment(self, volume: Image, spec: ImageSpec) -> NDArray[np.bool_]:
        """Segment one image.

        Args:
            volume: Read-only, in its own numbers (Hounsfield units of CT), with the axes that ``spec`` names.
            spec: Range, spacing in millimetres, and the points that a person clicked (``marks``).

        Returns:
            bool of the image's spatial shape.
        """

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Segment images of any dtype and dimension, one by one."""
        return [self.segment(image, spec) for image, spec in zip(images, specs, strict=True)]
