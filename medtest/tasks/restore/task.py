"""Task of image restoration: denoising and other processing of a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, ImageOutput, Mask, Output, PreparedSeed, Seed
from medtest.core.errors import MedtestError
from medtest.core.files.arrays import packed, unpacked
from medtest.core.tasks.base import SERIES, AskedSystem, Border, FlatView, Storage, SystemInput, Task, TaskDrawing
from medtest.core.tasks.series import SeriesDrawing
from medtest.core.tasks.series_border import check_image

MOST_BYTES = 4 << 20
"""Largest size in bytes of an image stored in every run; larger ones, mostly volumes, need ``maps``."""


class ImageBorder(Border):
    """Checks of processed images, see :mod:`medtest.core.tasks.series_border`."""

    def truth(self, seed: Seed) -> tuple[Mask | None, Image | None]:
        """Return the clean image: the seed's own if no other is known.

        Raises:
            ValueError: Its shape or dtype differs from the image's.
        """
        clean, image = seed.expected, seed.image
        if clean is not None and (clean.dtype != image.dtype or clean.shape != image.shape):
            raise ValueError(f"the clean image is {clean.dtype} {clean.shape}; the image {image.shape}")
        return None, image if clean is None else clean

    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> ImageOutput:
        """Return the answer as an image.

        Raises:
            BadOutput: It does not have the input's shape.
        """
        return check_image(raw, shown.image)


class ImageStorage(Storage):
    """Stored images, without loss."""

    pictures: ClassVar[bool] = True

    def keep(self, output: Output, seed: PreparedSeed, *, maps: bool) -> bytes | None:
        """Return the image without loss; above :data:`MOST_BYTES` only with ``maps``."""
        if not isinstance(output, ImageOutput) or (output.image.nbytes > MOST_BYTES and not maps):
            return None
        return packed({"image": output.image})

    def restore(self, stored: bytes, seed: PreparedSeed, shown: SystemInput) -> ImageOutput:
        """Return the stored answer, with the system's input.

        Raises:
            MedtestError: It is not an image of the input's shape and dtype.
        """
        image = unpacked(stored)[0].get("image")
        if image is None or image.dtype != shown.image.dtype or image.shape != shown.image.shape:
            raise MedtestError("a stored answer holds no image of the input's shape")
        return ImageOutput(image=image, given=shown.image)


class ImageDrawing(SeriesDrawing):
    """Pictures of processed images."""

    def answer_view(self, seed: PreparedSeed, image: Image, output: Output) -> FlatView:
        """Return a view of the processed image."""
        return self.view(seed, output.image if isinstance(output, ImageOutput) else image)

    def answer_picture(
        self, seed: PreparedSeed, output: Output, pixels: Callable[[str], Image | None]
    ) -> NDArray[np.uint8] | None:
        """Return a view of the processed image."""
        return self.view(seed, output.image).image if isinstance(output, ImageOutput) else None

    def expected_words(self, seed: PreparedSeed) -> str:
        """Return the caption for the clean image."""
        return "expected image"


class RestoreTask(Task):
    """Systems answer with an image of the input's shape."""

    name: ClassVar[str] = "image"
    output: ClassVar[type[Output]] = ImageOutput
    input: ClassVar[str] = SERIES
    oracle: ClassVar[str] = "quality"
    folder: ClassVar[str] = "results"
    border: ClassVar[Border] = ImageBorder()
    storage: ClassVar[Storage] = ImageStorage()
    drawing: ClassVar[TaskDrawing] = ImageDrawing()
