"""Heads on the features of trained networks, whose weights they leave as they are.

A linear layer reads means and maxima of feature maps. For chest films each half is pooled by itself: a finding with a
side has one score for each half, by the same weights; a finding without a side is scored on the mean of both halves.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.systems.classification.networks.chexnet import CheXNet

_MAPS = 3


class CheXNetSides(nn.Module):
    """CheXNet with a head for sides.

    Args:
        films: The trained CheXNet.
        unsided: Number of findings without a side.
        sided: Number of findings with a side.
    """

    def __init__(self, films: CheXNet, unsided: int, sided: int) -> None:
        super().__init__()
        self.films, self.unsided = films, unsided
        self.head = nn.Linear(2 * films.densenet121.classifier[0].in_features, unsided + sided)

    def forward(self, x: Tensor) -> Tensor:
        """Return probabilities, float [B, unsided + 2 · sided]: findings without a side, then left and right by turns.

        Args:
            x: float [B, 3, H, W], as for :class:`~medtest.systems.classification.networks.chexnet.CheXNet`.
        """
        return torch.sigmoid(self.logits(x))

    def logits(self, x: Tensor) -> Tensor:
        """Return the inputs of the sigmoid.

        Args:
            x: As in :meth:`forward`.
        """
        left, right = pooled_halves(functional.relu(self.films.densenet121.features(x)))
        both = self.head((left + right) / 2)[:, : self.unsided]
        sides = torch.stack([self.head(half)[:, self.unsided :] for half in (left, right)], dim=2)
        return torch.cat([both, sides.flatten(1)], dim=1)


class StandardisedLinear(nn.Linear):
    """Linear layer on standardised inputs, whose weights are of one order and can be stored in few bits.

    Args:
        inputs: Number of inputs.
        outputs: Number of outputs.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("deviation", torch.ones(inputs))

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs] to [B, outputs]."""
        return super().forward((x - self.mean) / self.deviation)


class PooledHead(nn.Module):
    """Backbone with a head on the means of its last three feature maps, and on their maxima if wanted.

    Args:
        backbone: Returns feature maps of an image, float [B, C, h, w] each.
        classes: Number of classes.
        maxima: Whether maxima are read as well.
    """

    def __init__(self, backbone: nn.Module, classes: int, *, maxima: bool) -> None:
        super().__init__()
        self.backbone, self.maxima = backbone.eval(), maxima
        with torch.inference_mode():
            width = self.pooled(torch.zeros(1, 3, 64, 64)).shape[1]
        self.head = StandardisedLinear(width, classes)

    def pooled(self, x: Tensor) -> Tensor:
        """Return means, float [B, channels], or each map's means and maxima, float [B, 2 · channels]."""
        pooled = []
        for features in list(self.backbone(x))[-_MAPS:]:
            pooled += [features.mean((2, 3)), *((features.amax((2, 3)),) if self.maxima else ())]
        return torch.cat(pooled, dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return probabilities, float [B, classes].

        Args:
            x: float [B, 3, H, W], as the backbone's network takes it.
        """
        return torch.sigmoid(self.logits(x))

    def logits(self, x: Tensor) -> Tensor:
        """Return the inputs of the sigmoid.

        Args:
            x: As in :meth:`forward`.
        """
        logits: Tensor = self.head(self.pooled(x))
        return logits


def pooled_halves(features: Tensor) -> tuple[Tensor, Tensor]:
    """Return means and maxima of the halves of feature maps, float [B, 2C], for the patient's left and right.

    The patient's left is the right half of a film. A middle column counts in both halves, by half in the means.

    Args:
        features: float [B, C, h, w].
    """
    width = features.shape[3]
    share = torch.clamp(width / 2 - torch.arange(width, device=features.device), 0.0, 1.0).to(features.dtype)
    halves = []
    for view in (features.flip(3), features):
        means = (view * share).sum(3).mean(2) / share.sum()
        halves.append(torch.cat([means, view[..., : -(-width // 2)].amax((2, 3))], dim=1))
    return halves[0], halves[1]
