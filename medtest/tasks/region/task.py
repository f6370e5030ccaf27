"""Task of segmentation in images of any dimension: livers in volumes, moving objects in films."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask, Output, PreparedSeed, RegionOutput, Seed
from medtest.core.errors import MedtestError
from medtest.core.files.arrays import packed, unpacked
from medtest.core.tasks.base import SERIES, AskedSystem, Border, Storage, SystemInput, Task, TaskDrawing
from medtest.core.tasks.series import SeriesDrawing
from medtest.core.tasks.series_border import check_region


class RegionBorder(Border):
    """Checks of regions, see :mod:`medtest.core.tasks.series_border`."""

    def truth(self, seed: Seed) -> tuple[Mask | None, Image | None]:
        """Return the expected region as the prepared seed's mask.

        Raises:
            ValueError: It is not a bool array of the image's spatial shape.
        """
        expected, shape = seed.expected, seed.image.shape
        if expected is not None and (expected.dtype != np.bool_ or expected.shape != seed.spec.spatial(shape)):
            raise ValueError(f"the expected region is {expected.dtype} {expected.shape}; the image {shape}")
        return expected, None

    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> RegionOutput:
        """Return the answer as a region.

        Raises:
            BadOutput: It does not have the image's spatial shape.
        """
        return check_region(raw, shown.image, shown.spec)


class RegionStorage(Storage):
    """Stored regions, one bit per pixel or voxel."""

    def keep(self, output: Output, seed: PreparedSeed, *, maps: bool) -> bytes | None:
        """Return the region, one bit per pixel or voxel; series' scores need no map."""
        return packed({"region": output.region}) if isinstance(output, RegionOutput) else None

    def restore(self, stored: bytes, seed: PreparedSeed, shown: SystemInput) -> RegionOutput:
        """Return the stored answer.

        Raises:
            MedtestError: It is not a region of the image's shape.
        """
        region = unpacked(stored)[0].get("region")
        if region is None or region.dtype != np.bool_ or region.shape != shown.spec.spatial(shown.image.shape):
            raise MedtestError("a stored answer holds no region of the image's shape")
        return RegionOutput(region=region)


class RegionDrawing(SeriesDrawing):
    """Pictures with outlined regions."""

    outlines: ClassVar[bool] = True

    def region(self, output: Output) -> NDArray[np.bool_] | None:
        """Return the region."""
        return output.region if isinstance(output, RegionOutput) else None

    def expected_words(self, seed: PreparedSeed) -> str:
        """Return the caption for the true region."""
        return "expected region"


class RegionTask(Task):
    """Systems answer with a region of the image's spatial shape."""

    name: ClassVar[str] = "region"
    output: ClassVar[type[Output]] = RegionOutput
    input: ClassVar[str] = SERIES
    oracle: ClassVar[str] = "regions"
    folder: ClassVar[str] = "results"
    border: ClassVar[Border] = RegionBorder()
    storage: ClassVar[Storage] = RegionStorage()
    drawing: ClassVar[TaskDrawing] = RegionDrawing()
