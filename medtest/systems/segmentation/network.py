"""Base class of medtest's segmentation networks: a bundled compact network, or a published checkpoint.

Two protocols define pre- and post-processing:

- ``official``: exactly as the network's authors test it, as described in each class.
- ``common``: the same for all networks. The image is resized by OpenCV, averaging areas when shrinking, with the
  network's own channel order and normalisation, on which it was trained. The logits are resized to the input's size as
  the authors do, the sigmoid is taken, the *probability* is resized to the image's size and thresholded at 0.5 (or at
  ``threshold``).

Pixels arrive as uint8 RGB at the prepared size. The authors' scripts resize the original image file:
``prepare.size=native`` passes it on unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image, Probability
from medtest.core.deferred import torch
from medtest.core.tasks.border import CUT, resize_probability
from medtest.systems.base import RawAnswer
from medtest.systems.checkpoints.network import CheckpointNetwork, CheckpointSettings
from medtest.systems.pytorch.pixels import Filter, at_half, resized, resized_map
from medtest.systems.pytorch.torch_system import exactly

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.systems.checkpoints.weights import WeightsInfo


class SegmentationSettings(CheckpointSettings):
    """Settings of a segmentation network.

    Attributes:
        size: Input side in pixels, a multiple of 32; null for the training size.
        protocol: ``official`` pre- and post-processes as the network's authors do, ``common`` as all networks are
            compared (see the module); ``auto`` is official with a published checkpoint, common without.
        threshold: A pixel is lesion if its probability exceeds this; null for the value chosen in validation when the
            compact network was trained, 0.5 for published networks.
    """

    size: int | None = Field(default=None, ge=64, le=1024, multiple_of=32)
    protocol: Literal["auto", "official", "common"] = "auto"
    threshold: float | None = Field(default=None, gt=0, lt=1)


class SegmentationNetwork(CheckpointNetwork):
    """Segmentation network. A subclass defines the network and its authors' post-processing.

    Attributes:
        published_size: Input side of the published networks in pixels.
        published_resize: Resampling in the authors' test scripts: ``pillow`` (bilinear, antialiased when shrinking) or
            ``opencv`` (bilinear, not antialiased).
    """

    Settings = SegmentationSettings
    settings: SegmentationSettings
    revision: ClassVar[int] = 2
    published_size: ClassVar[int] = 352
    published_resize: ClassVar[Literal["pillow", "opencv"]] = "pillow"

    def __init__(self, name: str, settings: SegmentationSettings) -> None:
        super().__init__(name, settings)
        self._size = self.published_size
        self._threshold = CUT if settings.threshold is None else settings.threshold

    @property
    def protocol(self) -> str:
        """``official`` or ``common``."""
        if self.settings.protocol != "auto":
            return str(self.settings.protocol)
        return "official" if self.is_published else "common"

    def _take(self, info: WeightsInfo | None) -> None:
        size, threshold = (self.published_size, CUT) if info is None else (info.size, info.threshold)
        self._size = self.settings.size or size
        self._threshold = threshold if self.settings.threshold is None else self.settings.threshold

    def fitted(self, image: Image) -> NDArray[np.uint8]:
        """Return the image resized to the network's input size, according to the protocol."""
        size = (self._size, self._size)
        if self.protocol == "official" and self.published_resize == "pillow":
            from PIL import Image as PillowImage

            return np.asarray(PillowImage.fromarray(image).resize(size, PillowImage.Resampling.BILINEAR))
        shrinks = image.shape[0] >= self._size and image.shape[1] >= self._size
        averages = self.protocol == "common" and shrinks
        return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA if averages else cv2.INTER_LINEAR))

    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return one probability map per image, float32, at the image's size unless the class states otherwise."""
        return [
            self._cut(self._probability(logits, (image.shape[0], image.shape[1])))
            for logits, image in zip(self.scores(outputs), images, strict=True)
        ]

    def scores(self, outputs: Any) -> Tensor:
        """Return the answer's logits in the network's output, float32 B×1×h×w.

        Under the common protocol they have the input's size; under the official one, the network's output size.
        """
        from medtest.systems.segmentation.networks.answers import answer_of

        size = (self._size, self._size) if self.protocol == "common" else None
        return exactly(answer_of(self.family, outputs, size))

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels resized to the network's input size, according to the protocol."""
        official: Filter = "bilinear" if self.published_resize == "pillow" else "linear"
        filter_name: Filter = "area" if self.protocol == "common" else official
        return resized(pixels, (self._size, self._size), filter_name)

    def lesion_logits(self, pixels: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return logits whose sigmoid is the probability map at the images' size; see the base class."""
        logits = self.scores(self.forward(self.normalised(pixels)))
        if self.protocol == "official":
            return at_half(self._official_logits(logits, shape), self._threshold)
        return resized_map(logits[:, 0], shape, self._threshold)

    def _official_logits(self, logits: Tensor, shape: tuple[int, int]) -> Tensor:
        """Post-process logits B×1×h×w as in :meth:`_official`, and return the logits of the probability, B×H×W."""
        raise NotImplementedError

    def _probability(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        """Return the probability map of one image with 1×h×w logits, at its height and width."""
        if self.protocol == "official":
            return self._official(logits, shape)
        return resize_probability(torch.sigmoid(logits[0]).cpu().numpy(), shape)

    def _official(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        """Post-process as the authors do."""
        raise NotImplementedError

    def _cut(self, probability: Probability) -> Probability:
        """Map the threshold to 0.5, the rest linearly on both sides, so that a cut at 0.5 applies the threshold."""
        threshold = np.float32(self._threshold)
        if threshold == np.float32(CUT):
            return probability
        cut = probability * (np.float32(0.5) / threshold)
        np.minimum(cut, np.float32(0.5), out=cut)
        lesion = probability > threshold
        steep = np.float32(0.5) / (np.float32(1) - threshold)
        cut[lesion] = np.float32(1) - (np.float32(1) - probability[lesion]) * steep
        return cut
