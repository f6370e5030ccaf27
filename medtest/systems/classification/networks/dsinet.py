"""DSI-Net: joint segmentation and classification of capsule endoscopy frames.

Zhu, Chen and Yuan, "DSI-Net: Deep Synergistic Interaction Network for Joint Classification and Segmentation with
Endoscope Images", IEEE Transactions on Medical Imaging 40(12), 2021. A coarse segmentation shows the classifier the
lesion's location (lesion location mining, section III-B); the classifier's weights become prototypes from which the
fine segmentation learns the appearance of each class (global prototype generation and category-guided feature
generation, section III-C). Parameter names and layer details follow the published network, checked against recorded
outputs in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.core.errors import MedtestError
from medtest.systems.classification.networks.synergy import CategoryGuidance, GlobalPrototypes, LesionMining
from medtest.systems.classification.networks.xception import Xception, XceptionConfig
from medtest.systems.pytorch.pixels import enlarged

MAPS = 2
"""Channels of a segmentation: background and lesion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DSINetConfig:
    """Widths and depths of a DSI-Net; the defaults are the published network.

    Attributes:
        backbone: Configuration of the Xception backbone.
        classes: Number of classes; the first is the normal one.
        shortcut: Width to which the features at a quarter of the image are reduced.
        aspp: Width of the pyramid of dilated convolutions.
        rates: Dilations of its three 3×3 branches.
        head: Width of the two segmentation heads.
        points: Number of most certain pixels, both of lesion and of background.
        gate: Hidden width of the gates over them.
        cls: Output channels of the three separable convolutions before the classifier.
        context: Width of the prototypes.
    """

    backbone: XceptionConfig = field(default_factory=XceptionConfig)
    classes: int = 3
    shortcut: int = 48
    aspp: int = 256
    rates: tuple[int, int, int] = (6, 12, 18)
    head: int = 256
    points: int = 100
    gate: int = 50
    cls: tuple[int, int, int] = (1536, 1536, 2048)
    context: int = 64


def _conv(inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=dilation * (kernel // 2), dilation=dilation)
    return [convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]


def _head(inputs: int, width: int) -> nn.Sequential:
    first, second = _conv(inputs, width, 3), _conv(width, width, 3)
    return nn.Sequential(*first, nn.Dropout(0.5), *second, nn.Dropout(0.1), nn.Conv2d(width, MAPS, 1))


class Pyramid(nn.Module):
    """Atrous spatial pyramid pooling: one pointwise, three dilated branches, and the image's mean.

    Args:
        inputs: Input channels.
        outputs: Channels of each branch and of the output.
        rates: Dilations.
    """

    def __init__(self, inputs: int, outputs: int, rates: tuple[int, int, int]) -> None:
        super().__init__()
        self.branch1 = nn.Sequential(*_conv(inputs, outputs))
        self.branch2 = nn.Sequential(*_conv(inputs, outputs, 3, rates[0]))
        self.branch3 = nn.Sequential(*_conv(inputs, outputs, 3, rates[1]))
        self.branch4 = nn.Sequential(*_conv(inputs, outputs, 3, rates[2]))
        self.branch5_conv = nn.Conv2d(inputs, outputs, 1)
        self.branch5_bn = nn.BatchNorm2d(outputs)
        self.conv_cat = nn.Sequential(*_conv(5 * outputs, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, outputs, h, w]."""
        mean = torch.relu(self.branch5_bn(self.branch5_conv(x.mean(dim=(2, 3), keepdim=True))))
        wide = mean.expand(-1, -1, *x.shape[2:])  # same as enlarging one pixel bilinearly
        branches = [self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x), wide]
        return self.conv_cat(torch.cat(branches, dim=1))


class DSINet(nn.Module):
    """DSI-Net.

    Args:
        config: Widths and depths; the published network by default.
    """

    def __init__(self, config: DSINetConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or DSINetConfig()
        backbone = Xception(config.backbone)
        quarter, deep, deepest = backbone.widths
        self.shortcut_conv = nn.Sequential(*_conv(quarter, config.shortcut))
        self.aspp = Pyramid(deepest, config.aspp, config.rates)
        self.coarse_head = _head(config.aspp + config.shortcut, config.head)
        self.fine_head = _head(config.aspp + config.context + config.shortcut, config.head)
        layers: list[nn.Module] = []
        for inputs, outputs in zip((deep, *config.cls), config.cls, strict=False):
            # Depthwise and pointwise, without a norm or activation between.
            depthwise = nn.Conv2d(inputs, inputs, 3, padding=2, dilation=2, groups=inputs, bias=False)
            separable = nn.Sequential()
            separable.conv1 = depthwise
            separable.pointwise = nn.Conv2d(inputs, outputs, 1, bias=False)
            layers += [separable, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        self.cls_head = nn.Sequential(*layers)
        self.LLM = LesionMining(deep, config.points, config.gate)
        self.GPG = GlobalPrototypes(config.cls[-1], config.context)
        self.CFG = CategoryGuidance(config.aspp, config.context)
        self.cls_predict = nn.Linear(config.cls[-1], config.classes, bias=False)
        self.backbone = backbone

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map images to two segmentations and a classification.

        Args:
            x: float [B, 3, H, W], RGB in [0, 1]; sides are multiples of 8, large enough for ``points`` pixels at 1/8.

        Returns:
            Logits of the coarse and the fine segmentation [B, 2, H, W] (background, lesion), and of the classes [B, C].

        Raises:
            MedtestError: Unsupported image size.
        """
        height, width = int(x.shape[2]), int(x.shape[3])
        if height % 8 or width % 8 or height * width < 64 * self.config.points:
            least = f"at least {64 * self.config.points} pixels"
            raise MedtestError(f"DSI-Net takes images whose sides are multiples of 8, of {least}, not {width}×{height}")
        quarter, deep, deepest = self.backbone(x)
        shortcut = self.shortcut_conv(quarter)
        pyramid = self.aspp(deepest)
        large = enlarged(pyramid)
        coarse = self.coarse_head(torch.cat([large, shortcut], dim=1))
        share = functional.interpolate(
            torch.softmax(coarse, dim=1), size=deep.shape[2:], mode="bilinear", align_corners=False
        )
        classes = self.cls_predict(self.cls_head(self.LLM(deep, share)).mean(dim=(2, 3)))
        prototypes = self.GPG(self.cls_predict.weight, classes)
        context = self.CFG(pyramid, share, prototypes)
        fine = self.fine_head(torch.cat([large, enlarged(context), shortcut], dim=1))
        return enlarged(coarse, 4), enlarged(fine, 4), classes
