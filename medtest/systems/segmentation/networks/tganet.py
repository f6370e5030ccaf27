"""TGANet: text-guided attention for polyp segmentation.

Tomar et al., "TGANet: Text-guided attention for improved polyp segmentation", MICCAI 2022 (arXiv 2205.04280): the
network predicts number (one, multiple) and size (small, medium, large) of the polyps, weights five word vectors by
these predictions, and uses the resulting vector to gate the channels of its decoder (section 2). Parameter names and
layer details follow the published network, checked against recorded outputs in the tests.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.core.errors import MedtestError
from medtest.systems.pytorch.pixels import enlarged
from medtest.systems.segmentation.networks.res2net import Res2NetConfig, res2net_stages
from medtest.systems.segmentation.networks.resnet import ResNetConfig, resnet_stages

WORDS = ("one", "multiple", "small", "medium", "large")
"""Words of the label vectors' rows, in order: two for number, three for size."""
NUMBERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TGANetConfig:
    """Widths and depths of a TGANet; the defaults are the published network.

    Attributes:
        backbone: Configuration of the ResNet or Res2Net backbone; its first three stages are used.
        channels: Width of the decoder and of the label vector.
        squeeze: Reduction factor of channel attention.
        word_size: Numbers per word vector.
        own_words: Whether the network includes its word vectors as a buffer ``words``; published checkpoints do not.
    """

    backbone: ResNetConfig | Res2NetConfig = field(default_factory=ResNetConfig)
    channels: int = 128
    squeeze: int = 16
    word_size: int = 300
    own_words: bool = False


def _conv(inputs: int, outputs: int, kernel: int, *, dilation: int = 1, active: bool = True) -> nn.Sequential:
    """Return a convolution without bias, with batch norm and an optional ReLU; keys ``conv.0`` and ``conv.1``.

    Args:
        inputs: Input channels.
        outputs: Output channels.
        kernel: Kernel side, odd; the size of the map is preserved.
        dilation: Dilation of the kernel.
        active: Whether a ReLU follows.
    """
    padding = dilation * (kernel // 2)
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=padding, dilation=dilation, bias=False)
    layers = OrderedDict[str, nn.Module](conv=nn.Sequential(convolution, nn.BatchNorm2d(outputs)))
    if active:
        layers["relu"] = nn.ReLU(inplace=True)
    return nn.Sequential(layers)


def _pointwise(inputs: int, outputs: int) -> list[nn.Module]:
    """Return two 1×1 convolutions without bias, with a ReLU between."""
    first, second = nn.Conv2d(inputs, outputs, 1, bias=False), nn.Conv2d(outputs, outputs, 1, bias=False)
    return [first, nn.ReLU(), second]


def _gate(channels: int) -> nn.Sequential:
    return nn.Sequential(OrderedDict(c1=nn.Sequential(*_pointwise(channels, channels))))


