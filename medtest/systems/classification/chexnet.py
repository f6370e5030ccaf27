"""CheXNet as a system under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.phantoms.classes import CHEST
from medtest.systems.base import RawAnswer
from medtest.systems.classification.crops import middle, shorter_side, ten_crops
from medtest.systems.classification.network import ClassificationNetwork, ClassifierSettings
from medtest.systems.pytorch.torch_system import exactly

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.systems.classification.networks.chexnet import CheXNet

SMALLEST = 32
"""Minimum side; smaller images vanish before the last block."""
RESIZED = 256 / 224
"""Shorter side after resizing, relative to the crop."""
TEN = 10


class CheXNetSettings(ClassifierSettings):
    """Settings of CheXNet.

    Attributes:
        crops: Number of crops: ``10`` (corners and centre, also mirrored) with averaged probabilities, regardless of
            ``input`` is, or ``1``. Null: ten as in the authors' tests, with a published checkpoint and ``input:
            official``; one with the compact network or ``as_is``.
    """

    crops: Literal[1, 10] | None = None


class CheXNetSystem(ClassificationNetwork):
    """CheXNet (Rajpurkar et al., 2017; the best-known reproduction), compact or with published weights.

    Official input: shorter side resized to 256 (bilinear, antialiased, as in Pillow); the four corners of 224×224, the
    centre, and the same of the mirrored image (``crops: 1``: the centre only); mean and standard deviation of ImageNet.
    Answer: 14 probabilities, averaged over the crops; the sigmoid is inside the network. Several findings may be true.
    """

    Settings = CheXNetSettings
    family = "chexnet"
    published = ("chexnet",)
    own_classes = CHEST
    crops_image = True
    answer_form = "probabilities"

    @property
    def crops(self) -> int:
        """Number of crops per image."""
        if self.settings.crops is not None:
            return int(self.settings.crops)
        return TEN if self.is_published and self.input == "official" else 1

    @property
    def largest_batch(self) -> int | None:
        """One image if its ten crops already form a batch."""
        return 1 if self.crops == TEN else None

    def fitted(self, image: Image) -> NDArray[np.uint8]:
        """Return an image at the network's input size, uncropped if ten crops follow."""
        return self._resized(image) if self.crops == TEN else super().fitted(image)

    def inputs(self, images: Sequence[Image]) -> Tensor:
        """Return normalised images, or ten crops per image, image by image."""
        crops = [crop for image in images for crop in ten_crops(image, self._size)] if self.crops == TEN else images
        return super().inputs(crops)

    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return 14 probabilities per image, averaged over its crops."""
        scores = np.asarray(super().answers(outputs, images), np.float32)
        return list(scores.reshape(len(images), -1, scores.shape[1]).mean(axis=1) if self.crops == TEN else scores)

    def _resized(self, image: Image) -> NDArray[np.uint8]:
        return shorter_side(image, round(self._size * RESIZED))

    def _official(self, image: Image) -> NDArray[np.uint8]:
        return middle(self._resized(image), self._size)

    def _as_is(self, image: Image) -> NDArray[np.uint8]:
        accepted = self._takes(image.shape[0], image.shape[1])
        return super()._as_is(image) if accepted or self._own_side_only else self._official(image)

    def _takes(self, height: int, width: int) -> bool:
        return min(height, width) >= SMALLEST

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the network's input size, uncropped if ten crops follow."""
        return self._resized_pixels(pixels) if self.crops == TEN else super().fitted_pixels(pixels)

    def label_logits(self, pixels: Tensor, *, multi: bool) -> Tensor:
        """Return the sigmoid's inputs; for ten crops, the logits of the mean of their probabilities."""
        from medtest.systems.pytorch import pixels as of_pixels

        crops = of_pixels.ten_crops(pixels, self._size) if self.crops == TEN else pixels
        logits = exactly(self.forward(self.normalised(crops), self._before_sigmoid))
        if self.crops != TEN:
            return logits
        return of_pixels.mean_odds(logits.reshape(len(pixels), TEN, -1))

    def _before_sigmoid(self, inputs: Tensor) -> Tensor:
        network: CheXNet = self.network  # type: ignore[assignment]
        return network.logits(inputs)

    def _resized_pixels(self, pixels: Tensor) -> Tensor:
        from medtest.systems.pytorch.pixels import shorter_side as resized_pixels

        return resized_pixels(pixels, round(self._size * RESIZED))

    def _official_pixels(self, pixels: Tensor) -> Tensor:
        from medtest.systems.pytorch.pixels import middle as middle_pixels

        return middle_pixels(self._resized_pixels(pixels), self._size)

    def _as_is_pixels(self, pixels: Tensor) -> Tensor:
        accepted = self._takes(int(pixels.shape[2]), int(pixels.shape[3]))
        return super()._as_is_pixels(pixels) if accepted or self._own_side_only else self._official_pixels(pixels)
