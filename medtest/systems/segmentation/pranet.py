"""PraNet as a system under test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from medtest.core.cases import Probability
from medtest.systems.segmentation.network import SegmentationNetwork

if TYPE_CHECKING:
    from torch import Tensor


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
        from torch.nn import functional

        from medtest.systems.pytorch.pixels import log_odds

        share = functional.interpolate(logits, size=shape, mode="bilinear", align_corners=False)[:, 0].sigmoid()
        low, high = share.amin(dim=(1, 2), keepdim=True), share.amax(dim=(1, 2), keepdim=True)
        span = high - low + 1e-8
        # The smallest and largest probability become 0 and 1, whose logits are not finite.
        return log_odds((share - low) / span, (high - share + 1e-8) / span, least=LEAST)

    def _official(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        import torch
        from torch.nn import functional

        resized = functional.interpolate(logits[None], size=shape, mode="bilinear", align_corners=False)
        probability = torch.sigmoid(resized)[0, 0]
        low, high = probability.min(), probability.max()
        return np.asarray(((probability - low) / (high - low + 1e-8)).cpu().numpy(), np.float32)
