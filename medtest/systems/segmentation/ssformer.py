"""SSFormer as a system under test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from medtest.cases import Probability
from medtest.systems.segmentation.network import SegmentationNetwork

if TYPE_CHECKING:
    from torch import Tensor


class SSFormerSystem(SegmentationNetwork):
    """SSFormer (Wang et al., MICCAI 2022), compact, or S or L with published weights, told apart by their names.

    Official protocol: image resized to 352×352 by PIL's antialiased bilinear filter, ImageNet normalisation; sigmoid,
    then the *probability* resized to the image's size (bilinear, corners not aligned). The authors' min–max scaling
    comes after thresholding and changes nothing, so it is left out.
    """

    family = "ssformer"
    published = ("ssformer_s", "ssformer_l")

    def _official(self, logits: Tensor, shape: tuple[int, int]) -> Probability:
        import torch
        from torch.nn import functional

        probability = torch.sigmoid(logits)[None]
        resized = functional.interpolate(probability, size=shape, mode="bilinear", align_corners=False)
        return np.asarray(resized[0, 0].cpu().numpy(), np.float32)
