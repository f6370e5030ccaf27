"""Training goals of generators: the answers to reach, and the distance to them.

Xu et al. 2021, section 4.2.2, and their published code: for one label, the class that the network finds least likely on
the clean image (of two, the other one); for several labels, each decision inverted; with a target, the target. The
paper's equation 4, taken literally, only leads away from the label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from medtest.core.cases import Classes

Goal = Literal["least_likely", "away"]


def decisions(logits: Tensor, *, multi: bool) -> Tensor:
    """Return the decisions of logits B×C: float32 B×C, 1 for the most likely class, or for each above one half."""
    if multi:
        return (logits > 0).float()
    return functional.one_hot(logits.argmax(dim=1), logits.shape[1]).float()


def target_answers(clean: Tensor, classes: Classes, target: Sequence[str] = ()) -> Tensor:
    """Return the target answers, float32 B×C of zeros and ones.

    Args:
        clean: Logits of the clean images, B×C.
        classes: Classes of the logits.
        target: Target labels; empty to lead away from the clean answer.

    Raises:
        ValueError: A target is no class, or there are several for exclusive classes.
    """
    if target:
        strangers = [label for label in target if label not in classes.names]
        if strangers or (len(target) > 1 and not classes.multi):
            raise ValueError(f"target {', '.join(target)} of the classes {', '.join(classes.names)}")
        row = clean.new_tensor([float(name in target) for name in classes.names])
        return row.expand(len(clean), -1)
    if classes.multi:
        return 1.0 - decisions(clean, multi=True)
    return functional.one_hot(clean.argmin(dim=1), clean.shape[1]).float()


def losses(
    logits: Tensor, clean: Tensor, classes: Classes, target: Sequence[str] = (), goal: Goal = "least_likely"
) -> Tensor:
    """Return the loss that a generator minimises, one number per image.

    Args:
        logits: Logits of the attacked images, B×C.
        clean: Logits of the clean images.
        classes: Classes of the logits.
        target: As in :func:`target_answers`.
        goal: ``least_likely``: cross-entropy towards :func:`target_answers` (binary, the mean over labels, where
            several may hold). ``away``, untargeted alone: the logarithm of the clean answer's probability (equation 4;
            the mean over labels where several may hold).
    """
    if target or goal == "least_likely":
        return _entropy(logits, target_answers(clean, classes, target), multi=classes.multi)
    return -_entropy(logits, decisions(clean, multi=classes.multi), multi=classes.multi)


def _entropy(logits: Tensor, truth: Tensor, *, multi: bool) -> Tensor:
    if multi:
        return functional.binary_cross_entropy_with_logits(logits, truth, reduction="none").mean(dim=1)
    return -(truth * functional.log_softmax(logits, dim=1)).sum(dim=1)


def reached(logits: Tensor, clean: Tensor, classes: Classes, target: Sequence[str] = ()) -> Tensor:
    """Return the progress of an attack for each image, in [0, 1].

    Untargeted: 1 if the answer differs (one label), or the share of labels whose decision differs (several), the
    complement of the agreement of the two answers. Targeted: agreement with the target.
    """
    decided = decisions(logits, multi=classes.multi)
    if target:
        same = decided == target_answers(clean, classes, target)
        return same.float().mean(dim=1) if classes.multi else same.all(dim=1).float()
    other = decided != decisions(clean, multi=classes.multi)
    return other.float().mean(dim=1) if classes.multi else other.any(dim=1).float()


def in_levels(images: Tensor) -> Tensor:
    """Return images in [0, 1] rounded as if saved in 8 bits."""
    return torch.round(images * 255.0) / 255.0
