"""Base class of bundled segmenters of volumes or films: one image in, one region out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Image, ImageSpec
from medtest.systems.base import Algorithm, RawAnswer


class Segmenter(Algorithm):
    """Algorithm that maps an image of any dimension to a region. Subclasses implement :meth:`segment`."""

    tasks: ClassVar[tuple[str, ...]] = ("region",)

    @abstractmethod
    def segment(self, volume: Image, spec: ImageSpec) -> NDArray[np.bool_]:
        """Segment one image.

        Args:
            volume: Read-only, in its own units (Hounsfield units for CT), with the axes named in ``spec``.
            spec: Range, spacing in millimetres, and the points clicked by a person (``marks``).

        Returns:
            bool of the image's spatial shape.
        """

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Segment images of any dtype and dimension, one by one."""
        return [self.segment(image, spec) for image, spec in zip(images, specs, strict=True)]
