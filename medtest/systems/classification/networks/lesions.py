"""A small convolutional network that detects lesions of any size in a picture.

Residual blocks lower the resolution to an eighth; the last maps are pooled by their means and their maxima, so that a
lesion of a few pixels counts as much as one that fills the picture. It is medtest's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True, kw_only=True)
class LesionNetConfig:
    """Widths of a network for lesions.

    Attributes:
        stem: Channels of the first convolution, which halves the resolution.
        widths: Channels of the blocks; the first two halve the resolution.
        classes: Number of findings.
    """

    stem: int = 16
    widths: tuple[int, ...] = (24, 40, 56)
    classes: int = 5


class LesionNet(nn.Module):
    """Network for lesions.

    Args:
        config: Its widths.
    """

    def __init__(self, config: LesionNetConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or LesionNetConfig()
        self.stem = nn.Sequential(nn.Conv2d(3, config.stem, 3, 2, 1, bias=False), nn.BatchNorm2d(config.stem))
        before: Sequence[int] = (config.stem, *config.widths[:-1])
        self.blocks = nn.ModuleList(
            _Block(inputs, outputs, stride=2 if number < 2 else 1)
            for number, (inputs, outputs) in enumerate(zip(before, config.widths, strict=True))
        )
        self.head = nn.Linear(2 * config.widths[-1], config.classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return the probability of every finding, float [B, classes].

        Args:
            x: float [B, 3, H, W], RGB, divided by 255.
        """
        return torch.sigmoid(self.logits(x))

    def logits(self, x: Tensor) -> Tensor:
        """Return the inputs of the sigmoid, [B, classes].

        Args:
            x: As in :meth:`forward`.
        """
        maps = functional.relu(self.stem(x))
        for block in self.blocks:
            maps = block(maps)
        logits: Tensor = self.head(torch.cat([maps.mean((2, 3)), maps.amax((2, 3))], dim=1))
        return logits


class _Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn3(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(inner + self.shortcut(x))
