"""Base class of medtest's networks: a compact network that ships with medtest, or a published checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import cv2
import numpy as np
from pydantic import Field

from medtest.core.cases import Image, Json
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.core.files.paths import package_folder
from medtest.core.plugins import TRUSTED
from medtest.systems.base import SystemSettings
from medtest.systems.checkpoints.checkpoint import what_instead
from medtest.systems.checkpoints.inputs import INPUTS, InputKind, levels
from medtest.systems.checkpoints.weights import WeightsInfo, is_ours, load_network
from medtest.systems.files import cached_sha256, file_mistakes, user_path
from medtest.systems.pytorch.torch_system import TorchSystem

if TYPE_CHECKING:
    from torch import Tensor, nn


SUFFIXES = (".pth", ".pt", ".tar", ".ckpt", ".bin", ".safetensors")


class CheckpointSettings(SystemSettings):
    """Settings of a network with a checkpoint.

    Attributes:
        checkpoint: Path of published weights, or of weights written by ``medtest train``; null runs the compact network
            that ships with medtest.
        channels_last: Store channels last in memory, which is faster on a CPU; null lets medtest choose.
        fuse_norms: Fold batch norms into the preceding convolutions, which is faster and changes answers by about 1e-6.
        precision: ``bfloat16`` is faster on processors with AVX-512 BF16 or AMX and on GPUs; it changes answers by
            about 1e-2.
        compile: Run through ``torch.compile``. It takes a minute to start and is worthwhile in long runs on a GPU; on a
            CPU it needs a C++ compiler.
    """

    checkpoint: str | None = Field(default=None, json_schema_extra=TRUSTED)
    channels_last: bool | None = None
    fuse_norms: bool = True
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False


class CheckpointNetwork(TorchSystem):
    """Network loaded from a weights file: the bundled compact one, or the user's.

    Attributes:
        family: Name of the network, and of the compact one in the weights folder.
        published: Names of the published networks a checkpoint may belong to.
        needs_checkpoint: Whether the network cannot run without a checkpoint.
        suffixes: File suffixes of its checkpoints.
        channels_last_pays: Whether channels are stored last in memory by default.
    """

    Settings = CheckpointSettings
    settings: CheckpointSettings
    family: ClassVar[str]
    published: ClassVar[tuple[str, ...]]
    needs_checkpoint: ClassVar[bool] = False
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES
    channels_last_pays: ClassVar[bool] = True
    _own_format: bool | None = None
    _kept_name: str | None = None

    @property
    def compact_weights(self) -> Path:
        """File of the compact network's weights."""
        return package_folder() / "weights" / f"{self.family}-compact.safetensors"

    @property
    def is_compact(self) -> bool:
        """Whether the bundled compact network runs."""
        return self.settings.checkpoint is None

    @property
    def checkpoint(self) -> Path:
        """Path of the checkpoint, if one is set."""
        return user_path(self.settings.checkpoint or "")

    @property
    def is_published(self) -> bool:
        """Whether a published checkpoint runs, rather than weights written by ``medtest train``."""
        if self.is_compact:
            return False
        if self._own_format is None:
            self._own_format = is_ours(self.checkpoint)
        return not self._own_format

    def own_name(self) -> str:
        """Return the name of the network that runs; a name given by the user is kept.

        The published network's name; ``<family>-compact`` without a checkpoint; ``<family>-compact-trained`` with
        weights of ``medtest train``.
        """
        if self.name != self.family:
            return self.name
        if self.is_published:
            return self._published_name()
        return f"{self.family}-compact" if self.is_compact else f"{self.family}-compact-trained"

    def _published_name(self) -> str:
        """Return the name of the checkpoint's published network; called in the parent, without torch."""
        return self._kept_name or self.published[0]

    def notice(self) -> str:
        """Return a notice if the compact network runs."""
        if not self.is_compact or self.needs_checkpoint:
            return ""
        return (
            f"model={self.family} runs {self.family}-compact, the small network that ships with medtest; "
            "checkpoint=PATH runs the published one"
        )

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the checkpoint's path."""
        if self.is_compact and self.needs_checkpoint:
            fix = f"add checkpoint=PATH, or take model={self.family}, whose compact network ships with medtest"
            return [Mistake(where=self.name, key="checkpoint", found="nothing", allowed="a file", fix=fix)]
        if self.is_compact:
            return ()
        # The checkpoint of SANet's authors is named model-128, without a suffix.
        suffixes = self.suffixes if self.checkpoint.suffix else ()
        mistakes = file_mistakes(self.settings.checkpoint or "", where=self.name, key="checkpoint", suffixes=suffixes)
        other = "" if mistakes else what_instead(self.checkpoint)
        if other:
            mistakes.append(Mistake(where=self.name, key="checkpoint", found=f"{self.settings.checkpoint} {other}"))
        return mistakes

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the weights."""
        if self.is_compact and self.needs_checkpoint:
            return {}
        path = self.compact_weights if self.is_compact else self.checkpoint
        return {"weights_sha256": cached_sha256(path)}

    def load(self) -> nn.Module:
        """Return the network, optimised as the settings request."""
        cv2.setNumThreads(1)
        network, info = self._load()
        self._take(info)
        return self._optimised(network.eval())

    def _load(self) -> tuple[nn.Module, WeightsInfo | None]:
        """Return the network, and its description if the file is one of medtest's."""
        if not self.is_published:
            path = self.compact_weights if self.is_compact else self.checkpoint
            network, info = load_network(path)
            family = info.network.get("family")
            if family != self.family:
                raise MedtestError(f"{path.name}: these are weights of {family}, not of {self.family}")
            return network, info
        self._kept_name, network = self._load_published(self.checkpoint)
        return network, None

    def _load_published(self, path: Path) -> tuple[str, nn.Module]:
        """Return the name of the checkpoint's published network, and the strictly loaded network."""
        from medtest.systems.checkpoints.checkpoint import load_published

        return load_published(path, self.published)

    def _take(self, info: WeightsInfo | None) -> None:
        """Apply the description of one of medtest's weights files; None for a published network."""

    def _optimised(self, network: nn.Module) -> nn.Module:
        """Apply the performance settings."""
        from medtest.systems.checkpoints.fuse import fuse_norms

        if self.settings.fuse_norms:
            fuse_norms(network, *self._arguments(self._example()))
        network = network.to(self._device)
        if self.settings.precision == "bfloat16":
            network = network.to(torch.bfloat16)
        if self._keeps_channels_last():
            network = network.to(memory_format=torch.channels_last)
        if self.settings.compile:
            network.compile()
        return network

    def _example(self) -> Tensor:
        """Return example images, B×3×H×W, for a forward pass; small ones suffice."""
        return torch.zeros(1, 3, 64, 64)

    def _arguments(self, batch: Tensor) -> tuple[Tensor, ...]:
        """Return all arguments of the network for a batch of images."""
        return (batch,)

    def _keeps_channels_last(self) -> bool:
        channels_last = self.settings.channels_last
        return self.channels_last_pays if channels_last is None else bool(channels_last)

    @property
    def input_kind(self) -> InputKind:
        """Input format of the family's networks."""
        return INPUTS[self.family]

    def inputs(self, images: Sequence[Image]) -> Tensor:
        """Return normalised images, channels last in memory as in the source pixels."""
        kind = self.input_kind
        stacked = np.empty((len(images), *images[0].shape), np.float32)
        for place, image in zip(stacked, images, strict=True):
            cv2.LUT(np.ascontiguousarray(image[..., ::-1]) if kind.blue_first else image, levels(kind), dst=place)
        batch = torch.from_numpy(stacked).to(self._device).permute(0, 3, 1, 2)
        return batch if self._keeps_channels_last() else batch.contiguous()

    def normalised(self, pixels: Tensor) -> Tensor:
        """Return pixels normalised for the network, channels last in memory if it stores them so."""
        normalised: Tensor = super().normalised(pixels)
        return normalised.contiguous(memory_format=torch.channels_last) if self._keeps_channels_last() else normalised

    def forward(self, inputs: Tensor, through: Callable[..., Any] | None = None) -> Any:
        """Return the network's output for normalised images.

        Args:
            inputs: B×3×h×w.
            through: A method of the network to call instead of ``forward``.
        """
        half = self.settings.precision == "bfloat16"
        return (through or self.network)(*self._arguments(inputs.to(torch.bfloat16) if half else inputs))
