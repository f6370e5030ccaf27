"""medtest's segmentation networks as systems under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from medtest.core.cases import Json, Probability
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import TRUSTED
from medtest.systems.files import file_mistakes, user_path
from medtest.systems.pytorch.pixels import log_odds, resized_map
from medtest.systems.segmentation.label_vectors import ORDER, read_label_vectors, vectors_sha256
from medtest.systems.segmentation.network import SegmentationNetwork, SegmentationSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from medtest.systems.checkpoints.weights import WeightsInfo

LEAST = 1e-6
"""Probabilities are clipped to this distance from 0 and 1, so that their logits are finite."""


class PraNetSystem(SegmentationNetwork):
    """PraNet (Fan et al., MICCAI 2020), compact or with published weights.

    Official protocol: image resized to 352×352 by PIL's antialiased bilinear filter, ImageNet normalisation; the
    *logit* resized to the image's size (bilinear, corners not aligned), sigmoid, then min–max scaling per image, so
    that
    0.5 is compared with a map that always spans 0 to 1 (an image without a polyp therefore gets one). ``mean_dice_256``
    scales again and averages over 256 thresholds, as the authors' MATLAB evaluation does.

    Common protocol: the sigmoid's map resized.
    """

    family = "pranet"
    published = ("pranet",)

    def _official_logits(self, logits: Tensor, shape: tuple[int, int]) -> Tensor:
        share = torch.nn.functional.interpolate(logits, size=shape, mode="bilinear", align_corners=False)[
            :, 0
        ].sigmoid()
        low, high = share.amin(dim=(1, 2), keepdim=True), share.amax(dim=(1, 2), keepdim=True)
        span = high - low + 1e-8
        # The smallest and largest probability become 0 and 1, whose logits are not finite.
        return log_odds((share - low) / span, (high - share + 1e-8) / span, least=LEAST)

    def _official(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        resized = torch.nn.functional.interpolate(logits[None], size=shape, mode="bilinear", align_corners=False)
        probability = torch.sigmoid(resized)[0, 0]
        low, high = probability.min(), probability.max()
        return np.asarray(((probability - low) / (high - low + 1e-8)).cpu().numpy(), np.float32)


class SANetSystem(SegmentationNetwork):
    """SANet (Wei et al., MICCAI 2021), compact or with published weights.

    Official protocol: image resized to 352×352 by OpenCV's bilinear filter (not antialiased), ImageNet normalisation;
    the 44×44 *logit* resized to the image's size (bilinear, corners aligned); probability correction (paper, section
    2.3): logits above zero are divided by their share of the image's pixels, then logits below zero by theirs; sigmoid.
    The correction keeps every sign, so a mask cut at 0.5 is the same without it; soft scores are not.
    Common protocol: the logit resized to the input's size (corners aligned), the sigmoid's map resized to the image's.
    """

    family = "sanet"
    published = ("sanet",)
    published_resize = "opencv"

    def _official(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        corrected = self._official_logits(logits[None], shape)[0]
        return np.asarray(corrected.sigmoid().cpu().numpy(), np.float32)

    def _official_logits(self, logits: Tensor, shape: tuple[int, int]) -> Tensor:
        resized = torch.nn.functional.interpolate(logits, size=shape, mode="bilinear", align_corners=True)[:, 0]
        for chosen in (resized > 0, resized < 0):
            share = chosen.float().mean(dim=(1, 2), keepdim=True)
            # An empty selection has a share of zero, which must not yield NaN.
            resized = torch.where(chosen, resized / share.clamp(min=1e-12), resized)
        return resized


THIRD_STAGE = "backbone.block3."
BLOCKS_OF_S = 6
"""Blocks of that stage in MiT-B2, the encoder of S; MiT-B4, the encoder of L, has 27."""


class SSFormerSystem(SegmentationNetwork):
    """SSFormer (Wang et al., MICCAI 2022), compact, or S or L with published weights, distinguished by their names.

    Official protocol: image resized to 352×352 by PIL's antialiased bilinear filter, ImageNet normalisation; sigmoid,
    then the *probability* resized to the image's size (bilinear, corners not aligned), then cut at 0.5: the answer is a
    map of zeros and ones. The authors' script continues with two further steps:

    - it rescales the map to its minimum and maximum, which leaves zeros and ones unchanged;
    - it averages Dice over 256 thresholds, of which 255 see the same mask and the last, 0, sees the whole image, so
      that its result is (255·Dice + Dice of the whole image) / 256. ``mean_dice_256`` computes that number.

    Masks: the script takes floor(mask / 255), so that only pixels of value 255 are lesion, whereas medtest uses those
    above 127. The two differ for lossy masks (Kvasir's JPEG files) and agree for masks of 0 and 255.

    Common protocol: the sigmoid's map resized.
    """

    family = "ssformer"
    published: ClassVar[tuple[str, ...]] = ("ssformer_s", "ssformer_l")

    def _published_name(self) -> str:
        if self._kept_name is None and len(self.published) > 1:
            from medtest.systems.checkpoints.glance import names_in

            try:
                names = names_in(self.checkpoint)
            except MedtestError:
                names = frozenset()  # the same error is reported, with its reason, when the network is opened
            blocks = {name.split(".")[2] for name in names if name.startswith(THIRD_STAGE)}
            self._kept_name = self.published[len(blocks) > BLOCKS_OF_S]
        return super()._published_name()

    def _official_logits(self, logits: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return the logits of the resized probability before the cut, because a binary map has no gradient."""
        both = torch.cat([logits.sigmoid(), (-logits).sigmoid()], dim=1)
        share, rest = torch.nn.functional.interpolate(both, size=shape, mode="bilinear", align_corners=False).unbind(1)
        return log_odds(share, rest)

    def _official(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        probability = torch.sigmoid(logits)[None]
        resized = torch.nn.functional.interpolate(probability, size=shape, mode="bilinear", align_corners=False)
        return np.asarray((resized[0, 0] > self._threshold).cpu().numpy(), np.float32)


class SSFormerSmall(SSFormerSystem):
    """SSFormer-S (MiT-B2) with published weights; see :class:`SSFormerSystem`."""

    published = ("ssformer_s",)
    needs_checkpoint = True


class SSFormerLarge(SSFormerSystem):
    """SSFormer-L (MiT-B4) with published weights; see :class:`SSFormerSystem`."""

    published = ("ssformer_l",)
    needs_checkpoint = True


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
    settings: TGANetSettings
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
        return read_label_vectors(user_path(self.settings.label_vectors or ""), user_path(pieces) if pieces else None)

    def _load(self) -> tuple[nn.Module, WeightsInfo | None]:
        if self.is_published:
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
        return resized_map(logits[:, 0], shape)

    def _official(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        return np.asarray(torch.sigmoid(logits[0]).cpu().numpy(), np.float32)
