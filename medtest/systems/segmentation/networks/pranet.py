"""PraNet: parallel reverse attention for polyp segmentation.

Fan et al., "PraNet: Parallel Reverse Attention Network for Polyp Segmentation", MICCAI 2020 (arXiv 2006.11392):
receptive field blocks on the three deep stages (section 2.1), a parallel partial decoder that gives a global map, and
reverse attention that refines it from coarse to fine (section 2.2). Parameter names and layer details (no ReLU within
the branches of a receptive field block, batch norm on the one-channel maps, which resizes align corners) follow the
published network, checked against recorded outputs in the tests.
"""

from __future__ import annotations

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


class ConvNorm(nn.Module):
    """Convolution without bias and its batch norm, without activation; keys ``conv`` and ``bn``.

    Args:
        inputs: Input channels.
        outputs: Output channels.
        kernel: Kernel height and width, odd; the size of the map is preserved.
        dilation: Dilation of the kernel.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int | tuple[int, int], *, dilation: int = 1) -> None:
        super().__init__()
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = (dilation * (height // 2), dilation * (width // 2))
        self.conv = nn.Conv2d(inputs, outputs, (height, width), padding=padding, dilation=dilation, bias=False)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, outputs, h, w]."""
        return self.bn(self.conv(x))


class ReceptiveFieldBlock(nn.Module):
    """Four branches of growing kernel and dilation, concatenated (paper, section 2.1; after Liu et al., ECCV 2018).

    Args:
        inputs: Input channels.
        outputs: Output channels.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.branch0 = nn.Sequential(ConvNorm(inputs, outputs, 1))
        self.branch1 = self._branch(inputs, outputs, 3)
        self.branch2 = self._branch(inputs, outputs, 5)
        self.branch3 = self._branch(inputs, outputs, 7)
        self.conv_cat = ConvNorm(4 * outputs, outputs, 3)
        self.conv_res = ConvNorm(inputs, outputs, 1)

    @staticmethod
    def _branch(inputs: int, outputs: int, side: int) -> nn.Sequential:
        return nn.Sequential(
            ConvNorm(inputs, outputs, 1),
            ConvNorm(outputs, outputs, (1, side)),
            ConvNorm(outputs, outputs, (side, 1)),
            ConvNorm(outputs, outputs, 3, dilation=side),
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
        self.conv_upsample1 = ConvNorm(channels, channels, 3)
        self.conv_upsample2 = ConvNorm(channels, channels, 3)
        self.conv_upsample3 = ConvNorm(channels, channels, 3)
        self.conv_upsample4 = ConvNorm(channels, channels, 3)
        self.conv_upsample5 = ConvNorm(2 * channels, 2 * channels, 3)
        self.conv_concat2 = ConvNorm(2 * channels, 2 * channels, 3)
        self.conv_concat3 = ConvNorm(3 * channels, 3 * channels, 3)
        self.conv4 = ConvNorm(3 * channels, 3 * channels, 3)
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
        coarse, fine = config.coarse_width, config.fine_width
        self.ra4_conv1 = ConvNorm(deepest, coarse, 1)
        self.ra4_conv2 = ConvNorm(coarse, coarse, config.coarse_kernel)
        self.ra4_conv3 = ConvNorm(coarse, coarse, config.coarse_kernel)
        self.ra4_conv4 = ConvNorm(coarse, coarse, config.coarse_kernel)
        self.ra4_conv5 = ConvNorm(coarse, 1, 1)
        self.ra3_conv1 = ConvNorm(sixteenth, fine, 1)
        self.ra3_conv2 = ConvNorm(fine, fine, 3)
        self.ra3_conv3 = ConvNorm(fine, fine, 3)
        self.ra3_conv4 = ConvNorm(fine, 1, 3)
        self.ra2_conv1 = ConvNorm(eighth, fine, 1)
        self.ra2_conv2 = ConvNorm(fine, fine, 3)
        self.ra2_conv3 = ConvNorm(fine, fine, 3)
        self.ra2_conv4 = ConvNorm(fine, 1, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Map an image to four logit maps.

        Args:
            x: float [B, 3, H, W], RGB, ImageNet mean and standard deviation; sides are multiples of 32.

        Returns:
            Logits [B, 1, H, W]: the global map, then the maps refined at 1/32, 1/16 and 1/8. The last is the answer.
        """
        _, two, three, four = self.resnet(x)
        overall = self.agg1(self.rfb4_1(four), self.rfb3_1(three), self.rfb2_1(two))
        map4 = self._refine(overall, four, 0.25, [self.ra4_conv2, self.ra4_conv3, self.ra4_conv4], 4)
        map3 = self._refine(map4, three, 2.0, [self.ra3_conv2, self.ra3_conv3], 3)
        map2 = self._refine(map3, two, 2.0, [self.ra2_conv2, self.ra2_conv3], 2)
        return _resize(overall, 8.0), _resize(map4, 32.0), _resize(map3, 16.0), _resize(map2, 8.0)

    def _refine(self, coarser: Tensor, features: Tensor, factor: float, middle: list[ConvNorm], level: int) -> Tensor:
        """Refine a coarser logit map with the features outside it (reverse attention, paper eq. 2 and 3)."""
        first: nn.Module = getattr(self, f"ra{level}_conv1")
        last: nn.Module = getattr(self, f"ra{level}_conv{len(middle) + 2}")
        resized = _resize(coarser, factor)
        x = first(features * (1.0 - torch.sigmoid(resized)))
        for conv in middle:
            x = functional.relu(conv(x), inplace=True)
        return last(x) + resized


def _resize(logits: Tensor, factor: float) -> Tensor:
    return functional.interpolate(logits, scale_factor=factor, mode="bilinear", align_corners=False)
