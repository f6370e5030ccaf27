"""SANet: shallow attention for polyp segmentation.

Wei et al., "Shallow Attention Network for Polyp Segmentation", MICCAI 2021 (arXiv 2108.00882): three deep features of a
Res2Net, multiplied into one another so that the deeper ones mask the noise of the shallower ones (section 2.2), and one
1×1 convolution. Parameter names and layer details (resizes that align corners, an answer at 1/8 of the input) follow
the published network, checked against recorded outputs in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.systems.segmentation.networks.res2net import Res2Net, Res2NetConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SANetConfig:
    """Widths and depths of a SANet; the defaults are the published network.

    Attributes:
        backbone: Configuration of the Res2Net backbone, without a head in the published network.
        channels: Width to which the three deep features are reduced.
    """

    backbone: Res2NetConfig = field(default_factory=lambda: Res2NetConfig(classes=0))
    channels: int = 64


def _reduce(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class SANet(nn.Module):
    """SANet.

    Args:
        config: Widths and depths; the published network by default.
    """

    def __init__(self, config: SANetConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or SANetConfig()
        _, eighth, sixteenth, deepest = config.backbone.widths
        self.bkbone = Res2Net(config.backbone)
        self.linear5 = _reduce(deepest, config.channels)
        self.linear4 = _reduce(sixteenth, config.channels)
        self.linear3 = _reduce(eighth, config.channels)
        self.predict = nn.Conv2d(3 * config.channels, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Map an image to a logit map at 1/8 of its size.

        Args:
            x: float [B, 3, H, W], RGB, ImageNet mean and standard deviation.

        Returns:
            Logits [B, 1, H/8, W/8].
        """
        _, eighth, sixteenth, deepest = self.bkbone(x)
        fine = self.linear3(eighth)
        size = (int(fine.shape[2]), int(fine.shape[3]))
        middle = functional.interpolate(self.linear4(sixteenth), size=size, mode="bilinear", align_corners=True)
        coarse = functional.interpolate(self.linear5(deepest), size=size, mode="bilinear", align_corners=True)
        gated = coarse * middle
        return self.predict(torch.cat([coarse, gated, gated * fine], dim=1))
