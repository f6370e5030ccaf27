"""SANet as a system under test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from medtest.core.cases import Probability
from medtest.systems.segmentation.network import SegmentationNetwork

if TYPE_CHECKING:
    from torch import Tensor


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
        import torch
        from torch.nn import functional

        resized = functional.interpolate(logits, size=shape, mode="bilinear", align_corners=True)[:, 0]
        for chosen in (resized > 0, resized < 0):
            share = chosen.float().mean(dim=(1, 2), keepdim=True)
            # An empty selection has a share of zero, which must not yield NaN.
            resized = torch.where(chosen, resized / share.clamp(min=1e-12), resized)
        return resized
