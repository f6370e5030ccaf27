"""SSFormer as a system under test."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from medtest.core.cases import Probability
from medtest.core.errors import MedtestError
from medtest.systems.files import user_path
from medtest.systems.segmentation.network import SegmentationNetwork

if TYPE_CHECKING:
    from torch import Tensor


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
                names = names_in(user_path(self.settings.checkpoint))
            except MedtestError:
                names = frozenset()  # the same error is reported, with its reason, when the network is opened
            blocks = {name.split(".")[2] for name in names if name.startswith(THIRD_STAGE)}
            self._kept_name = self.published[len(blocks) > BLOCKS_OF_S]
        return super()._published_name()

    def _official_logits(self, logits: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return the logits of the resized probability before the cut, because a binary map has no gradient."""
        import torch
        from torch.nn import functional

        from medtest.systems.pytorch.pixels import log_odds

        both = torch.cat([logits.sigmoid(), (-logits).sigmoid()], dim=1)
        share, rest = functional.interpolate(both, size=shape, mode="bilinear", align_corners=False).unbind(1)
        return log_odds(share, rest)

    def _official(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        import torch
        from torch.nn import functional

        probability = torch.sigmoid(logits)[None]
        resized = functional.interpolate(probability, size=shape, mode="bilinear", align_corners=False)
        return np.asarray((resized[0, 0] > self._threshold).cpu().numpy(), np.float32)


class SSFormerSmall(SSFormerSystem):
    """SSFormer-S (MiT-B2) with published weights; see :class:`SSFormerSystem`."""

    published = ("ssformer_s",)
    needs_checkpoint = True


class SSFormerLarge(SSFormerSystem):
    """SSFormer-L (MiT-B4) with published weights; see :class:`SSFormerSystem`."""

    published = ("ssformer_l",)
    needs_checkpoint = True
