"""What a generator is trained towards: answers that a network is to give, and how far it is from them.

Xu et al. 2021, section 4.2.2, and their published code: of one label, the class that the network finds least likely on
the clean image (of two, the other one); of several labels, each decision turned round; with a target, the target. The
paper's equation 4, taken by the letter, only leads away from the label.
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
    """Return what logits B×C decide: float32 B×C, 1 for the likeliest class, or for each that is likelier than not."""
    if multi:
        return (logits > 0).float()
    return functional.one_hot(logits.argmax(dim=1), logits.shape[1]).float()


def wanted(clean: Tensor, classes: Classes, target: Sequence[str] = ()) -> Tensor:
    """Return the answers to lead towards, float32 B×C of zeros and ones.

    Args:
        clean: Logits of the clean images, B×C.
        classes: What they stand for.
        target: Labels to lead towards; empty to lead away from the clean answer.

    Raises:
        ValueError: A target is no class, or several are of a network that gives one.
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
    """Return what a generator lowers, one number for each image.

    Args:
        logits: Of the attacked images, B×C.
        clean: Of the clean images.
        classes: What they stand for.
        target: As of :func:`wanted`.
        goal: ``least_likely``: cross-entropy towards :func:`wanted` (binary, the mean over labels, where several may
            hold). ``away``, untargeted alone: the logarithm of the clean answer's probability (equation 4; the mean
            over labels where several may hold).
    """
    if target or goal == "least_likely":
        return _entropy(logits, wanted(clean, classes, target), multi=classes.multi)
    return -_entropy(logits, decisions(clean, multi=classes.multi), multi=classes.multi)


def _entropy(logits: Tensor, truth: Tensor, *, multi: bool) -> Tensor:
    if multi:
        return functional.binary_cross_entropy_with_logits(logits, truth, reduction="none").mean(dim=1)
    return -(truth * functional.log_softmax(logits, dim=1)).sum(dim=1)


def reached(logits: Tensor, clean: Tensor, classes: Classes, target: Sequence[str] = ()) -> Tensor:
    """Return how far an attack came, for each image in [0, 1].

    Untargeted: 1 where the answer is another (one label), or the share of labels whose decision is (several), the
    complement of the agreement of the two answers. Targeted: the same of the target, 1 where it is answered.
    """
    given = decisions(logits, multi=classes.multi)
    if target:
        same = given == wanted(clean, classes, target)
        return same.float().mean(dim=1) if classes.multi else same.all(dim=1).float()
    other = given != decisions(clean, multi=classes.multi)
    return other.float().mean(dim=1) if classes.multi else other.any(dim=1).float()


def in_levels(images: Tensor) -> Tensor:
    """Return images in [0, 1] as they are once they are saved in 8 bits."""
    return torch.round(images * 255.0) / 255.0
