"""Xception backbone of DeepLabv3+, with an output stride of 8.

Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", CVPR 2017; Chen et al., "Encoder-Decoder with
Atrous Separable Convolution for Semantic Image Segmentation", ECCV 2018, section 3.2: batch norms within the separable
convolutions, strides instead of pooling, more blocks in the middle. Parameter names and the quirk of the middle blocks
follow the network published with DSI-Net, checked against recorded outputs in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

ENTRY_BLOCKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class XceptionConfig:
    """Widths and depths; the defaults are the published network.

    Attributes:
        stem: Output channels of the first two convolutions.
        entry: Output channels of the three entry blocks.
        middle: Number of middle blocks, with the width of the last entry block.
        last: Output channels of the block after them.
        tail: Output channels of the three separable convolutions at the end.
    """

    stem: tuple[int, int] = (32, 64)
    entry: tuple[int, int, int] = (128, 256, 728)
    middle: int = 16
    last: int = 1024
    tail: tuple[int, int, int] = (1536, 1536, 2048)


class SeparableConv(nn.Module):
    """Depthwise 3×3 and pointwise convolution, each with a batch norm.

    Args:
        inputs: Input channels.
        outputs: Output channels.
        stride: Stride of the depthwise convolution.
        dilation: Dilation of the depthwise convolution.
        rectified: Position of the ReLU: ``before`` both convolutions, or ``after`` each.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        stride: int = 1,
        dilation: int = 1,
        rectified: Literal["before", "after"] = "before",
    ) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(
            inputs, inputs, 3, stride=stride, padding=dilation, dilation=dilation, groups=inputs, bias=False
        )
        self.bn1 = nn.BatchNorm2d(inputs)
        self.pointwise = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self._before = rectified == "before"

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, outputs, h / stride, w / stride]."""
        if self._before:
            return self.of_rectified(torch.relu(x))
        return self.bn2(self.pointwise(self.bn1(self.depthwise(x)).relu_())).relu_()

    def of_rectified(self, x: Tensor) -> Tensor:
        """Map an input that has already passed the ReLU."""
        return self.bn2(self.pointwise(self.bn1(self.depthwise(x))))


class XceptionBlock(nn.Module):
    """Three separable convolutions and a shortcut.

    A block without a convolution in its shortcut adds relu(x), not x, because the published network's first ReLU
    overwrites the block's input.

    Args:
        inputs: Input channels.
        outputs: Output channels.
        stride: Stride of the third convolution.
        dilation: Dilation of all three.
        grows: Index of the convolution (0 or 1) that changes the number of channels.
        skip: Whether the shortcut has a convolution.
    """

    def __init__(
        self, inputs: int, outputs: int, *, stride: int = 1, dilation: int = 1, grows: int = 0, skip: bool = True
    ) -> None:
        super().__init__()
        self.skip: nn.Conv2d | None = None
        if skip:
            self.skip = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
            self.skipbn = nn.BatchNorm2d(outputs)
        widths = [inputs if i <= grows else outputs for i in range(3)]
        self.sepconv1 = SeparableConv(widths[0], widths[1], dilation=dilation)
        self.sepconv2 = SeparableConv(widths[1], widths[2], dilation=dilation)
        self.sepconv3 = SeparableConv(widths[2], outputs, stride=stride, dilation=dilation)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map [B, inputs, h, w] to the output [B, outputs, h / stride, w / stride] and the third input."""
        rectified = torch.relu(x)
        shortcut = rectified if self.skip is None else self.skipbn(self.skip(x))
        before_last = self.sepconv2.of_rectified(self.sepconv1.of_rectified(rectified).relu_())
        return self.sepconv3(before_last) + shortcut, before_last


class Xception(nn.Module):
    """Xception without a classifier.

    Args:
        config: Widths and depths; the published network by default.

    Attributes:
        widths: Channels of the three features returned by :meth:`forward`.
    """

    def __init__(self, config: XceptionConfig | None = None) -> None:
        super().__init__()
        config = config or XceptionConfig()
        first, second = config.stem
        self.conv1 = nn.Conv2d(3, first, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        self.conv2 = nn.Conv2d(first, second, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(second)
        a, b, c = config.entry
        self.block1 = XceptionBlock(second, a, stride=2)
        self.block2 = XceptionBlock(a, b, stride=2)
        self.block3 = XceptionBlock(b, c)
        self._middle = [f"block{ENTRY_BLOCKS + 1 + i}" for i in range(config.middle)]
        for name in self._middle:
            self.add_module(name, XceptionBlock(c, c, dilation=2, skip=False))
        self._last = f"block{ENTRY_BLOCKS + 1 + config.middle}"
        self.add_module(self._last, XceptionBlock(c, config.last, dilation=2, grows=1))
        x, y, z = config.tail
        self.conv3 = SeparableConv(config.last, x, dilation=2, rectified="after")
        self.conv4 = SeparableConv(x, y, dilation=2, rectified="after")
        self.conv5 = SeparableConv(y, z, dilation=2, rectified="after")
        self.widths = (b, config.last, z)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map [B, 3, H, W] to features at 1/4, 1/8 and 1/8 of its size.

        They are the input of the third convolution of the second block, the output of the last block, both before their
        ReLU, and the output of the network.
        """
        x = self.bn1(self.conv1(x)).relu_()
        x = self.bn2(self.conv2(x)).relu_()
        x, _ = self.block1(x)
        x, quarter = self.block2(x)
        x, _ = self.block3(x)
        for name in self._middle:
            x, _ = self.get_submodule(name)(x)
        deep, _ = self.get_submodule(self._last)(x)
        return quarter, deep, self.conv5(self.conv4(self.conv3(deep)))
