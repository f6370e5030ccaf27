"""Control systems: reference results for algorithms that do nothing.

``identity`` returns its input and degrades exactly as the input does; ``constant`` never degrades (α = 0) but is
useless, which is why reports show mean quality next to α. For regions, identity thresholds the image at the middle of
its range, and constant always returns the empty region.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medtest.core.cases import Image, ImageSpec, Json
from medtest.systems.base import Algorithm, RawAnswer


class Control(Algorithm):
    """Base class: nothing to load, accepts any image."""

    tasks: ClassVar[tuple[str, ...]] = ("image", "region")

    def fingerprint(self) -> dict[str, Json]:
        """Return the expected kind of answer, which determines the output."""
        return {"kind": self.kind}


class Identity(Control):
    """Return the image unchanged; for regions, threshold it at the middle of its range."""

    def answer(self, image: Image, spec: ImageSpec) -> RawAnswer:
        """Return the image itself, or the region of its bright part."""
        if not self.task.masks:
            return image
        grey = image.mean(axis=-1, dtype=np.float32) if spec.coloured else image
        return np.asarray(grey > (spec.low + spec.high) / 2)


class Constant(Control):
    """Return middle grey or the empty region for every image."""

    def answer(self, image: Image, spec: ImageSpec) -> RawAnswer:
        """Return the same answer for every image."""
        if self.task.masks:
            return np.zeros(spec.spatial(image.shape), np.bool_)
        return np.full(image.shape, (spec.low + spec.high) / 2, np.float32)
