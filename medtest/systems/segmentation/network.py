"""What the segmentation networks of medtest share: a compact one that ships, and a published one by checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.cases import Address, Image, Json, Probability
from medtest.errors import MedtestError, Mistake
from medtest.paths import package_folder
from medtest.plugins import TRUSTED
from medtest.systems.base import RawAnswer, System, SystemSettings
from medtest.systems.border import CUT, resize_probability
from medtest.systems.files import file_mistakes, file_sha256, user_path

if TYPE_CHECKING:
    from torch import Tensor, nn

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
PUBLISHED_SIZE = 352
SUFFIXES = (".pth", ".pt", ".tar", ".ckpt", ".bin", ".safetensors")


class NetworkSettings(SystemSettings):
    """Settings of a segmentation network.

    Attributes:
        checkpoint: Path of published weights; null runs the compact network that ships with medtest.
        size: Side in pixels at which the network takes images, a multiple of 32; null for the one it was trained at.
        protocol: ``official`` pre- and post-processes as the network's authors test it, ``common`` as all networks are
            compared alike (areas averaged when shrinking, probability resized to the image's size); ``auto`` is
            official with a checkpoint, common without.
        threshold: A pixel is lesion where the probability exceeds this; null for what was chosen in validation when
            the compact network was trained, 0.5 for published ones.
        channels_last: Keep channels last in memory, which is faster on a CPU; null lets medtest choose.
    """

    checkpoint: str | None = Field(default=None, json_schema_extra=TRUSTED)
    size: int | None = Field(default=None, ge=64, le=1024, multiple_of=32)
    protocol: Literal["auto", "official", "common"] = "auto"
    threshold: float | None = Field(default=None, gt=0, lt=1)
    channels_last: bool | None = None


class SegmentationNetwork(System):
    """A segmentation network. A subclass says which, and how its authors post-process.

    Attributes:
        family: Name of the network, and of the compact one in the weights' folder.
        published: Names of the published networks a checkpoint may belong to.
    """

    Settings = NetworkSettings
    needs_device = True
    family: ClassVar[str]
    published: ClassVar[tuple[str, ...]]

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._network: nn.Module | None = None
        self._device = "cpu"
        self._size = PUBLISHED_SIZE
        self._threshold = CUT if settings.threshold is None else settings.threshold
        self._kept_name: str | None = None

    @property
    def compact_weights(self) -> Path:
        """File of the compact network's weights."""
        return package_folder() / "weights" / f"{self.family}-compact.safetensors"

    @property
    def is_compact(self) -> bool:
        """Whether the compact network runs."""
        return self.settings.checkpoint is None

    @property
    def protocol(self) -> str:
        """``official`` or ``common``."""
        if self.settings.protocol != "auto":
            return str(self.settings.protocol)
        return "common" if self.is_compact else "official"

    @property
    def record_name(self) -> str:
        """``<family>-compact`` without a checkpoint, else the published network's name; a name of the user's stays."""
        if self.name != self.family:
            return self.name
        return f"{self.family}-compact" if self.is_compact else self._published_name()

    def _published_name(self) -> str:
        """Return which of the family's published networks the checkpoint is."""
        if len(self.published) == 1:
            return self.published[0]
        if self._kept_name is None:
            from medtest.systems.segmentation.checkpoint import looks_like, read_state

            try:
                near = looks_like(read_state(user_path(self.settings.checkpoint)), share=0.3)
            except MedtestError:
                near = None  # the same mistake is reported, with its reason, when the network is opened
            self._kept_name = near if near in self.published else self.published[0]
        return self._kept_name

    def notice(self) -> str:
        """Say that the compact network runs."""
        if not self.is_compact:
            return ""
        return (
            f"model={self.family} runs {self.family}-compact, the small network that ships with medtest; "
            "checkpoint=PATH runs the published one"
        )

    def check(self) -> Sequence[Mistake]:
        """Return what is wrong with the checkpoint's path."""
        if self.is_compact:
            return ()
        return file_mistakes(self.settings.checkpoint, where=self.name, key="checkpoint", suffixes=SUFFIXES)

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the weights."""
        path = self.compact_weights if self.is_compact else user_path(self.settings.checkpoint)
        return {"weights_sha256": file_sha256(path)}

    def open(self, *, device: str, threads: int) -> None:
        """Load the weights; see :class:`medtest.systems.base.System`."""
        import torch

        torch.set_num_threads(max(1, threads))
        cv2.setNumThreads(1)
        network, size, threshold = self._load()
        self._size = self.settings.size or size
        self._threshold = threshold if self.settings.threshold is None else self.settings.threshold
        self._device = device
        network = network.to(device).eval()
        if self._keeps_channels_last():
            network = network.to(memory_format=torch.channels_last)
        self._network = network

    def _load(self) -> tuple[nn.Module, int, float]:
        """Return the network, the side it takes and its threshold."""
        if self.is_compact:
            from medtest.systems.segmentation.weights import load_network

            network, info = load_network(self.compact_weights)
            return network, info.size, info.threshold
        from medtest.systems.segmentation.checkpoint import load_published

        self._kept_name, network = load_published(user_path(self.settings.checkpoint), self.published)
        return network, PUBLISHED_SIZE, CUT

    def _keeps_channels_last(self) -> bool:
        return True if self.settings.channels_last is None else bool(self.settings.channels_last)

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return one probability map per image, float32 at the image's size."""
        import torch

        if self._network is None:
            raise MedtestError(f"{self.record_name} was asked before it was opened")
        with torch.inference_mode():
            logits = self._logits(self._network(self._input(images)))
            return [
                self._cut(self._probability(one, (image.shape[0], image.shape[1])))
                for one, image in zip(logits, images, strict=True)
            ]

    def _input(self, images: Sequence[Image]) -> Tensor:
        """Resize and normalise a batch: float32 B×3×S×S, channels last in memory as the pixels come."""
        import torch

        resize = self._resize_official if self.protocol == "official" else self._resize_common
        stacked = torch.from_numpy(np.stack([resize(image) for image in images])).to(self._device)
        mean = torch.tensor(MEAN, device=self._device) * 255
        scale = 1 / (torch.tensor(STD, device=self._device) * 255)
        batch = ((stacked.to(torch.float32) - mean) * scale).permute(0, 3, 1, 2)
        return batch if self._keeps_channels_last() else batch.contiguous()

    def _resize_common(self, image: Image) -> NDArray[np.uint8]:
        size = self._size
        shrinks = image.shape[0] >= size and image.shape[1] >= size
        how = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        return np.asarray(cv2.resize(image, (size, size), interpolation=how), np.uint8)

    def _resize_official(self, image: Image) -> NDArray[np.uint8]:
        """Resize as the authors' test scripts do: bilinear through PIL, antialiased when it shrinks."""
        from PIL import Image as PillowImage

        resized = PillowImage.fromarray(image).resize((self._size, self._size), PillowImage.Resampling.BILINEAR)
        return np.asarray(resized)

    def _logits(self, outputs: Any) -> Tensor:
        """Return the answer's logits B×1×S×S of what the network gives."""
        last: Tensor = outputs[-1] if isinstance(outputs, tuple | list) else outputs
        return last

    def _probability(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        """Return the probability map of one image, 1×S×S logits, at its height and width."""
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
        below = probability * (np.float32(0.5) / threshold)
        above = np.float32(1) - (np.float32(1) - probability) * (np.float32(0.5) / (np.float32(1) - threshold))
        return np.where(probability <= threshold, np.minimum(below, np.float32(0.5)), above).astype(np.float32)

    def close(self) -> None:
        """Let go of the network."""
        self._network = None
