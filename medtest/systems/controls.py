"""Control systems: what a study of robustness must say of algorithms that do nothing.

``identity`` gives its input back and falls as that falls; ``constant`` never falls (α = 0) and is useless all the same,
which is why mean quality stands beside α. Where a region is expected, identity takes the image itself for the answer
(what is brighter than the middle of its range), and constant finds nothing, ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from medtest.core.cases import Address, Image, ImageSpec, Json
from medtest.systems.base import RawAnswer
from medtest.systems.restoration.algorithm import Algorithm


class Control(Algorithm):
    """Base of both: nothing to load, any image of any kind."""

    tasks: ClassVar[tuple[str, ...]] = ("image", "region")

    def fingerprint(self) -> dict[str, Json]:
        """Return what is expected: the answers differ by that."""
        return {"kind": self.kind}


class Identity(Control):
    """Gives the image back, byte by byte; as a region, where it is brighter than the middle of its range."""

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Return the images themselves."""
        if self.task.masks:
            return [_bright(image, spec) for image, spec in zip(images, specs, strict=True)]
        return list(images)


class Constant(Control):
    """Gives middle grey, or the empty region, whatever it is shown."""

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Return the same for every image."""
        if self.task.masks:
            return [np.zeros(spec.spatial(image.shape), np.bool_) for image, spec in zip(images, specs, strict=True)]
        return [
            np.full(image.shape, (spec.low + spec.high) / 2, np.float32)
            for image, spec in zip(images, specs, strict=True)
        ]


def _bright(image: Image, spec: ImageSpec) -> Image:
    grey = image.mean(axis=-1, dtype=np.float32) if spec.coloured else image
    return np.asarray(grey > (spec.low + spec.high) / 2)
