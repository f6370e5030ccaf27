"""AttnMel as a system under test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.phantoms.classes import DERMOSCOPY
from medtest.systems.checkpoints.inputs import ATTNMEL, InputKind
from medtest.systems.classification.crops import middle, stretched
from medtest.systems.classification.network import ClassificationNetwork, ClassifierSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from medtest.systems.checkpoints.weights import WeightsInfo

SHARE = 0.8
"""Side of the first square crop, relative to the image's shorter side."""
RESIZED = 256 / 224
"""Side after resizing, relative to the final crop."""


class AttnMelSettings(ClassifierSettings):
    """Settings of AttnMel.

    Attributes:
        attention: Conversion of local scores to weights, ``sigmoid`` or ``softmax``. A published checkpoint does not
            record which one was used in training, and answers with the other are wrong. Null: sigmoid, as in the
            authors' commands, or the value in weights of ``medtest train``.
        statistics: Data set whose mean and standard deviation normalise images, ``isic2016`` or ``isic2017``: the
            checkpoint's training data.
    """

    attention: Literal["sigmoid", "softmax"] | None = None
    statistics: Literal["isic2016", "isic2017"] = "isic2016"


class AttnMelSystem(ClassificationNetwork):
    """AttnMel (Yan et al., IPMI 2019), compact or with published weights.

    Official input: the central square with 0.8 of the image's shorter side, resized to 256×256 (bilinear, antialiased,
    as in Pillow), of which the central 224×224 are cropped; mean and standard deviation of ISIC 2016 or 2017. Answer:
    the softmax of two logits, benign and melanoma. The two attention maps are not used.
    """

    Settings = AttnMelSettings
    family = "attnmel"
    published = ("attnmel",)
    own_classes = DERMOSCOPY
    answer_output = 0
    crops_image = True

    def _load(self) -> tuple[nn.Module, WeightsInfo | None]:
        network, info = super()._load()
        if self.settings.attention is not None:
            network.attend(self.settings.attention)  # type: ignore[operator]
        return network, info

    def _official(self, image: Image) -> NDArray[np.uint8]:
        square = middle(image, max(1, int(SHARE * min(image.shape[:2]))))
        side = round(self._size * RESIZED)
        return middle(stretched(square, side, side), self._size)

    def _official_pixels(self, pixels: Tensor) -> Tensor:
        from medtest.systems.pytorch import pixels as of_pixels

        square = of_pixels.middle(pixels, max(1, int(SHARE * min(pixels.shape[2:]))))
        side = round(self._size * RESIZED)
        return of_pixels.middle(of_pixels.resized(square, (side, side)), self._size)

    @property
    def input_kind(self) -> InputKind:
        """Input format of the training data set."""
        return ATTNMEL[self.settings.statistics]
