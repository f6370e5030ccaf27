"""CheXNet: a DenseNet-121 that detects 14 findings in a chest film.

Rajpurkar et al., "CheXNet: Radiologist-Level Pneumonia Detection on Chest X-Rays with Deep Learning", arXiv 1711.05225,
in the best-known reproduction, whose weights are in use: torchvision's DenseNet (Huang et al., CVPR 2017) in an
attribute ``densenet121``, and a head that ends in a sigmoid. Checked against recorded outputs in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True, kw_only=True)
class CheXNetConfig:
    """Widths and depths of a CheXNet; the defaults are the published network.

    Attributes:
        growth: Channels added by each layer.
        blocks: Layers of the four dense blocks.
        stem: Channels of the first convolution.
        bottleneck: Channels of the 1×1 convolution of a layer, as a multiple of ``growth``.
        classes: Number of findings.
    """

    growth: int = 32
    blocks: tuple[int, int, int, int] = (6, 12, 24, 16)
    stem: int = 64
    bottleneck: int = 4
    classes: int = 14


class CheXNet(nn.Module):
    """CheXNet.

    Args:
        config: Widths and depths; the published network by default.
    """

    def __init__(self, config: CheXNetConfig | None = None) -> None:
        super().__init__()
        from torchvision.models.densenet import DenseNet

        self.config = config = config or CheXNetConfig()
        self.densenet121 = DenseNet(
            growth_rate=config.growth,
            block_config=config.blocks,
            num_init_features=config.stem,
            bn_size=config.bottleneck,
            num_classes=config.classes,
        )
        features = self.densenet121.classifier.in_features
        self.densenet121.classifier = nn.Sequential(nn.Linear(features, config.classes), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        """Return the probability of every finding, float [B, classes].

        Args:
            x: float [B, 3, H, W], RGB, ImageNet mean and standard deviation; 224×224 in the published network.
        """
        return self.densenet121(x)

    def logits(self, x: Tensor) -> Tensor:
        """Return the inputs of the sigmoid, [B, classes], for a loss that does not overflow.

        Args:
            x: As in :meth:`forward`.
        """
        features = functional.relu(self.densenet121.features(x)).mean(dim=(2, 3))
        return self.densenet121.classifier[0](features)
