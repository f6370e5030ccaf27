"""ResNet of bottlenecks, cut into the stages that TGANet names ``layer0`` to ``layer3``.

He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, with the stride on the 3×3 convolution, as
torchvision's "v1.5". Parameter names below each stage are torchvision's. Widths and depths are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

EXPANSION = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ResNetConfig:
    """Widths and depths; the defaults are the first three stages of ResNet-50.

    Attributes:
        stem: Output channels of the 7×7 convolution.
        planes: Base channels of the stages; the output of a stage has four times as many.
        blocks: Number of blocks of each stage.
    """

    stem: int = 64
    planes: tuple[int, int, int] = (64, 128, 256)
    blocks: tuple[int, int, int] = (3, 4, 6)


class Bottleneck(nn.Module):
    """Residual block.

    Args:
        inputs: Input channels.
        planes: Base channels; the output has ``4 * planes``.
        stride: Stride of the block.
        first: Whether it opens a stage: the shortcut has a convolution.
    """

    def __init__(self, inputs: int, planes: int, *, stride: int, first: bool) -> None:
        super().__init__()
        outputs = planes * EXPANSION
        self.conv1 = nn.Conv2d(inputs, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Sequential | None = None
        if first:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, 4 * planes, h / stride, w / stride]."""
        inner = self.relu(self.bn1(self.conv1(x)))
        inner = self.relu(self.bn2(self.conv2(inner)))
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(self.bn3(self.conv3(inner)) + shortcut)


def resnet_stages(config: ResNetConfig) -> tuple[tuple[nn.Sequential, ...], tuple[int, int, int, int]]:
    """Return the stages at 1/2, 1/4, 1/8 and 1/16 of the input, and their output channels."""
    stem = nn.Sequential(
        nn.Conv2d(3, config.stem, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(config.stem),
        nn.ReLU(inplace=True),
    )
    stages: list[nn.Sequential] = []
    inputs = config.stem
    for index, (planes, count) in enumerate(zip(config.planes, config.blocks, strict=True)):
        blocks = [Bottleneck(inputs, planes, stride=1 if index == 0 else 2, first=True)]
        inputs = planes * EXPANSION
        blocks += [Bottleneck(inputs, planes, stride=1, first=False) for _ in range(count - 1)]
        stages.append(nn.Sequential(*blocks))
    quarter = nn.Sequential(nn.MaxPool2d(3, stride=2, padding=1), stages[0])
    a, b, c = (planes * EXPANSION for planes in config.planes)
    return (stem, quarter, stages[1], stages[2]), (config.stem, a, b, c)
