"""What an attack raises, for one label, several or a mask: cross-entropy, margin, Dice; away, or towards a target.

Cross-entropy is that of the task: softmax over exclusive classes, binary over several labels or over pixels, its mean.
The margin of exclusive classes is the largest other logit minus the true one's (N. Carlini, D. Wagner, "Towards
evaluating the robustness of neural networks", 2017). Where several labels may hold, or pixels, each has a margin of its
own, s = (1 - 2y)·z; their mean of log σ(s) is raised, which looks most at what is not wrong yet, while binary
cross-entropy looks most at what is wrong already. Dice is 1 minus the soft Dice coefficient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from medtest.core.cases import Classes
from medtest.core.probes import CraftCase, Probe

LossName: TypeAlias = Literal["cross_entropy", "margin", "dice"]


@dataclass(frozen=True, kw_only=True)
class Goal(ABC):
    """What is led away from, or towards, for each image of a batch; one class for each form of answer.

    Attributes:
        truth: What is true, or the target, a row an image.
        targeted: Whether ``truth`` is led towards.
        references: For each image ``truth``, ``answer`` (the system's own) or ``target``.
        classes: The seeds' classes; None of masks.
        losses_known: The losses that there are for it.
    """

    losses_known: ClassVar[tuple[LossName, ...]] = ("cross_entropy", "margin")
    truth: Tensor
    targeted: bool
    references: tuple[str, ...]
    classes: Classes | None

    def part(self, rows: Tensor) -> Self:
        """Return the goal of some of the images."""
        references = tuple(self.references[int(row)] for row in rows)
        return replace(self, truth=self.truth[rows], references=references)

    def losses(self, name: LossName, logits: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return what is raised, one number for each image.

        Args:
            name: Which loss.
            logits: Of the images.
            rows: Which of the batch's images they are; None for all.
        """
        return self._losses(name, logits, self.truth if rows is None else self.truth[rows])

    def reached(self, logits: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return how far an attack came, float32 B in [0, 1]: 1 is all that it can reach.

        Untargeted: whether the label is wrong; the share of labels that are; 1 minus the Dice coefficient of the mask
        at 0.5. Targeted: whether the label is the target; the share of labels that are as it says.
        """
        hit = self._agreement(logits, self.truth if rows is None else self.truth[rows])
        return hit if self.targeted else 1 - hit

    def flipped(self, logits: Tensor, clean: Tensor) -> Tensor:
        """Return whether an answer has flipped, bool B.

        Untargeted: a label that is wrong; of several labels any decision that is another than on the source image; a
        mask whose Dice coefficient is below 0.5. Targeted: all is as the target says.

        Args:
            logits: Of the images.
            clean: Of the source images.
        """
        return self.reached(logits) >= 1 if self.targeted else self._flipped(logits, clean)

    def _flipped(self, logits: Tensor, clean: Tensor) -> Tensor:
        return self.reached(logits) > 0.5

    @abstractmethod
    def labels(self, logits: Tensor) -> list[str | None]:
        """Return the answers as records have them: labels joined by ``|``, in the classes' order; None of masks."""

    @property
    def parts(self) -> int:
        """How many answers an image has: labels, or pixels."""
        return int(self.truth[0].numel())

    @abstractmethod
    def _losses(self, name: LossName, logits: Tensor, truth: Tensor) -> Tensor: ...

    @abstractmethod
    def _agreement(self, logits: Tensor, truth: Tensor) -> Tensor: ...


@dataclass(frozen=True, kw_only=True)
class OneLabel(Goal):
    """One of several exclusive classes; ``truth`` is int64 B."""

    def labels(self, logits: Tensor) -> list[str | None]:
        """Return the most likely class of each."""
        names = () if self.classes is None else self.classes.names
        return [names[int(row)] for row in logits.argmax(dim=1)]

    def _losses(self, name: LossName, logits: Tensor, truth: Tensor) -> Tensor:
        if name == "cross_entropy":
            found = functional.cross_entropy(logits, truth, reduction="none")
        else:
            true = logits.gather(1, truth[:, None])[:, 0]
            found = logits.scatter(1, truth[:, None], -torch.inf).amax(dim=1) - true
        return -found if self.targeted else found

    def _agreement(self, logits: Tensor, truth: Tensor) -> Tensor:
        return (logits.argmax(dim=1) == truth).float()


@dataclass(frozen=True, kw_only=True)
class SeveralLabels(Goal):
    """Labels of which any may hold; ``truth`` is float32 B×C."""

    def labels(self, logits: Tensor) -> list[str | None]:
        """Return the labels that are likelier than not."""
        names = () if self.classes is None else self.classes.names
        return ["|".join(name for name, hit in zip(names, row, strict=True) if hit) for row in (logits > 0).tolist()]

    def _losses(self, name: LossName, logits: Tensor, truth: Tensor) -> Tensor:
        signed = ((1 - 2 * truth) * logits).flatten(1)  # above 0 where it is wrong
        if name == "cross_entropy":
            return (-functional.softplus(signed) if self.targeted else functional.softplus(signed)).mean(dim=1)
        return functional.logsigmoid(-signed if self.targeted else signed).mean(dim=1)

    def _agreement(self, logits: Tensor, truth: Tensor) -> Tensor:
        return ((logits > 0).float() == truth).float().mean(dim=1)

    def _flipped(self, logits: Tensor, clean: Tensor) -> Tensor:
        return ((logits > 0) != (clean > 0)).any(dim=1)


@dataclass(frozen=True, kw_only=True)
class MaskGoal(SeveralLabels):
    """A mask; ``truth`` is float32 B×H×W."""

    losses_known = ("cross_entropy", "margin", "dice")

    def labels(self, logits: Tensor) -> list[str | None]:
        """Return None for each."""
        return [None] * len(logits)

    def _losses(self, name: LossName, logits: Tensor, truth: Tensor) -> Tensor:
        if name != "dice":
            return super()._losses(name, logits, truth)
        given, true = logits.sigmoid().flatten(1), truth.flatten(1)
        return 1 - (2 * (given * true).sum(dim=1) + 1) / (given.sum(dim=1) + true.sum(dim=1) + 1)

    def _flipped(self, logits: Tensor, clean: Tensor) -> Tensor:
        return self.reached(logits) > 0.5

    def _agreement(self, logits: Tensor, truth: Tensor) -> Tensor:
        given, true = (logits >= 0).flatten(1).float(), truth.flatten(1)
        whole = given.sum(dim=1) + true.sum(dim=1)
        return torch.where(whole > 0, 2 * (given * true).sum(dim=1) / whole.clamp_min(1), 1.0)


def goal_of(cases: Sequence[CraftCase], probe: Probe, clean: Tensor) -> Goal:
    """Return what attacks on images are to reach.

    Args:
        cases: The cases; ``target`` among their parameters names what to lead towards.
        probe: Of the system.
        clean: Its logits of the source images.
    """
    classes, own = probe.classes, clean.detach()
    kind = MaskGoal if classes is None else (SeveralLabels if classes.multi else OneLabel)
    decided = own.argmax(dim=1) if kind is OneLabel else (own > 0).float()
    rows, references = [], []
    for number, case in enumerate(cases):
        target = case.params.get("target")
        labels = tuple(map(str, target)) if isinstance(target, list) else case.seed.labels
        known = _mask(case) if classes is None else _labels(labels, classes)
        references.append("target" if isinstance(target, list) else ("answer" if known is None else "truth"))
        rows.append(decided[number] if known is None else known.to(own.device))
    return kind(truth=torch.stack(rows), targeted="target" in references, references=tuple(references), classes=classes)


def _mask(case: CraftCase) -> Tensor | None:
    return None if case.seed.mask is None else torch.from_numpy(case.seed.mask.copy()).float()


def _labels(labels: tuple[str, ...] | None, classes: Classes) -> Tensor | None:
    if labels is None:
        return None
    if classes.multi:
        return torch.tensor([float(name in labels) for name in classes.names])
    return torch.tensor(classes.names.index(labels[0])) if len(labels) == 1 else None
