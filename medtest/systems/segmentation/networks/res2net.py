"""Res2Net of the "v1b" kind (deep stem, average-pooled shortcuts), the backbone of PraNet and of SANet.

Gao et al., "Res2Net: A New Multi-scale Backbone Architecture", TPAMI 2021 (arXiv 1904.01169), section 3: a residual
block whose middle convolution is split into ``scale`` groups of channels that are processed one after the other.
Parameter names are those of the published checkpoints. Stem, widths and depths are arguments, so that the published
26w×4s network of 50 layers and a compact one are the same class.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

EXPANSION = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Res2NetConfig:
    """Widths and depths of a Res2Net; the defaults are the published 50-layer network, 26 wide, scale 4.

    Attributes:
        stem: Output channels of the stem's three 3×3 convolutions; the last one is the width at the max-pool.
        planes: Base channels of the four stages; the output of a stage has four times as many.
        blocks: Number of blocks of each stage.
        base_width: Channels of a split per 64 base channels.
        scale: Number of splits of the middle convolution.
        classes: Outputs of the unused ImageNet head in published checkpoints; 0 omits it.
    """

    stem: tuple[int, int, int] = (32, 32, 64)
    planes: tuple[int, int, int, int] = (64, 128, 256, 512)
    blocks: tuple[int, int, int, int] = (3, 4, 6, 3)
    base_width: int = 26
    scale: int = 4
    classes: int = 1000

    @property
    def widths(self) -> tuple[int, int, int, int]:
        """Output channels of the four stages."""
        a, b, c, d = self.planes
        return a * EXPANSION, b * EXPANSION, c * EXPANSION, d * EXPANSION


def _conv(inputs: int, outputs: int, kernel: int, *, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)


class Res2NetBlock(nn.Module):
    """Residual block of a Res2Net.

    Args:
        inputs: Input channels.
        planes: Base channels; the output has ``4 * planes``.
        stride: Stride of the block.
        first: Whether it opens a stage: its splits are not chained, and the shortcut has a convolution.
        base_width: See :class:`Res2NetConfig`.
        scale: See :class:`Res2NetConfig`.
    """

    def __init__(self, inputs: int, planes: int, *, stride: int, first: bool, base_width: int, scale: int) -> None:
        super().__init__()
        width = planes * base_width // 64
        outputs = planes * EXPANSION
        self.conv1 = _conv(inputs, width * scale, 1)
        self.bn1 = nn.BatchNorm2d(width * scale)
        self.convs = nn.ModuleList(_conv(width, width, 3, stride=stride) for _ in range(scale - 1))
        self.bns = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(scale - 1))
        self.conv3 = _conv(width * scale, outputs, 1)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.first = first
        if first:
            # This mean includes the padding (count_include_pad), unlike the shortcut's.
            self.pool = nn.AvgPool2d(3, stride=stride, padding=1)
            self.downsample = nn.Sequential(
                nn.AvgPool2d(stride, stride, ceil_mode=True, count_include_pad=False),
                _conv(inputs, outputs, 1),
                nn.BatchNorm2d(outputs),
            )

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, 4 * planes, h / stride, w / stride]."""
        splits = torch.chunk(self.relu(self.bn1(self.conv1(x))), len(self.convs) + 1, dim=1)
        outputs: list[Tensor] = []
        for index, (conv, bn) in enumerate(zip(self.convs, self.bns, strict=True)):
            part = splits[index] if index == 0 or self.first else outputs[-1] + splits[index]
            outputs.append(self.relu(bn(conv(part))))
        outputs.append(self.pool(splits[-1]) if self.first else splits[-1])
        shortcut = self.downsample(x) if self.first else x
        return self.relu(self.bn3(self.conv3(torch.cat(outputs, dim=1))) + shortcut)


class Res2Net(nn.Module):
    """Backbone that returns four stages at 1/4, 1/8, 1/16 and 1/32 of the input.

    Args:
        config: Widths and depths.
    """

    def __init__(self, config: Res2NetConfig) -> None:
        super().__init__()
        first, second, third = config.stem
        self.conv1 = nn.Sequential(
            _conv(3, first, 3, stride=2),
            nn.BatchNorm2d(first),
            nn.ReLU(inplace=True),
            _conv(first, second, 3),
            nn.BatchNorm2d(second),
            nn.ReLU(inplace=True),
            _conv(second, third, 3),
        )
        self.bn1 = nn.BatchNorm2d(third)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        stages: list[nn.Sequential] = []
        inputs = third
        for index, (planes, count) in enumerate(zip(config.planes, config.blocks, strict=True)):
            stages.append(_stage(inputs, planes, count, stride=1 if index == 0 else 2, config=config))
            inputs = planes * EXPANSION
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        if config.classes:
            self.fc = nn.Linear(inputs, config.classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Map an image [B, 3, H, W] to the features of the four stages, finest first."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        first = self.layer1(x)
        second = self.layer2(first)
        third = self.layer3(second)
        return first, second, third, self.layer4(third)


def _stage(inputs: int, planes: int, count: int, *, stride: int, config: Res2NetConfig) -> nn.Sequential:
    sides = {"base_width": config.base_width, "scale": config.scale}
    first = Res2NetBlock(inputs, planes, stride=stride, first=True, **sides)
    rest = (Res2NetBlock(planes * EXPANSION, planes, stride=1, first=False, **sides) for _ in range(count - 1))
    return nn.Sequential(first, *rest)


def res2net_stages(config: Res2NetConfig) -> tuple[tuple[nn.Sequential, ...], tuple[int, int, int, int]]:
    """Return the stages at 1/2, 1/4, 1/8 and 1/16 of the input, split as in TGANet, and their channels."""
    whole = Res2Net(config)
    stem = nn.Sequential(whole.conv1, whole.bn1, whole.relu)
    quarter = nn.Sequential(whole.maxpool, whole.layer1)
    return (stem, quarter, whole.layer2, whole.layer3), (config.stem[2], *config.widths[:3])