class ChannelAttention(nn.Module):
    """Gates channels by their mean and maximum (Woo et al., CBAM, ECCV 2018, section 3).

    Args:
        channels: Channels of the map.
        squeeze: Reduction factor of the inner layer.
    """

    def __init__(self, channels: int, squeeze: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(channels, max(1, channels // squeeze), 1, bias=False)
        self.fc2 = nn.Conv2d(max(1, channels // squeeze), channels, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, C, h, w] to the same shape."""
        mean, most = x.mean(dim=(2, 3), keepdim=True), x.amax(dim=(2, 3), keepdim=True)
        summed = self.fc2(functional.relu(self.fc1(mean))) + self.fc2(functional.relu(self.fc1(most)))
        return x * torch.sigmoid(summed)


class SpatialAttention(nn.Module):
    """Gates pixels by the mean and maximum over their channels (Woo et al., CBAM, ECCV 2018, section 3)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(2, 1, 7, padding=3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, C, h, w] to the same shape."""
        pooled = torch.cat([x.mean(dim=1, keepdim=True), x.amax(dim=1, keepdim=True)], dim=1)
        return x * torch.sigmoid(self.conv1(pooled))


class FeatureEnhancement(nn.Module):
    """Convolutions of growing dilation, each with channel attention, merged with a shortcut (paper, section 2.2).

    Args:
        inputs: Input channels.
        outputs: Output channels.
        squeeze: Reduction factor of the channel attention.
    """

    def __init__(self, inputs: int, outputs: int, squeeze: int) -> None:
        super().__init__()

        def branch(kernel: int, dilation: int) -> nn.Sequential:
            return nn.Sequential(_conv(inputs, outputs, kernel, dilation=dilation), ChannelAttention(outputs, squeeze))

        self.c1 = branch(1, 1)
        self.c2 = branch(3, 6)
        self.c3 = branch(3, 12)
        self.c4 = branch(3, 18)
        self.c5 = _conv(4 * outputs, outputs, 3, active=False)
        self.c6 = _conv(inputs, outputs, 1, active=False)
        self.sa = SpatialAttention()

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, outputs, h, w]."""
        branches = torch.cat([self.c1(x), self.c2(x), self.c3(x), self.c4(x)], dim=1)
        return self.sa(functional.relu(self.c5(branches) + self.c6(x), inplace=True))


class DecoderBlock(nn.Module):
    """Merges a coarser map with the encoder's, through convolutions with accumulated shortcuts.

    Args:
        channels: Channels of both maps and of the output.
        squeeze: Reduction factor of the channel attention.
    """

    def __init__(self, channels: int, squeeze: int) -> None:
        super().__init__()
        self.c1 = _conv(2 * channels, channels, 1)
        self.c2 = _conv(channels, channels, 3, active=False)
        self.c3 = _conv(channels, channels, 3, active=False)
        self.c4 = _conv(channels, channels, 1, active=False)
        self.ca = ChannelAttention(channels, squeeze)
        self.sa = SpatialAttention()

    def forward(self, coarse: Tensor, skip: Tensor) -> Tensor:
        """Map [B, C, h, w] and [B, C, 2h, 2w] to [B, C, 2h, 2w]."""
        first = self.c1(torch.cat([enlarged(coarse), skip], dim=1))
        second = functional.relu(self.c2(first) + first)
        third = functional.relu(self.c3(second) + second + first)
        fourth = functional.relu(self.c4(third) + third + second + first)
        return self.sa(self.ca(fourth))


class LevelAggregation(nn.Module):
    """Merges the decoder's three levels at the finest size (paper, section 2.4).

    Args:
        channels: Channels of each level and of the output.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.c11 = _conv(channels, channels, 1)
        self.c12 = _conv(channels, channels, 1)
        self.c13 = _conv(channels, channels, 1)
        self.c14 = _conv(3 * channels, channels, 1)
        self.c2 = _conv(channels, channels, 3, active=False)
        self.c3 = _conv(channels, channels, 3, active=False)

    def forward(self, coarse: Tensor, middle: Tensor, fine: Tensor) -> Tensor:
        """Map features at 1/8, 1/4 and 1/2 to [B, C, H/2, W/2]."""
        levels = [self.c11(enlarged(coarse, 4)), self.c12(enlarged(middle)), self.c13(fine)]
        first = self.c14(torch.cat(levels, dim=1))
        second = functional.relu(self.c2(first) + first)
        return functional.relu(self.c3(second) + second + first)


class TGANet(nn.Module):
    """TGANet.

    Args:
        config: Widths and depths; the published network by default.
    """

    words: Tensor

    def __init__(self, config: TGANetConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or TGANetConfig()
        if isinstance(config.backbone, Res2NetConfig):
            stages, widths = res2net_stages(config.backbone)
        else:
            stages, widths = resnet_stages(config.backbone)
        self.layer0, self.layer1, self.layer2, self.layer3 = stages
        channels, squeeze = config.channels, config.squeeze
        # Number and size of the polyps, predicted from the deepest feature (paper, section 2.1).
        self.text_classifier = nn.ModuleDict()
        for name, count in (("fc1", NUMBERS), ("fc2", len(WORDS) - NUMBERS)):
            hidden, last = nn.Linear(widths[3], channels, bias=False), nn.Linear(channels, count, bias=False)
            self.text_classifier[name] = nn.Sequential(hidden, nn.ReLU(), last)
        words = nn.Sequential(*_pointwise(len(WORDS) * config.word_size, channels), nn.ReLU())
        self.label_fc = nn.Sequential(OrderedDict(fc=words))
        self.s1, self.s2, self.s3, self.s4 = (FeatureEnhancement(width, channels, squeeze) for width in widths)
        self.d1, self.a1 = DecoderBlock(channels, squeeze), _gate(channels)
        self.d2, self.a2 = DecoderBlock(channels, squeeze), _gate(channels)
        self.d3, self.a3 = DecoderBlock(channels, squeeze), _gate(channels)
        self.ag = LevelAggregation(channels)
        self.y1 = nn.Sequential(OrderedDict(c1=nn.Conv2d(channels, 1, 1)))
        if config.own_words:
            # Any constant that distinguishes the five words suffices; see medtest.training.engine.initial.
            self.register_buffer("words", torch.zeros(len(WORDS), config.word_size))

    def forward(self, image: Tensor, labels: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Map an image and the word vectors to a logit map and the predicted attributes.

        Args:
            image: float [B, 3, H, W] in [0, 1], channels in the order blue, green, red; sides are multiples of 16.
            labels: float [B, 5, D], the vectors of one, multiple, small, medium, large; None uses the network's own
                vectors.

        Returns:
            Logits of the mask [B, 1, H, W], of the number [B, 2] and of the size [B, 3].

        Raises:
            MedtestError: No labels were given, and the network has none.
        """
        if labels is None:
            if not self.config.own_words:
                raise MedtestError("this TGANet carries no word vectors: call it with labels, float [B, 5, 300]")
            labels = self.words.expand(image.shape[0], -1, -1)
        half = self.layer0(image)
        quarter = self.layer1(half)
        eighth = self.layer2(quarter)
        sixteenth = self.layer3(eighth)
        pooled = sixteenth.mean(dim=(2, 3))
        number, size = (self.text_classifier[name](pooled) for name in ("fc1", "fc2"))
        # Word vectors weighted by the predictions, mapped to one vector that gates the decoder (paper, section 2.3).
        weights = torch.cat([torch.softmax(number, dim=1), torch.softmax(size, dim=1)], dim=1)
        label = self.label_fc((labels * weights[:, :, None]).flatten(1)[:, :, None, None])
        levels = [self.s4(sixteenth)]
        for decoder, gating, skip in (
            (self.d1, self.a1, self.s3(eighth)),
            (self.d2, self.a2, self.s2(quarter)),
            (self.d3, self.a3, self.s1(half)),
        ):
            gate = gating(label)
            levels.append(decoder(levels[-1], skip) * torch.sigmoid(gate))
            label = label + gate
        return self.y1(enlarged(self.ag(*levels[1:]))), number, size
