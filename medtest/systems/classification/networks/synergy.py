"""Interaction of DSI-Net's two tasks: lesion mining, global prototypes, category-guided features.

Zhu, Chen and Yuan, IEEE Transactions on Medical Imaging 40(12), 2021, section III. A map of shares is a softmax over
background and lesion; its second channel is the lesion.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

LITTLE = 1e-6
NORM = 1e-8
STEPS = 3
"""Steps of expectation and maximisation."""


def gumbel_gate(logits: Tensor) -> Tensor:
    """Return gates for training: 0 or 1 forwards, the gradient of a sigmoid backwards (straight-through).

    One-sided Gumbel noise, -log(-log u), is added to the logits; drawn from torch's generator, which the training seeds
    at every step.
    """
    uniform = torch.rand_like(logits).clamp(1e-6, 1 - 1e-6)
    soft = torch.sigmoid(logits - torch.log(-torch.log(uniform)))
    return (soft >= 0.5).to(soft.dtype) - soft.detach() + soft


class PointGate(nn.Module):
    """Selects the points worth comparing with, among K points in the order of their certainty.

    Args:
        channels: Channels of a point.
        points: K.
        hidden: Hidden width.
    """

    def __init__(self, channels: int, points: int, hidden: int) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(channels, 1, 1, bias=False), nn.ReLU(inplace=True))
        self.fc1 = nn.Linear(points, hidden)
        self.fc2 = nn.Linear(hidden, points)

    def forward(self, x: Tensor) -> Tensor:
        """Map points [B, C, K] to the same shape, with zeros for closed gates."""
        logits = self.fc2(self.fc1(self.conv(x[..., None])[:, 0, :, 0]))
        gate = gumbel_gate(logits) if self.training else (logits >= 0).to(x.dtype)
        return x * gate[:, None]


class LesionMining(nn.Module):
    """Lesion location mining: detects lesion classified as background, and background classified as lesion.

    Args:
        channels: Channels of the features.
        points: Number of most certain pixels, both of lesion and of background.
        hidden: Hidden width of the gates.
    """

    def __init__(self, channels: int, points: int, hidden: int) -> None:
        super().__init__()
        self.points = points
        self.BGU_fore = PointGate(channels, points, hidden)
        self.BGU_back = PointGate(channels, points, hidden)

    def forward(self, features: Tensor, share: Tensor) -> Tensor:
        """Return the features, amplified at lesions.

        Args:
            features: [B, C, h, w].
            share: Share of background and lesion, [B, 2, h, w].
        """
        flat = features.flatten(2)
        background, lesion = share[:, 0], share[:, 1]
        is_lesion = (lesion > background).flatten(1).to(features.dtype)[:, None]
        missed = self._alike(self.BGU_fore, flat, lesion.flatten(1), flat * (1 - is_lesion))
        false = self._alike(self.BGU_back, flat, background.flatten(1), flat * is_lesion)
        weight: Tensor = lesion + (missed - false).view_as(lesion)
        return features + features * weight[:, None]

    def _alike(self, gate: nn.Module, features: Tensor, certainty: Tensor, others: Tensor) -> Tensor:
        """Return the maximum similarity of each other pixel [B, C, N] to the most certain ones, [B, N] in [0, 1]."""
        surest = certainty.topk(self.points, dim=1).indices
        points = gate(features.gather(2, surest[:, None].expand(-1, features.shape[1], -1)))
        cosine = functional.normalize(points, dim=1, eps=NORM).transpose(1, 2) @ functional.normalize(
            others, dim=1, eps=NORM
        )
        return torch.relu(cosine).amax(dim=1)


class GlobalPrototypes(nn.Module):
    """Global prototype generation: the general appearance of a class, from the classifier's own weights.

    Args:
        inputs: Channels of a class's weights.
        outputs: Channels of a prototype.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 1),
        )

    def forward(self, weights: Tensor, logits: Tensor) -> Tensor:
        """Return prototypes [B, classes, outputs]; those of lesions are scaled by the image's probability of them.

        Args:
            weights: The classifier's, [classes, inputs]; no gradient flows back into them.
            logits: Of the classes, [B, classes]; no gradient flows back into them.
        """
        plain = self.conv1(weights.detach().t()[None, :, :, None])[0, :, :, 0].t()
        probability = torch.softmax(logits.detach(), dim=1)
        scale = torch.cat([torch.ones_like(probability[:, :1]), probability[:, 1:]], dim=1)
        return plain[None] * scale[..., None]


class CategoryGuidance(nn.Module):
    """Category-guided feature generation: features rebuilt from local and from global prototypes.

    Args:
        inputs: Channels of the features.
        outputs: Channels of the prototypes.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv0 = self._reduce(inputs, outputs)
        self.conv1 = self._reduce(inputs, outputs)
        self.conv2 = nn.Sequential(nn.Conv2d(2 * outputs, outputs, 1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
        self._temperature = outputs**-0.5

    @staticmethod
    def _reduce(inputs: int, outputs: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for width in (inputs, outputs):
            layers += [nn.Conv2d(width, outputs, 1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True), nn.Dropout2d(0.1)]
        return nn.Sequential(*layers)

    def forward(self, features: Tensor, share: Tensor, prototypes: Tensor) -> Tensor:
        """Return the context [B, outputs, h, w].

        Args:
            features: [B, inputs, h, w].
            share: Share of background and lesion, [B, 2, h, w].
            prototypes: From :class:`GlobalPrototypes`, [B, classes, outputs].
        """
        height, width = features.shape[2:]
        local = self._local(self.conv0(features).flatten(2), share.flatten(2))
        globally = self._global(self.conv1(features).flatten(2), prototypes)
        return self.conv2(torch.cat([local, globally], dim=1).view(len(features), -1, height, width))

    def _expect(self, prototypes: Tensor, features: Tensor) -> Tensor:
        """Return the share of each prototype in each pixel, [B, P, N], with sum 1 over the prototypes."""
        attention = torch.softmax(self._temperature * (prototypes @ features), dim=1)
        return attention / (LITTLE + attention.sum(dim=1, keepdim=True))

    def _maximise(self, attention: Tensor, features: Tensor) -> Tensor:
        """Return the prototypes [B, P, C] of the attention, normalised over the prototypes as published."""
        return functional.normalize(attention @ features.transpose(1, 2), dim=1, eps=LITTLE)

    def _local(self, features: Tensor, attention: Tensor) -> Tensor:
        for _ in range(STEPS):
            prototypes = self._maximise(attention, features)
            attention = self._expect(prototypes, features)
        return prototypes.transpose(1, 2) @ attention

    def _global(self, features: Tensor, prototypes: Tensor) -> Tensor:
        prototypes = functional.normalize(prototypes, dim=1, eps=LITTLE)
        for _ in range(STEPS):
            attention = self._expect(prototypes, features)
            prototypes = self._maximise(attention, features)
        return prototypes.transpose(1, 2) @ attention
