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
from functools import cache
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
from medtest.systems.segmentation.checkpoint import what_instead
from medtest.systems.segmentation.networks.inputs import INPUTS

if TYPE_CHECKING:
    from torch import Tensor, nn

SUFFIXES = (".pth", ".pt", ".tar", ".ckpt", ".bin", ".safetensors")


class NetworkSettings(SystemSettings):
    """Settings of a segmentation network.

    Attributes:
        checkpoint: Path of published weights, or of weights that ``medtest train`` wrote; null runs the compact network
            that ships with medtest.
        size: Side in pixels at which the network takes images, a multiple of 32; null for the one it was trained at.
        protocol: ``official`` pre- and post-processes as the network's authors test it, ``common`` as all networks are
            compared alike (see the module); ``auto`` is official with a published checkpoint, common without.
        threshold: A pixel is lesion where the probability exceeds this; null for what was chosen in validation when
            the compact network was trained, 0.5 for published ones.
        channels_last: Keep channels last in memory, which is faster on a CPU; null lets medtest choose.
        fuse_norms: Fold batch norms into the convolutions before them, which is faster and moves answers by about 1e-6.
        precision: ``bfloat16`` pays on processors with AVX-512 BF16 or AMX and on GPUs; it moves answers by about 1e-2.
        compile: Run through ``torch.compile``. It takes a minute to start and pays in long runs on a GPU; on a CPU
            it needs a C++ compiler.
    """

    checkpoint: str | None = Field(default=None, json_schema_extra=TRUSTED)
    size: int | None = Field(default=None, ge=64, le=1024, multiple_of=32)
    protocol: Literal["auto", "official", "common"] = "auto"
    threshold: float | None = Field(default=None, gt=0, lt=1)
    channels_last: bool | None = None
    fuse_norms: bool = True
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False


@cache
def _levels(mean: tuple[float, ...], std: tuple[float, ...], *, blue_first: bool) -> NDArray[np.float32]:
    """Return what each of 256 levels of each channel is to the network, float32 1×256×3.

    A pixel has no other levels, so that looking them up gives what computing would give, in a third of the time.
    """
    order = slice(None, None, -1 if blue_first else 1)
    middle, spread = (np.asarray(values[order], np.float32) * np.float32(255) for values in (mean, std))
    levels = np.arange(256, dtype=np.float32)[None, :, None]
    return np.ascontiguousarray((levels - middle) * (np.float32(1) / spread), dtype=np.float32)


