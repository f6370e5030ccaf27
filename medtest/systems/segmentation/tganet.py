"""TGANet as a system under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from medtest.core.cases import Json, Probability
from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import TRUSTED
from medtest.systems.files import file_mistakes, user_path
from medtest.systems.segmentation.label_vectors import ORDER, read_label_vectors, vectors_sha256
from medtest.systems.segmentation.network import SegmentationNetwork, SegmentationSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from medtest.systems.checkpoints.weights import WeightsInfo

WHY = (
    "a published TGANet checkpoint lacks the five word vectors it was trained with (one, multiple, small, medium, "
    "large; 300 numbers each, from BPEmb), and without them its answers are not TGANet's"
)
HOW = (
    "label_vectors=FILE with five rows of 300 numbers in this order (.npy, .npz, .csv, .txt), or BPEmb's "
    "en.wiki.bpe.vs100000.d300.w2v.bin"
)


class TGANetSettings(SegmentationSettings):
    """Settings of TGANet.

    Attributes:
        label_vectors: File with the five word vectors that a published checkpoint needs, see
            :mod:`medtest.systems.segmentation.label_vectors`; not used by the compact network, which includes its own.
        label_pieces: BPEmb's sentencepiece model, for BPEmb's vectors in ``label_vectors``; needed only for a word that
            is not itself a piece. By default the one next to the vectors.
    """

    label_vectors: str | None = Field(default=None, json_schema_extra=TRUSTED)
    label_pieces: str | None = Field(default=None, json_schema_extra=TRUSTED)


class TGANetSystem(SegmentationNetwork):
    """TGANet (Tomar et al., MICCAI 2022), compact or with published weights and word vectors.

    Official protocol: image in the order blue, green, red (as OpenCV reads it), resized to 256×256 by OpenCV's bilinear
    filter (not antialiased), divided by 255 and not normalised further; sigmoid, cut at 0.5. The authors compare at
    256×256, with masks resized to that size: the answer has 256×256 pixels, and ``prepare.size=256`` compares at that
    size.

    Common protocol: the sigmoid's map resized to the image's size.

    Attributes:
        labels: The word vectors, float32 5×300, after :meth:`open` with a published checkpoint; otherwise None.
    """

    Settings = TGANetSettings
    family = "tganet"
    published = ("tganet",)
    published_size = 256
    published_resize = "opencv"
    labels: Tensor | None = None

    def check(self) -> Sequence[Mistake]:
        """Return the problems of checkpoint and word vectors."""
        mistakes = list(super().check())
        vectors_file = self.settings.label_vectors
        if mistakes:
            return mistakes
        if not self.is_published:
            if vectors_file:
                problem = f"{vectors_file}, for a network that carries its word vectors itself"
                fix = "leave it out, or add checkpoint=PATH of a published TGANet"
                return [Mistake(where=self.name, key="label_vectors", found=problem, fix=fix)]
            return ()
        if not vectors_file:
            return [Mistake(where=self.name, key="label_vectors", found=f"nothing; {WHY}", allowed=HOW)]
        for key in ("label_vectors", "label_pieces"):
            typed = getattr(self.settings, key)
            if typed and not (key == "label_vectors" and user_path(typed).is_dir()):
                mistakes += file_mistakes(typed, where=self.name, key=key)
        if mistakes:
            return mistakes
        try:
            self._vectors()
        except MedtestError as error:
            return [Mistake(where=self.name, key="label_vectors", found=str(error), allowed=HOW)]
        return ()

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the weights, and of word vectors from a file."""
        printed = super().fingerprint()
        if self.is_published and self.settings.label_vectors:
            printed["label_vectors_sha256"] = vectors_sha256(self._vectors())
        return printed

    def _vectors(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        pieces = self.settings.label_pieces
        return read_label_vectors(user_path(self.settings.label_vectors), user_path(pieces) if pieces else None)

    def _load(self) -> tuple[nn.Module, WeightsInfo | None]:
        if self.is_published:
            import torch

            if not self.settings.label_vectors:
                raise MedtestError(f"{self.name}: {WHY}; give {HOW}")
            self.labels = torch.from_numpy(self._vectors())
        return super()._load()

    def _arguments(self, batch: Tensor) -> tuple[Tensor, ...]:
        if self.labels is None:
            return (batch,)
        words = self.labels.to(device=batch.device, dtype=batch.dtype)
        return (batch, words.expand(batch.shape[0], len(ORDER), -1))

    def _official_logits(self, logits: Tensor, shape: tuple[int, int]) -> Tensor:
        from medtest.systems.pytorch.pixels import resized_map

        return resized_map(logits[:, 0], shape)

    def _official(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        import torch

        return np.asarray(torch.sigmoid(logits[0]).cpu().numpy(), np.float32)
