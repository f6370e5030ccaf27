"""Segmentation of images of any dimension: livers in volumes, moving objects in films."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.cases import Image, Mask, Output, RegionOutput, Seed
from medtest.tasks.base import AskedSystem, SystemInput
from medtest.tasks.series import SeriesTask
from medtest.tasks.series_border import check_region


class RegionTask(SeriesTask):
    """Systems answer with a region of the image's spatial shape, see :mod:`medtest.tasks.series_border`."""

    name: ClassVar[str] = "region"
    output: ClassVar[type[Output]] = RegionOutput
    masks: ClassVar[bool] = True
    oracle: ClassVar[str] = "regions"
    seeds: ClassVar[str] = "source cases"

    def truth(self, seed: Seed) -> tuple[Mask | None, Image | None]:
        """Return the expected region as the prepared seed's mask.

        Raises:
            ValueError: It is no bool array of the image's spatial shape.
        """
        known, shape = seed.expected, seed.image.shape
        if known is not None and (known.dtype != np.bool_ or known.shape != seed.spec.spatial(shape)):
            raise ValueError(f"the expected region is {known.dtype} {known.shape}; the image {shape}")
        return known, None

    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> RegionOutput:
        """Return the answer as a region.

        Raises:
            BadOutput: It is none of the image's spatial shape.
        """
        return check_region(raw, shown.image, shown.spec)

    def region(self, output: Output) -> NDArray[np.bool_] | None:
        """Return the region."""
        return output.region if isinstance(output, RegionOutput) else None
