"""Heads on the features of trained networks, whose weights they leave as they are.

A linear layer reads means and maxima of feature maps. Each half is pooled by itself: a finding with a
side has one score for each half, by the same weights; a finding without a side is scored on the mean of both halves.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.systems.classification.networks.chexnet import CheXNet


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
