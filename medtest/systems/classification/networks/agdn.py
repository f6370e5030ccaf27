"""AGDN: two networks for capsule endoscopy frames, the second of which looks at the area the first has zoomed into.

Xing, Yuan and Meng, "Zoom in Lesions for Better Diagnosis: Attention Guided Deformation Network for WCE Image
Classification", IEEE Transactions on Medical Imaging 39(12), 2020. Each branch is a DenseNet-BC (Huang et al., CVPR
2017) with three feature aggregations. Names are those of the published TensorFlow graph, with dots for slashes. Tests
compare its formulas with NumPy and SciPy, because neither weights nor outputs were published.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.systems.classification.networks.aggregation import Aggregation
from medtest.systems.classification.networks.deformation import attention_of, deform, legacy_resize

SIDE = 128
"""Input side of each branch in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AGDNConfig:
    """Widths and depths of an AGDN; the defaults are the published network.

    Attributes:
        classes: Number of classes; the first is the normal one.
        first: Output channels of the first convolution.
        growth: Channels added by each layer.
        bottleneck: Width of a layer's first convolution, in multiples of ``growth``.
        layers: Layers of the four blocks.
        grid: Side of the attention map that guides the deformation.
        share: Weight of the pixel-wise grid in the deformation.
    """

    classes: int = 3
    first: int = 24
    growth: int = 12
    bottleneck: int = 4
    layers: tuple[int, int, int, int] = (4, 8, 12, 8)
    grid: int = 31
    share: float = 0.5


class AGDNOutputs(NamedTuple):
    """Outputs of the network in training.

    Attributes:
        first: Logits of the first branch, [B, C].
        second: Logits of the second branch, [B, C].
        both: Logits of both together, [B, C]; the answer.
        warped: The first branch's attention, deformed like the image, [B, 1, h, w].
        attention: The second branch's attention, [B, 1, h, w].
    """

    first: Tensor
    second: Tensor
    both: Tensor
    warped: Tensor
    attention: Tensor


class NormedConv(nn.Conv2d):
    """Batch norm, ReLU and a convolution without a bias."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.BatchNorm = nn.BatchNorm2d(inputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, outputs, h, w]."""
        return super().forward(torch.relu(self.BatchNorm(x)))


