"""Inception-v3 for diabetic retinopathy as a system under test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtest.phantoms.classes import FUNDUS
from medtest.systems.checkpoints.network import SUFFIXES
from medtest.systems.classification.network import ClassificationNetwork

if TYPE_CHECKING:
    from torch import Tensor

SMALLEST = 75
"""Minimum side; smaller images vanish before the last block."""


class InceptionDRSystem(ClassificationNetwork):
    """Inception-v3 with four grades (Xu et al., MedIA 2021), compact or with weights of that form.

    Official input: resized to 299×299, ignoring the aspect ratio (bilinear, antialiased, as in Pillow), no crop; mean
    and standard deviation of CIFAR-10, as in the published loader. On top of that, the network itself applies the
    conversion from ImageNet's normalisation to Inception's own. Under ``as_is`` the image may have any size from 75
    pixels. Answer: the softmax of four logits, grades 0 to 3 of Messidor. The published code takes the logistic
    function of each for its AUC; the order of classes, and so the decision, is the same.
    """

    family = "inceptionv3_dr"
    published = ("inceptionv3_dr",)
    published_size = 299
    # Its authors call theirs messidor_inceptionv3.pkl.
    suffixes = (*SUFFIXES, ".pkl")
    own_classes = FUNDUS

    def _takes(self, height: int, width: int) -> bool:
        return min(height, width) >= SMALLEST

    def _example(self) -> Tensor:
        import torch

        return torch.zeros(1, 3, 96, 96)