class SegmentationNetwork(System):
    """A segmentation network. A subclass says which, and how its authors post-process.

    Attributes:
        family: Name of the network, and of the compact one in the weights' folder.
        published: Names of the published networks a checkpoint may belong to.
        needs_checkpoint: Whether there is nothing to run without one.
        published_size: Side in pixels at which they take images.
        published_resize: How their test scripts resize images: ``pillow`` (bilinear, antialiased where it shrinks) or
            ``opencv`` (bilinear, not antialiased).
    """

    Settings = NetworkSettings
    needs_device = True
    revision: ClassVar[int] = 2
    family: ClassVar[str]
    published: ClassVar[tuple[str, ...]]
    published_size: ClassVar[int] = 352
    needs_checkpoint: ClassVar[bool] = False
    published_resize: ClassVar[Literal["pillow", "opencv"]] = "pillow"

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._network: nn.Module | None = None
        self._device = "cpu"
        self._size = self.published_size
        self._threshold = CUT if settings.threshold is None else settings.threshold
        self._ours: bool | None = None
        self._kept_name: str | None = None

    @property
    def compact_weights(self) -> Path:
        """File of the compact network's weights."""
        return package_folder() / "weights" / f"{self.family}-compact.safetensors"

    @property
    def is_compact(self) -> bool:
        """Whether the compact network that ships with medtest runs."""
        return self.settings.checkpoint is None

    @property
    def is_published(self) -> bool:
        """Whether a published checkpoint runs, and not weights that ``medtest train`` wrote."""
        if self.is_compact:
            return False
        if self._ours is None:
            from medtest.systems.segmentation.weights import is_ours

            self._ours = is_ours(user_path(self.settings.checkpoint))
        return not self._ours

    @property
    def protocol(self) -> str:
        """``official`` or ``common``."""
        if self.settings.protocol != "auto":
            return str(self.settings.protocol)
        return "official" if self.is_published else "common"

    @property
    def record_name(self) -> str:
        """Name of what runs; a name of the user's stays.

        The published network's; ``<family>-compact`` without a checkpoint; ``<family>-compact-trained`` with weights of
        ``medtest train``.
        """
        if self.name != self.family:
            return self.name
        if self.is_published:
            return self._published_name()
        return f"{self.family}-compact" if self.is_compact else f"{self.family}-compact-trained"

    def _published_name(self) -> str:
        """Return which of the family's published networks the checkpoint is; asked in the parent, without torch."""
        return self._kept_name or self.published[0]

    def notice(self) -> str:
        """Say that the compact network runs."""
        if not self.is_compact or self.needs_checkpoint:
            return ""
        return (
            f"model={self.family} runs {self.family}-compact, the small network that ships with medtest; "
            "checkpoint=PATH runs the published one"
        )

    def check(self) -> Sequence[Mistake]:
        """Return what is wrong with the checkpoint's path."""
        if self.is_compact and self.needs_checkpoint:
            fix = f"add checkpoint=PATH, or take model={self.family}, whose compact network ships with medtest"
            return [Mistake(where=self.name, key="checkpoint", found="nothing", allowed="a file", fix=fix)]
        if self.is_compact:
            return ()
        # SANet's authors call theirs model-128.
        suffixes = SUFFIXES if user_path(self.settings.checkpoint).suffix else ()
        found = file_mistakes(self.settings.checkpoint, where=self.name, key="checkpoint", suffixes=suffixes)
        other = "" if found else what_instead(user_path(self.settings.checkpoint))
        if other:
            found.append(Mistake(where=self.name, key="checkpoint", found=f"{self.settings.checkpoint} {other}"))
        return found

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the weights."""
        if self.is_compact and self.needs_checkpoint:
            return {}
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
        self._network = self._made_fast(network.eval())

    def _made_fast(self, network: nn.Module) -> nn.Module:
        """Apply what the settings say of speed."""
        import torch

        from medtest.systems.segmentation.fuse import fuse_norms

        if self.settings.fuse_norms:
            fuse_norms(network, *self._arguments(torch.zeros(1, 3, 64, 64)))
        network = network.to(self._device)
        if self.settings.precision == "bfloat16":
            network = network.to(torch.bfloat16)
        if self._keeps_channels_last():
            network = network.to(memory_format=torch.channels_last)
        if self.settings.compile:
            network.compile()
        return network

    def _arguments(self, batch: Tensor) -> tuple[Tensor, ...]:
        """Return everything the network takes, given its images."""
        return (batch,)

    def _load(self) -> tuple[nn.Module, int, float]:
        """Return the network, the side it takes and its threshold."""
        if not self.is_published:
            from medtest.systems.segmentation.weights import load_network

            path = self.compact_weights if self.is_compact else user_path(self.settings.checkpoint)
            network, info = load_network(path)
            family = info.network.get("family")
            if family != self.family:
                raise MedtestError(f"{path.name}: these are weights of {family}, not of {self.family}")
            return network, info.size, info.threshold
        from medtest.systems.segmentation.checkpoint import load_published

        self._kept_name, network = load_published(user_path(self.settings.checkpoint), self.published)
        return network, self.published_size, CUT

    def _keeps_channels_last(self) -> bool:
        return True if self.settings.channels_last is None else bool(self.settings.channels_last)

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return one probability map per image, float32, at the image's size unless the class says otherwise."""
        import torch

        if self._network is None:
            raise MedtestError(f"{self.record_name} was asked before it was opened")
        with torch.inference_mode():
            batch = self._input(images)
            if self.settings.precision == "bfloat16":
                batch = batch.to(torch.bfloat16)
            logits = self._logits(self._network(*self._arguments(batch)))
            return [
                self._cut(self._probability(one, (image.shape[0], image.shape[1])))
                for one, image in zip(logits, images, strict=True)
            ]

    def _input(self, images: Sequence[Image]) -> Tensor:
        """Resize and normalise a batch: float32 B×3×S×S, channels last in memory as the pixels come."""
        import torch

        kind = INPUTS[self.family]
        normalised = _levels(kind.mean, kind.std, blue_first=kind.blue_first)
        stacked = np.empty((len(images), self._size, self._size, 3), np.float32)
        for place, image in zip(stacked, images, strict=True):
            resized = self._resized(image)
            cv2.LUT(np.ascontiguousarray(resized[..., ::-1]) if kind.blue_first else resized, normalised, dst=place)
        batch = torch.from_numpy(stacked).to(self._device).permute(0, 3, 1, 2)
        return batch if self._keeps_channels_last() else batch.contiguous()

    def _resized(self, image: Image) -> NDArray[np.uint8]:
        """Return the image at the side the network takes, as the protocol says."""
        size = (self._size, self._size)
        if self.protocol == "official" and self.published_resize == "pillow":
            from PIL import Image as PillowImage

            return np.asarray(PillowImage.fromarray(image).resize(size, PillowImage.Resampling.BILINEAR))
        shrinks = image.shape[0] >= self._size and image.shape[1] >= self._size
        averages = self.protocol == "common" and shrinks
        return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA if averages else cv2.INTER_LINEAR))

    def _logits(self, outputs: Any) -> Tensor:
        """Return the answer's logits of what the network gives, float32 B×1×h×w.

        Under the common protocol they have the input's side; under the official one they are as the network gives them.
        """
        from medtest.systems.segmentation.networks.answers import answer_of

        size = (self._size, self._size) if self.protocol == "common" else None
        return answer_of(self.family, outputs, size).float()

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

    def close(self) -> None:
        """Let go of the network."""
        self._network = None
