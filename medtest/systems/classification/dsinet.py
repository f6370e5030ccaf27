"""DSI-Net as a system under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.classes import CAPSULE
from medtest.systems.classification.network import ClassificationNetwork

if TYPE_CHECKING:
    from torch import Tensor

STRIDE = 8
"""Image sides must be multiples of this."""


class DSINetSystem(ClassificationNetwork):
    """DSI-Net (Zhu et al., IEEE TMI 2021), compact or with published weights: classes, and the lesion's mask.

    Official input: resized to 256×256 by PIL's antialiased bilinear filter, divided by 255 and not normalised further.
    The authors resize the shorter side and have square pictures only; others are stretched to the square here. With
    ``input: as_is`` a picture whose sides are multiples of 8 is not resized at all.

    Answer: the softmax of three logits (normal, vascular, inflammatory), and the softmax of the fine segmentation's two
    channels, whose second is the lesion, at the input's size; cut at 0.5, which equals the argmax. The coarse
    segmentation is not used. The authors evaluate masks only on images with a lesion.
    """

    family = "dsinet"
    published = ("dsinet",)
    published_size = 256
    own_classes = CAPSULE
    answer_output = 2

    def _takes(self, height: int, width: int) -> bool:
        # Half the training side still contains enough points for the network's comparisons.
        return not (height % STRIDE or width % STRIDE or min(height, width) < self._size // 2)

    def _example(self) -> Tensor:
        import torch

        return torch.zeros(1, 3, 128, 128)

    def _masks(self, outputs: Any) -> Sequence[NDArray[np.float32]]:
        import torch

        shares = torch.softmax(outputs[1].float(), dim=1)[:, 1]
        return list(np.asarray(shares.cpu().numpy(), np.float32))
