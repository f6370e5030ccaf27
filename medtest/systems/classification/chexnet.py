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
"""Side below which nothing is left of an image before the last block."""
RESIZED = 256 / 224
"""Shorter side to which an image is resized, as a share of the side that is cut."""
TEN = 10


class CheXNetSettings(ClassifierSettings):
    """Settings of CheXNet.

    Attributes:
        crops: How many crops are asked: ``10`` (corners and middle, mirrored too) whose probabilities are averaged,
            whatever ``input`` says, or ``1``. Null: as the authors test it, ten, with a published checkpoint under
            ``input: official``; one with the compact network and under ``as_is``.
    """

    crops: Literal[1, 10] | None = None


class CheXNetSystem(ClassificationNetwork):
    """CheXNet (Rajpurkar et al., 2017; the best-known reproduction), compact or with published weights.

    Official input: shorter side resized to 256 (bilinear, antialiased, as Pillow does); the four corners of 224×224,
    the middle, and the same of the mirrored image (``crops: 1``: the middle alone); mean and standard deviation of
    ImageNet. Answer: 14 probabilities, averaged over the crops; the sigmoid is inside the network. Several findings may
    be true.
    """

    Settings = CheXNetSettings
    family = "chexnet"
    published = ("chexnet",)
    own_classes = CHEST
    crops_image = True
    answer_form = "probabilities"

    @property
    def crops(self) -> int:
        """How many crops of an image are asked."""
        if self.settings.crops is not None:
            return int(self.settings.crops)
        return TEN if self.is_published and self.input == "official" else 1

    @property
    def largest_batch(self) -> int | None:
        """One image where ten crops of it are a batch already."""
        return 1 if self.crops == TEN else None

    def fitted(self, image: Image) -> NDArray[np.uint8]:
        """Return an image at the size at which the network gets it, whole where it is cropped ten times."""
        return self._resized(image) if self.crops == TEN else super().fitted(image)

    def inputs(self, images: Sequence[Image]) -> Tensor:
        """Return normalised images, ten crops of each one after the other where so many are asked."""
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
        kept = self._takes(image.shape[0], image.shape[1])
        return super()._as_is(image) if kept or self._own_side_only else self._official(image)

    def _takes(self, height: int, width: int) -> bool:
        return min(height, width) >= SMALLEST

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the size at which the network gets them, whole where they are cropped ten times."""
        return self._resized_pixels(pixels) if self.crops == TEN else super().fitted_pixels(pixels)

    def label_logits(self, pixels: Tensor, *, multi: bool) -> Tensor:
        """Return what the network's sigmoid gets; of ten crops what gives the mean of their probabilities."""
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
        kept = self._takes(int(pixels.shape[2]), int(pixels.shape[3]))
        return super()._as_is_pixels(pixels) if kept or self._own_side_only else self._official_pixels(pixels)
