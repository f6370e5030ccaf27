"""Training facts of each family of classifiers: classes, phantoms, side, and loss of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from medtest.core.cases import Classes
from medtest.core.deferred import torch
from medtest.core.errors import nearest_name, typed_error
from medtest.phantoms.classes import CAPSULE, CAPSULE_FINDINGS, CHEST, DERMOSCOPY, FUNDUS

if TYPE_CHECKING:
    from torch import Tensor, nn

    from medtest.training.classification.recipe import Losses

StepLoss: TypeAlias = "Callable[[Any, Tensor, Tensor | None, Tensor | None], Tensor]"
"""Maps outputs, truth (int64 [B], or float [B, C] if several classes may apply), masks (float [B, 1, S, S] or None)
and known masks (bool [B] or None) to a loss.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierFamily:
    """Family of classifiers, for training.

    Attributes:
        name: The family's name.
        classes: Classes of its published networks.
        phantoms: Kind of phantoms with these classes.
        suite: A suite on such phantoms.
        stored: Side of the stored training images.
        side: Input side of the network: the centre (in training any part) of the stored image.
        masks: Whether it learns from lesion masks.
        own_start: Whether it starts from its own initial weights (AGDN's taps must not move at first, and heads with
        few
            maps must start small), instead of those suited to plain convolutions.
    """

    name: str
    classes: Classes
    phantoms: str
    suite: str
    stored: int
    side: int
    masks: bool = False
    own_start: bool = False


KINDS: Mapping[str, ClassifierFamily] = {
    name: ClassifierFamily(
        name=name,
        classes=classes,
        phantoms=phantoms,
        suite=suite,
        stored=stored,
        side=side,
        masks=name in ("dsinet", "attnmel"),
        own_start=name in ("agdn", "dsinet"),
    )
    for name, classes, phantoms, suite, stored, side in (
        ("agdn", CAPSULE, "capsule", "wce", 320, 320),
        ("dsinet", CAPSULE, "capsule", "wce", 256, 256),
        ("attnmel", DERMOSCOPY, "dermoscopy", "robust_benchmark_melanoma", 256, 224),
        ("inceptionv3_dr", FUNDUS, "fundus", "robust_benchmark_retinopathy", 256, 224),
        ("chexnet", CHEST, "chest", "robust_benchmark_chest", 256, 224),
        ("capsule_findings", CAPSULE_FINDINGS, "capsule findings", "t2i_medical", 192, 192),
    )
}
"""Families by name."""
BEFORE_SIGMOID: tuple[str, ...] = ("chexnet", "capsule_findings")
"""Families whose networks end in a sigmoid and give its inputs by ``logits``."""


def kind_of(name: str) -> ClassifierFamily:
    """Return a family.

    Raises:
        UserMistakes: Unknown name.
    """
    if name not in KINDS:
        allowed = ", ".join(KINDS)
        near = nearest_name(name, KINDS)
        raise typed_error("network", name, allowed, nearest=near)
    return KINDS[name]


def arguments(family: str, batch: Tensor) -> tuple[Tensor, ...]:
    """Return the network's arguments for its images (float [B, 3, S, S], normalised)."""
    if family == "agdn":
        from medtest.systems.classification.networks.agdn import inputs_of

        return inputs_of(batch)
    return (batch,)


def logits_of(family: str, network: nn.Module, batch: Tensor) -> tuple[Any, Tensor]:
    """Return a network's outputs in the format of its loss, and the logits [B, C] of its answer."""
    if family in BEFORE_SIGMOID:
        logits: Tensor = network.logits(batch)  # type: ignore[operator]
        return logits, logits
    outputs = network(*arguments(family, batch))
    return outputs, answer_logits(family, outputs)


def answer_logits(family: str, outputs: Any) -> Tensor:
    """Return the answer's logits, or their log probabilities, [B, C], from a network's outputs."""
    if family == "attnmel":
        logits: Tensor = outputs[0]
    elif family == "dsinet":
        logits = outputs[2]
    elif family == "agdn":
        from medtest.systems.classification.networks.agdn import answer_of

        logits = answer_of(outputs)
    else:
        logits = outputs if hasattr(outputs, "shape") else outputs[0]
    return logits


def loss_of(family: str, losses: Losses, network: nn.Module, *, shares: Tensor | None = None) -> StepLoss:
    """Return the loss of a family's training step.

    Args:
        family: Its name.
        losses: The recipe's losses.
        network: Network for the L1 norm of its parameters.
        shares: Share of training cases with each class, [C], for weighted findings.
    """
    step = _loss(family, losses, shares)
    norm = norm_of(losses, network)
    if norm is None:
        return step
    return lambda outputs, truth, masks, has_mask: step(outputs, truth, masks, has_mask) + norm()


def norm_of(losses: Losses, network: nn.Module) -> Callable[[], Tensor] | None:
    """Return a function for the weighted L1 norm of a network's parameters; None if the recipe has none.

    Biases and norms are included. The published training of Inception-v3 has a weight of 1e-5, the adversarial one of
    0.01 (Xu et al., MedIA 2021; its published code).
    """
    if losses.l1 <= 0:
        return None
    return lambda: losses.l1 * torch.stack([value.abs().sum() for value in network.parameters()]).sum()


def _loss(family: str, losses: Losses, shares: Tensor | None) -> StepLoss:
    if family == "attnmel":
        from medtest.training.classification.losses.attnmel import attnmel_loss

        def attnmel(outputs: Any, truth: Tensor, masks: Tensor | None, has_mask: Tensor | None) -> Tensor:
            # The attention is compared with masks only if every case of the batch has one.
            guided = masks if losses.attention and has_mask is not None and bool(has_mask.all()) else None
            return attnmel_loss(outputs, truth, guided, gamma=losses.gamma)

        return attnmel
    if family in BEFORE_SIGMOID:
        from medtest.training.classification.losses.chexnet import findings_loss

        return lambda outputs, truth, masks, has_mask: findings_loss(
            outputs, truth, shares if losses.weighted else None
        )
    if family == "inceptionv3_dr":
        # Its auxiliary head has no part in the published training.
        return lambda outputs, truth, masks, has_mask: torch.nn.functional.cross_entropy(
            answer_logits(family, outputs), truth
        )
    if family == "agdn":
        from medtest.training.classification.losses.agdn import agdn_loss

        return lambda outputs, truth, masks, has_mask: agdn_loss(
            outputs, truth, smoothing=losses.smoothing, deformation=losses.deformation
        )
    if family == "dsinet":
        from medtest.training.classification.losses.dsinet import dsinet_loss

        def dsinet(outputs: Any, truth: Tensor, masks: Tensor | None, has_mask: Tensor | None) -> Tensor:
            if masks is None or has_mask is None:
                return torch.nn.functional.cross_entropy(outputs[2], truth)
            return dsinet_loss(
                outputs, truth, masks, has_mask, segmentation=losses.segmentation, interaction=losses.interaction
            )

        return dsinet
    raise ValueError(f"no loss is known for {family!r}")
