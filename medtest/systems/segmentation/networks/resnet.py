"""ResNet of bottlenecks, cut into the stages that TGANet names ``layer0`` to ``layer3``.

He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, with the stride on the 3×3 convolution, as
torchvision's "v1.5". Parameter names below each stage are torchvision's. Widths and depths are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

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


def resnet_stages(config: ResNetConfig) -> tuple[tuple[nn.Sequential, ...], tuple[int, int, int, int]]:
    """Return the stages at 1/2, 1/4, 1/8 and 1/16 of the input, and their output channels."""
    from torchvision.models.resnet import Bottleneck

    stem = nn.Sequential(
        nn.Conv2d(3, config.stem, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(config.stem),
        nn.ReLU(inplace=True),
    )
    stages: list[nn.Sequential] = []
    inputs = config.stem
    for index, (planes, count) in enumerate(zip(config.planes, config.blocks, strict=True)):
        outputs, stride = planes * EXPANSION, 1 if index == 0 else 2
        shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
        first = Bottleneck(inputs, planes, stride, nn.Sequential(shortcut, nn.BatchNorm2d(outputs)))
        stages.append(nn.Sequential(first, *(Bottleneck(outputs, planes) for _ in range(count - 1))))
        inputs = outputs
    quarter = nn.Sequential(nn.MaxPool2d(3, stride=2, padding=1), stages[0])
    a, b, c = (planes * EXPANSION for planes in config.planes)
    return (stem, quarter, stages[1], stages[2]), (config.stem, a, b, c)
