"""Input formats of networks: channel order, mean and standard deviation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class InputKind:
    """Format of a network's input tensor.

    Attributes:
        blue_first: Whether channels come in the order blue, green, red.
        mean: Subtracted per channel from values in [0, 1]; red, green, blue.
        std: Divisor per channel; red, green, blue.
    """

    blue_first: bool = False
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)

    @classmethod
    def of(cls, mean: Sequence[float], std: Sequence[float]) -> InputKind:
        """Return the format of RGB pixels in [0, 1] with these means and standard deviations."""
        return cls(mean=(mean[0], mean[1], mean[2]), std=(std[0], std[1], std[2]))

    def tensor(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return float32 B×3×H×W from uint8 RGB B×H×W×3."""
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        scaled = (images.astype(np.float32) * np.float32(1 / 255) - mean) / std
        ordered = scaled[..., ::-1] if self.blue_first else scaled
        return np.ascontiguousarray(ordered.transpose(0, 3, 1, 2))

    def normalised(self, pixels: Tensor) -> Tensor:
        """Normalise pixels, float B×3×H×W RGB in [0, 1], for the network; differentiable."""
        mean, std = (pixels.new_tensor(values)[:, None, None] for values in (self.mean, self.std))
        scaled = (pixels - mean) / std
        return scaled.flip(1) if self.blue_first else scaled


IMAGENET = InputKind()
PLAIN = InputKind(mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
PLAIN_BLUE_FIRST = InputKind(blue_first=True, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
"""Images as OpenCV reads them, divided by 255."""
CIFAR10 = InputKind(mean=(0.4914, 0.4822, 0.4465), std=(0.2023, 0.1994, 0.2010))
ATTNMEL: Mapping[str, InputKind] = {
    "isic2016": InputKind(mean=(0.7012, 0.5517, 0.4875), std=(0.0942, 0.1331, 0.1521)),
    "isic2017": InputKind(mean=(0.6820, 0.5312, 0.4736), std=(0.0840, 0.1140, 0.1282)),
}
"""Formats by AttnMel's training data set."""

INPUTS: Mapping[str, InputKind] = {
    "pranet": IMAGENET,
    "sanet": IMAGENET,
    "tganet": PLAIN_BLUE_FIRST,
    "ssformer": IMAGENET,
    "agdn": PLAIN,
    "dsinet": PLAIN,
    "attnmel": ATTNMEL["isic2016"],
    "inceptionv3_dr": CIFAR10,
    "chexnet": IMAGENET,
    "chexnet_sides": IMAGENET,
    "capsule_findings": PLAIN,
}
"""Formats by family of medtest's networks."""


@cache
def levels(kind: InputKind) -> NDArray[np.float32]:
    """Return the network input of each of the 256 levels of each channel, float32 1×256×3, in its channel order.

    Pixels have no other levels, so a lookup gives the same values as the computation, in a third of the time.
    """
    order = slice(None, None, -1 if kind.blue_first else 1)
    middle, spread = (np.asarray(values[order], np.float32) * np.float32(255) for values in (kind.mean, kind.std))
    every = np.arange(256, dtype=np.float32)[None, :, None]
    return np.ascontiguousarray((every - middle) * (np.float32(1) / spread), dtype=np.float32)
