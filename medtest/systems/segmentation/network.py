"""What the segmentation networks of medtest share: a compact one that ships, and a published one by checkpoint.

Two protocols say how an image becomes an input and a network's logits an answer:

- ``official``: exactly as the network's authors test it. What that is stands in each class.
- ``common``: as all networks are compared alike. The image is resized by OpenCV, averaging areas where it shrinks; the
  network's own order of channels and normalisation stay, since it was trained on them; its logits are brought to the
  input's size as its authors do, the sigmoid is taken, the *probability* is resized to the image's size, and cut at
  0.5 (or at ``threshold``).

Pixels come in as uint8 RGB at the prepared size. What the authors' scripts do to a picture of another size they do to
the picture file: ``prepare.size=native`` hands it on as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image, Probability
from medtest.core.tasks.border import CUT, resize_probability
from medtest.systems.base import RawAnswer
from medtest.systems.checkpoints.network import CheckpointNetwork, CheckpointSettings
from medtest.systems.pytorch.torch_system import exactly

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.systems.checkpoints.weights import WeightsInfo


class SegmentationSettings(CheckpointSettings):
    """Settings of a segmentation network.

    Attributes:
        size: Side in pixels at which the network takes images, a multiple of 32; null for the one it was trained at.
        protocol: ``official`` pre- and post-processes as the network's authors test it, ``common`` as all networks are
            compared alike (see the module); ``auto`` is official with a published checkpoint, common without.
        threshold: A pixel is lesion where the probability exceeds this; null for what was chosen in validation when
            the compact network was trained, 0.5 for published ones.
    """

    size: int | None = Field(default=None, ge=64, le=1024, multiple_of=32)
    protocol: Literal["auto", "official", "common"] = "auto"
    threshold: float | None = Field(default=None, gt=0, lt=1)


class SegmentationNetwork(CheckpointNetwork):
    """A segmentation network. A subclass says which, and how its authors post-process.

    Attributes:
        published_size: Side in pixels at which the published networks take images.
        published_resize: How their test scripts resize images: ``pillow`` (bilinear, antialiased where it shrinks) or
            ``opencv`` (bilinear, not antialiased).
    """

    Settings = SegmentationSettings
    revision: ClassVar[int] = 2
    published_size: ClassVar[int] = 352
    published_resize: ClassVar[Literal["pillow", "opencv"]] = "pillow"

    def __init__(self, name: str, settings: Any) -> None:
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
        """Return the image at the side the network takes, as the protocol says."""
        size = (self._size, self._size)
        if self.protocol == "official" and self.published_resize == "pillow":
            from PIL import Image as PillowImage

            return np.asarray(PillowImage.fromarray(image).resize(size, PillowImage.Resampling.BILINEAR))
        shrinks = image.shape[0] >= self._size and image.shape[1] >= self._size
        averages = self.protocol == "common" and shrinks
        return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA if averages else cv2.INTER_LINEAR))

    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return one probability map per image, float32, at the image's size unless the class says otherwise."""
        return [
            self._cut(self._probability(one, (image.shape[0], image.shape[1])))
            for one, image in zip(self.scores(outputs), images, strict=True)
        ]

    def scores(self, outputs: Any) -> Tensor:
        """Return the answer's logits of what the network gives, float32 B×1×h×w.

        Under the common protocol they have the input's side; under the official one they are as the network gives them.
        """
        from medtest.systems.segmentation.networks.answers import answer_of

        size = (self._size, self._size) if self.protocol == "common" else None
        return exactly(answer_of(self.family, outputs, size))

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the side the network takes, as the protocol says."""
        from medtest.systems.pytorch.pixels import Filter, resized

        official: Filter = "bilinear" if self.published_resize == "pillow" else "linear"
        how: Filter = "area" if self.protocol == "common" else official
        return resized(pixels, (self._size, self._size), how)

    def lesion_logits(self, pixels: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return logits whose sigmoid is the probability map at the images' size; see the base class."""
        from medtest.systems.pytorch.pixels import at_half, resized_map

        logits = self.scores(self.forward(self.normalised(pixels)))
        if self.protocol == "official":
            return at_half(self._official_logits(logits, shape), self._threshold)
        return resized_map(logits[:, 0], shape, self._threshold)

    def _official_logits(self, logits: Tensor, shape: tuple[int, int]) -> Tensor:
        """Do to logits B×1×h×w what :meth:`_official` does, and return those of the probability, B×H×W."""
        raise NotImplementedError

    def _probability(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        """Return the probability map of one image, of 1×h×w logits, at its height and width."""
        if self.protocol == "official":
            return self._official(logits, shape)
        import torch

        return resize_probability(torch.sigmoid(logits[0]).cpu().numpy(), shape)

    def _official(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        """Post-process as the authors do."""
        raise NotImplementedError

    def _cut(self, probability: Probability) -> Probability:
        """Map the threshold to 0.5, the rest linearly on both sides, so that the border's cut is the user's."""
        threshold = np.float32(self._threshold)
        if threshold == np.float32(CUT):
            return probability
        cut = probability * (np.float32(0.5) / threshold)
        np.minimum(cut, np.float32(0.5), out=cut)
        lesion = probability > threshold
        steep = np.float32(0.5) / (np.float32(1) - threshold)
        cut[lesion] = np.float32(1) - (np.float32(1) - probability[lesion]) * steep
        return cut
