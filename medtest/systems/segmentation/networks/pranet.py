"""PraNet: parallel reverse attention for polyp segmentation.

Fan et al., "PraNet: Parallel Reverse Attention Network for Polyp Segmentation", MICCAI 2020 (arXiv 2006.11392):
receptive field blocks on the three deep stages (section 2.1), a parallel partial decoder that gives a global map, and
reverse attention that refines it from coarse to fine (section 2.2). Parameter names and layer details (no ReLU within
the branches of a receptive field block, batch norm on the one-channel maps, which resizes align corners) follow the
published network, checked against recorded outputs in the tests.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.systems.pytorch.pixels import enlarged
from medtest.systems.segmentation.networks.res2net import Res2Net, Res2NetConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PraNetConfig:
    """Widths and depths of a PraNet; the defaults are the published network.

    Attributes:
        backbone: Configuration of the Res2Net backbone.
        channels: Width of the receptive field blocks and of the decoder.
        coarse_width: Width of the reverse attention at 1/32.
        coarse_kernel: Kernel side of its three middle convolutions, odd.
        fine_width: Width of the reverse attention at 1/16 and 1/8.
    """

    backbone: Res2NetConfig = field(default_factory=Res2NetConfig)
    channels: int = 32
    coarse_width: int = 256
    coarse_kernel: int = 5
    fine_width: int = 64


def _conv_norm(inputs: int, outputs: int, kernel: int | tuple[int, int], *, dilation: int = 1) -> nn.Sequential:
    """Return a convolution without bias and its batch norm, without activation; keys ``conv`` and ``bn``.

    Args:
        inputs: Input channels.
        outputs: Output channels.
        kernel: Kernel height and width, odd; the size of the map is preserved.
        dilation: Dilation of the kernel.
    """
    height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
    padding = (dilation * (height // 2), dilation * (width // 2))
    convolution = nn.Conv2d(inputs, outputs, (height, width), padding=padding, dilation=dilation, bias=False)
    return nn.Sequential(OrderedDict(conv=convolution, bn=nn.BatchNorm2d(outputs)))


class ReceptiveFieldBlock(nn.Module):
    """Four branches of growing kernel and dilation, concatenated (paper, section 2.1; after Liu et al., ECCV 2018).

    Args:
        inputs: Input channels.
        outputs: Output channels.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.branch0 = nn.Sequential(_conv_norm(inputs, outputs, 1))
        self.branch1 = self._branch(inputs, outputs, 3)
        self.branch2 = self._branch(inputs, outputs, 5)
        self.branch3 = self._branch(inputs, outputs, 7)
        self.conv_cat = _conv_norm(4 * outputs, outputs, 3)
        self.conv_res = _conv_norm(inputs, outputs, 1)

    @staticmethod
    def _branch(inputs: int, outputs: int, side: int) -> nn.Sequential:
        return nn.Sequential(
            _conv_norm(inputs, outputs, 1),
            _conv_norm(outputs, outputs, (1, side)),
            _conv_norm(outputs, outputs, (side, 1)),
            _conv_norm(outputs, outputs, 3, dilation=side),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, outputs, h, w]."""
        branches = [self.branch0(x), self.branch1(x), self.branch2(x), self.branch3(x)]
        return self.relu(self.conv_cat(torch.cat(branches, dim=1)) + self.conv_res(x))


class PartialDecoder(nn.Module):
    """Aggregates the three deep features into the global map at 1/8 (paper, section 2.1).

    Args:
        channels: Channels of each feature.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv_upsample1 = _conv_norm(channels, channels, 3)
        self.conv_upsample2 = _conv_norm(channels, channels, 3)
        self.conv_upsample3 = _conv_norm(channels, channels, 3)
        self.conv_upsample4 = _conv_norm(channels, channels, 3)
        self.conv_upsample5 = _conv_norm(2 * channels, 2 * channels, 3)
        self.conv_concat2 = _conv_norm(2 * channels, 2 * channels, 3)
        self.conv_concat3 = _conv_norm(3 * channels, 3 * channels, 3)
        self.conv4 = _conv_norm(3 * channels, 3 * channels, 3)
        self.conv5 = nn.Conv2d(3 * channels, 1, 1)

    def forward(self, coarse: Tensor, middle: Tensor, fine: Tensor) -> Tensor:
        """Map features at 1/32, 1/16 and 1/8 to a logit map [B, 1, H/8, W/8]."""
        coarse_up = enlarged(coarse)
        middle_gated = self.conv_upsample1(coarse_up) * middle
        fine_gated = self.conv_upsample2(enlarged(coarse_up)) * self.conv_upsample3(enlarged(middle)) * fine
        joined = self.conv_concat2(torch.cat([middle_gated, self.conv_upsample4(coarse_up)], dim=1))
        joined = self.conv_concat3(torch.cat([fine_gated, self.conv_upsample5(enlarged(joined))], dim=1))
        return self.conv5(self.conv4(joined))


class PraNet(nn.Module):
    """PraNet.

    Args:
        config: Widths and depths; the published network by default.
    """

    def __init__(self, config: PraNetConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or PraNetConfig()
        _, eighth, sixteenth, deepest = config.backbone.widths
        self.resnet = Res2Net(config.backbone)
        self.rfb2_1 = ReceptiveFieldBlock(eighth, config.channels)
        self.rfb3_1 = ReceptiveFieldBlock(sixteenth, config.channels)
        self.rfb4_1 = ReceptiveFieldBlock(deepest, config.channels)
        self.agg1 = PartialDecoder(config.channels)
        for level, inputs, width, kernels in (
            (4, deepest, config.coarse_width, (1, *[config.coarse_kernel] * 3, 1)),
            (3, sixteenth, config.fine_width, (1, 3, 3, 3)),
            (2, eighth, config.fine_width, (1, 3, 3, 3)),
        ):
            widths = (inputs, *[width] * (len(kernels) - 1), 1)
            for number, kernel in enumerate(kernels, 1):
                convolution = _conv_norm(widths[number - 1], widths[number], kernel)
                self.add_module(f"ra{level}_conv{number}", convolution)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Map an image to four logit maps.

        Args:
            x: float [B, 3, H, W], RGB, ImageNet mean and standard deviation; sides are multiples of 32.

        Returns:
            Logits [B, 1, H, W]: the global map, then the maps refined at 1/32, 1/16 and 1/8. The last is the answer.
        """
        _, two, three, four = self.resnet(x)
        overall = self.agg1(self.rfb4_1(four), self.rfb3_1(three), self.rfb2_1(two))
        map4 = self._refine(overall, four, 0.25, 4)
        map3 = self._refine(map4, three, 2.0, 3)
        map2 = self._refine(map3, two, 2.0, 2)
        return _resize(overall, 8.0), _resize(map4, 32.0), _resize(map3, 16.0), _resize(map2, 8.0)

    def _refine(self, coarser: Tensor, features: Tensor, factor: float, level: int) -> Tensor:
        """Refine a coarser logit map with the features outside it (reverse attention, paper eq. 2 and 3)."""
        first, *middle, last = (module for name, module in self.named_children() if name.startswith(f"ra{level}_"))
        resized = _resize(coarser, factor)
        x = first(features * (1.0 - torch.sigmoid(resized)))
        for conv in middle:
            x = functional.relu(conv(x), inplace=True)
        return last(x) + resized


def _resize(logits: Tensor, factor: float) -> Tensor:
    return functional.interpolate(logits, scale_factor=factor, mode="bilinear", align_corners=False)
