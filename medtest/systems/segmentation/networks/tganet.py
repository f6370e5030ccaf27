"""TGANet: text-guided attention for polyp segmentation.

Tomar et al., "TGANet: Text-guided attention for improved polyp segmentation", MICCAI 2022 (arXiv 2205.04280): the
network predicts number (one, multiple) and size (small, medium, large) of the polyps, weights five word vectors by
these predictions, and uses the resulting vector to gate the channels of its decoder (section 2). Parameter names and
layer details follow the published network, checked against recorded outputs in the tests.
"""

from __future__ import annotations

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


class Conv(nn.Module):
    """Convolution without bias, with batch norm and an optional ReLU; keys ``conv.0`` and ``conv.1``.

    Args:
        inputs: Input channels.
        outputs: Output channels.
        kernel: Kernel side, odd; the size of the map is preserved.
        dilation: Dilation of the kernel.
        active: Whether a ReLU follows.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, *, dilation: int = 1, active: bool = True) -> None:
        super().__init__()
        padding = dilation * (kernel // 2)
        self.conv = nn.Sequential(
            nn.Conv2d(inputs, outputs, kernel, padding=padding, dilation=dilation, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.active = active

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, outputs, h, w]."""
        normed: Tensor = self.conv(x)
        return functional.relu(normed, inplace=True) if self.active else normed


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
            return nn.Sequential(Conv(inputs, outputs, kernel, dilation=dilation), ChannelAttention(outputs, squeeze))

        self.c1 = branch(1, 1)
        self.c2 = branch(3, 6)
        self.c3 = branch(3, 12)
        self.c4 = branch(3, 18)
        self.c5 = Conv(4 * outputs, outputs, 3, active=False)
        self.c6 = Conv(inputs, outputs, 1, active=False)
        self.sa = SpatialAttention()

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, outputs, h, w]."""
        branches = torch.cat([self.c1(x), self.c2(x), self.c3(x), self.c4(x)], dim=1)
        return self.sa(functional.relu(self.c5(branches) + self.c6(x), inplace=True))


class TextClassifier(nn.Module):
    """Predicts number and size of the polyps from the deepest feature (paper, section 2.1).

    Args:
        inputs: Channels of that feature.
        inner: Width of the hidden layers.
    """

    def __init__(self, inputs: int, inner: int) -> None:
        super().__init__()
        self.fc1 = nn.Sequential(nn.Linear(inputs, inner, bias=False), nn.ReLU(), nn.Linear(inner, NUMBERS, bias=False))
        self.fc2 = nn.Sequential(
            nn.Linear(inputs, inner, bias=False), nn.ReLU(), nn.Linear(inner, len(WORDS) - NUMBERS, bias=False)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map [B, inputs, h, w] to logits of number [B, 2] and of size [B, 3]."""
        pooled = x.mean(dim=(2, 3))
        return self.fc1(pooled), self.fc2(pooled)


class LabelVector(nn.Module):
    """Weights the word vectors by the predictions and maps them to one vector (paper, section 2.3).

    Args:
        words: Total size of all word vectors.
        outputs: Size of the output vector.
    """

    def __init__(self, words: int, outputs: int) -> None:
        super().__init__()
        self.fc = nn.Sequential(
            nn.Conv2d(words, outputs, 1, bias=False), nn.ReLU(), nn.Conv2d(outputs, outputs, 1, bias=False), nn.ReLU()
        )

    def forward(self, words: Tensor, number: Tensor, size: Tensor) -> Tensor:
        """Map word vectors [B, 5, D] and the logits of number and size to [B, outputs, 1, 1]."""
        weights = torch.cat([torch.softmax(number, dim=1), torch.softmax(size, dim=1)], dim=1)
        return self.fc((words * weights[:, :, None]).flatten(1)[:, :, None, None])


class LabelAttention(nn.Module):
    """Gates channels by the label vector (paper, section 2.3).

    Args:
        channels: Channels of map and vector.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.c1 = nn.Sequential(
            nn.Conv2d(channels, channels, 1, bias=False), nn.ReLU(), nn.Conv2d(channels, channels, 1, bias=False)
        )

    def forward(self, x: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gated map and the gate before its sigmoid, which is passed to the next level."""
        gate = self.c1(label)
        return x * torch.sigmoid(gate), gate


class DecoderBlock(nn.Module):
    """Merges a coarser map with the encoder's, through convolutions with accumulated shortcuts.

    Args:
        channels: Channels of both maps and of the output.
        squeeze: Reduction factor of the channel attention.
    """

    def __init__(self, channels: int, squeeze: int) -> None:
        super().__init__()
        self.c1 = Conv(2 * channels, channels, 1)
        self.c2 = Conv(channels, channels, 3, active=False)
        self.c3 = Conv(channels, channels, 3, active=False)
        self.c4 = Conv(channels, channels, 1, active=False)
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
        self.c11 = Conv(channels, channels, 1)
        self.c12 = Conv(channels, channels, 1)
        self.c13 = Conv(channels, channels, 1)
        self.c14 = Conv(3 * channels, channels, 1)
        self.c2 = Conv(channels, channels, 3, active=False)
        self.c3 = Conv(channels, channels, 3, active=False)

    def forward(self, coarse: Tensor, middle: Tensor, fine: Tensor) -> Tensor:
        """Map features at 1/8, 1/4 and 1/2 to [B, C, H/2, W/2]."""
        levels = [self.c11(enlarged(coarse, 4)), self.c12(enlarged(middle)), self.c13(fine)]
        first = self.c14(torch.cat(levels, dim=1))
        second = functional.relu(self.c2(first) + first)
        return functional.relu(self.c3(second) + second + first)


class OutputBlock(nn.Module):
    """Output head at the input's size.

    Args:
        channels: Input channels.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.c1 = nn.Conv2d(channels, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, C, H/2, W/2] to logits [B, 1, H, W]."""
        return self.c1(enlarged(x))


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
        self.text_classifier = TextClassifier(widths[3], channels)
        self.label_fc = LabelVector(len(WORDS) * config.word_size, channels)
        self.s1 = FeatureEnhancement(widths[0], channels, squeeze)
        self.s2 = FeatureEnhancement(widths[1], channels, squeeze)
        self.s3 = FeatureEnhancement(widths[2], channels, squeeze)
        self.s4 = FeatureEnhancement(widths[3], channels, squeeze)
        self.d1 = DecoderBlock(channels, squeeze)
        self.a1 = LabelAttention(channels)
        self.d2 = DecoderBlock(channels, squeeze)
        self.a2 = LabelAttention(channels)
        self.d3 = DecoderBlock(channels, squeeze)
        self.a3 = LabelAttention(channels)
        self.ag = LevelAggregation(channels)
        self.y1 = OutputBlock(channels)
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
        number, size = self.text_classifier(sixteenth)
        label = self.label_fc(labels, number, size)
        coarse, gate1 = self.a1(self.d1(self.s4(sixteenth), self.s3(eighth)), label)
        middle, gate2 = self.a2(self.d2(coarse, self.s2(quarter)), label + gate1)
        fine, _ = self.a3(self.d3(middle, self.s1(half)), label + gate1 + gate2)
        return self.y1(self.ag(coarse, middle, fine)), number, size
