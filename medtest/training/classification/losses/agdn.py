"""Losses of AGDN's training (Xing et al., IEEE TMI 2020; its published code): one step per classifier.

The published training has three steps on one batch, each for its own variables: the first branch, the second branch,
the joint classifier. :class:`~medtest.systems.classification.networks.agdn.AGDN` lets no gradient pass between them,
so that the sum of their losses gives every variable the gradient of its own step.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from medtest.systems.classification.networks.agdn import AGDNOutputs

SMOOTHING = 0.1
"""Label smoothing of the published training."""
DEFORMATION: Mapping[str, float] = {"released": 0.0, "paper": 0.5}
"""Weight of the deformation based attention consistency: the released code computes it but does not use it."""
NORMAL = 0
"""Index of the class without a lesion."""
SURE = 0.5
"""Minimum probability at which the first branch guides the second one."""


def classifier_losses(
    outputs: AGDNOutputs, truth: Tensor, *, smoothing: float = SMOOTHING
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the cross-entropies of the first branch, of the second, and of both together, averaged over the batch.

    Args:
        outputs: The network's outputs in training.
        truth: Index of the true class, int64 [B].
        smoothing: Share of the target that is spread evenly over all classes.
    """
    first, second, both = (
        functional.cross_entropy(logits, truth, label_smoothing=smoothing)
        for logits in (outputs.first, outputs.second, outputs.both)
    )
    return first, second, both


def consistency_losses(outputs: AGDNOutputs, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Return the deformation based attention consistency for the first branch and for the second.

    The distance (Euclidean, over all positions) between the first branch's attention, deformed, and the second's.
    Images
    without a lesion count as 0 in the mean over the batch. The first branch is attracted to the second; the second is
    attracted to the first only if that one is right, more certain than the second, and more certain than 0.5.

    Args:
        outputs: The network's outputs in training.
        truth: Index of the true class, int64 [B].
    """
    lesion = (truth != NORMAL).to(outputs.warped.dtype)
    with torch.no_grad():
        certain, other = (
            torch.softmax(logits.float(), dim=1).gather(1, truth[:, None])[:, 0]
            for logits in (outputs.first, outputs.second)
        )
        teaches = (outputs.first.argmax(dim=1) == truth) & (certain > other.clamp(min=SURE))
    apart1 = torch.linalg.vector_norm((outputs.warped - outputs.attention.detach()).flatten(1), dim=1)
    apart2 = torch.linalg.vector_norm((outputs.warped.detach() - outputs.attention).flatten(1), dim=1)
    return (lesion * apart1).mean(), (lesion * teaches * apart2).mean()


def agdn_loss(
    outputs: AGDNOutputs, truth: Tensor, *, smoothing: float = SMOOTHING, deformation: float = DEFORMATION["released"]
) -> Tensor:
    """Return the loss of one step of AGDN's training.

    Args:
        outputs: The network's outputs in training.
        truth: Index of the true class, int64 [B].
        smoothing: See :func:`classifier_losses`.
        deformation: Weight of :func:`consistency_losses`; one of :data:`DEFORMATION`, or another.
    """
    first, second, both = classifier_losses(outputs, truth, smoothing=smoothing)
    loss = first + second + both
    if deformation > 0:
        drawn1, drawn2 = consistency_losses(outputs, truth)
        loss = loss + deformation * (drawn1 + drawn2)
    return loss