class Layer(nn.Module):
    """Layer of a block, which adds channels."""

    def __init__(self, inputs: int, inner: int, growth: int) -> None:
        super().__init__()
        self.bottleneck = NormedConv(inputs, inner, 1)
        self.composite_function = NormedConv(inner, growth, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, inputs + growth, h, w]."""
        return torch.cat([x, self.composite_function(self.bottleneck(x))], dim=1)


def _dense_block(inputs: int, count: int, config: AGDNConfig) -> nn.Sequential:
    """Return layers, each of which receives the outputs of all preceding ones."""
    growth, inner = config.growth, config.bottleneck * config.growth
    return nn.Sequential(
        OrderedDict((f"layer_{index}", Layer(inputs + index * growth, inner, growth)) for index in range(count))
    )


def _transition(inputs: int) -> nn.Sequential:
    """Return a module that halves the number of channels and both sides."""
    convolution = NormedConv(inputs, inputs // 2, 1)
    return nn.Sequential(OrderedDict(composite_function=convolution, pool=nn.AvgPool2d(2)))


class Classifier(nn.Module):
    """Batch norm, ReLU, mean over all positions and a linear map without a bias."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.BatchNorm = nn.BatchNorm2d(inputs)
        self.final_layer = nn.Conv2d(inputs, classes, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to logits [B, classes]."""
        mean = torch.relu(self.BatchNorm(x)).mean(dim=(2, 3), keepdim=True)
        return self.final_layer(mean)[:, :, 0, 0]


def pool_same(x: Tensor) -> Tensor:
    """Max-pool 3×3 with stride 2, padded like TensorFlow's SAME: odd padding goes right and below."""
    padding: list[int] = []
    for size in (int(x.shape[3]), int(x.shape[2])):
        total = max(0, (-(-size // 2) - 1) * 2 + 3 - size)
        padding += [total // 2, total - total // 2]
    return functional.max_pool2d(functional.pad(x, padding, value=float("-inf")), 3, stride=2)


class Branch(nn.Module):
    """One of the two networks.

    Attributes:
        width: Channels of its last features.
    """

    def __init__(self, config: AGDNConfig) -> None:
        super().__init__()
        self.Initial_convolution = nn.Conv2d(3, config.first, 3, padding=1, bias=False)
        width = config.first
        for index, count in enumerate(config.layers):
            self.add_module(f"Block_{index}", _dense_block(width, count, config))
            width += count * config.growth
            if index < len(config.layers) - 1:
                self.add_module(f"Transition_after_block_{index}", _transition(width))
                width //= 2
                self.add_module(f"TLFA{index + 1}", Aggregation(width, f"TLFA{index + 1}"))
        self.Transition_to_classes = Classifier(width, config.classes)
        self.width = width

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map images [B, 3, S, S] to logits [B, classes] and the last features [B, width, S / 16, S / 16]."""
        features = x
        for name, module in self.named_children():
            if name == "Transition_to_classes":
                break
            features = module(features)
            if name == "Initial_convolution":
                features = pool_same(features)
        return self.Transition_to_classes(features), features


class AGDN(nn.Module):
    """AGDN.

    Args:
        config: Widths and depths; the published network by default.
    """

    def __init__(self, config: AGDNConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or AGDNConfig()
        self.net1 = Branch(config)
        self.net2 = Branch(config)
        self.Sum_branch = Classifier(self.net1.width + self.net2.width, config.classes)

    def forward(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor] | AGDNOutputs:
        """Classify images.

        No gradient flows from the second branch into the first, nor from the joint classifier into either, because the
        published training has a step for each.

        Args:
            low: float [B, 3, S, S], RGB in [0, 1]; see :func:`inputs_of`.
            high: The same images, larger, [B, 3, H, W]; the second branch samples from these.

        Returns:
            Probabilities [B, C] of the first branch, of the second, and of both together, which are the answer. In
            training :class:`AGDNOutputs`.
        """
        logits1, features1 = self.net1(low)
        attention = attention_of(features1)
        guide = legacy_resize(attention, self.config.grid, self.config.grid)
        logits2, features2 = self.net2(self._closer(low, high, guide.detach()))
        both = self.Sum_branch(torch.cat([features1, features2], dim=1).detach())
        if not self.training:
            first, second, answer = (torch.softmax(logits.float(), dim=1) for logits in (logits1, logits2, both))
            return first, second, answer
        warped = deform(guide, guide, side=int(attention.shape[2]), share=self.config.share)
        return AGDNOutputs(logits1, logits2, both, warped, attention_of(features2))

    def logits(self, low: Tensor, high: Tensor) -> Tensor:
        """Return the logits of both branches together, [B, C], with gradients through the whole network.

        Args:
            low: As in :meth:`forward`.
            high: As in :meth:`forward`.
        """
        _, features1 = self.net1(low)
        guide = legacy_resize(attention_of(features1), self.config.grid, self.config.grid)
        _, features2 = self.net2(self._closer(low, high, guide))
        return self.Sum_branch(torch.cat([features1, features2], dim=1))

    def _closer(self, low: Tensor, high: Tensor, guide: Tensor) -> Tensor:
        """Return the second branch's input: the large images, sampled according to the guide."""
        return deform(high, guide, side=int(low.shape[2]), share=self.config.share)


def inputs_of(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the network's inputs for images [B, 3, H, W]: resized as published, and unchanged."""
    return legacy_resize(images, SIDE, SIDE), images


def answer_of(outputs: tuple[Tensor, Tensor, Tensor] | AGDNOutputs) -> Tensor:
    """Return the answer's logits, or, for outputs in evaluation, its log probabilities, [B, C]."""
    return outputs.both if isinstance(outputs, AGDNOutputs) else torch.log(outputs[2].clamp(min=1e-30))
