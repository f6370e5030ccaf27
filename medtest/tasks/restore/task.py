"""Images to images: denoising and whatever else an algorithm makes of a picture."""

from __future__ import annotations

from typing import Any, ClassVar

from medtest.cases import Image, ImageOutput, Mask, Output, PreparedSeed, Seed
from medtest.tasks.base import AskedSystem, FlatView, SystemInput
from medtest.tasks.series import SeriesTask
from medtest.tasks.series_border import check_image


class RestoreTask(SeriesTask):
    """Systems answer with an image of the input's shape, see :mod:`medtest.tasks.series_border`."""

    name: ClassVar[str] = "image"
    output: ClassVar[type[Output]] = ImageOutput
    oracle: ClassVar[str] = "quality"

    def truth(self, seed: Seed) -> tuple[Mask | None, Image | None]:
        """Return the clean image: the seed's own where no other is known.

        Raises:
            ValueError: It has not the image's shape and dtype.
        """
        clean, image = seed.expected, seed.image
        if clean is not None and (clean.dtype != image.dtype or clean.shape != image.shape):
            raise ValueError(f"the clean image is {clean.dtype} {clean.shape}; the image {image.shape}")
        return None, image if clean is None else clean

    def check(self, raw: Any, shown: SystemInput, system: AskedSystem) -> ImageOutput:
        """Return the answer as an image.

        Raises:
            BadOutput: It is none of the input's shape.
        """
        return check_image(raw, shown.image)

    def answer_view(self, seed: PreparedSeed, image: Image, output: Output) -> FlatView:
        """Return the processed image itself."""
        return self.view(seed, output.image if isinstance(output, ImageOutput) else image)
