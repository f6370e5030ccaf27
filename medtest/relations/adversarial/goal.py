"""Attack goals for one label, several labels or a mask: cross-entropy, margin, Dice; untargeted or targeted.

Cross-entropy is that of the task: softmax over exclusive classes, or mean binary over several labels or pixels. The
margin of exclusive classes is the largest other logit minus the true one's (N. Carlini, D. Wagner, "Towards evaluating
the robustness of neural networks", 2017). With several labels or pixels each has its own margin, s = (1 - 2y)·z; the
attack maximises the mean of log σ(s), which focuses on answers still correct, while binary cross-entropy focuses on
those already wrong. Dice is 1 minus the soft Dice coefficient.
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
    """Attack goal for each image of a batch; one subclass per form of answer.

    Attributes:
        truth: Ground truth or target, one row per image.
        targeted: Whether ``truth`` is a target to reach.
        references: Per image ``truth``, ``answer`` (the system's own) or ``target``.
        classes: The seeds' classes; None for masks.
        losses_known: Losses defined for it.
    """

    losses_known: ClassVar[tuple[LossName, ...]] = ("cross_entropy", "margin")
    truth: Tensor
    targeted: bool
    references: tuple[str, ...]
    classes: Classes | None

    def part(self, rows: Tensor) -> Self:
        """Return the goal restricted to some images."""
        references = tuple(self.references[int(row)] for row in rows)
        return replace(self, truth=self.truth[rows], references=references)

    def losses(self, name: LossName, logits: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return the loss to maximise, one number per image.

        Args:
            name: Name of the loss.
            logits: Logits of the images.
            rows: Indices of the images in the batch; None for all.
        """
        return self._losses(name, logits, self.truth if rows is None else self.truth[rows])

    def reached(self, logits: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return the progress of an attack, float32 B in [0, 1]; 1 is complete success.

        Untargeted: whether the label is wrong; the share of wrong labels; 1 minus the Dice coefficient of the mask at
        0.5. Targeted: whether the label is the target; the share of labels that match the target.
        """
        hit = self._agreement(logits, self.truth if rows is None else self.truth[rows])
        return hit if self.targeted else 1 - hit

    def flipped(self, logits: Tensor, clean: Tensor) -> Tensor:
        """Return True for each flipped answer, bool B.

        Untargeted: a wrong label; for several labels any decision that differs from the source image's; a mask with a
        Dice coefficient below 0.5. Targeted: a complete match with the target.

        Args:
            logits: Logits of the images.
            clean: Logits of the source images.
        """
        return self.reached(logits) >= 1 if self.targeted else self._flipped(logits, clean)

    def _flipped(self, logits: Tensor, clean: Tensor) -> Tensor:
        return self.reached(logits) > 0.5

    @abstractmethod
    def labels(self, logits: Tensor) -> list[str | None]:
        """Return the answers as stored in records: labels joined by ``|`` in the classes' order; None for masks."""

    @property
    def parts(self) -> int:
        """Number of answers per image: labels or pixels."""
        return int(self.truth[0].numel())

    @abstractmethod
    def _losses(self, name: LossName, logits: Tensor, truth: Tensor) -> Tensor: ...

    @abstractmethod
    def _agreement(self, logits: Tensor, truth: Tensor) -> Tensor: ...


@dataclass(frozen=True, kw_only=True)
class OneLabel(Goal):
    """Goal for one of several exclusive classes; ``truth`` is int64 B."""

    def labels(self, logits: Tensor) -> list[str | None]:
        """Return the most likely class of each image."""
        names = () if self.classes is None else self.classes.names
        return [names[int(row)] for row in logits.argmax(dim=1)]

    def _losses(self, name: LossName, logits: Tensor, truth: Tensor) -> Tensor:
        if name == "cross_entropy":
            losses = functional.cross_entropy(logits, truth, reduction="none")
        else:
            true = logits.gather(1, truth[:, None])[:, 0]
            losses = logits.scatter(1, truth[:, None], -torch.inf).amax(dim=1) - true
        return -losses if self.targeted else losses

    def _agreement(self, logits: Tensor, truth: Tensor) -> Tensor:
        return (logits.argmax(dim=1) == truth).float()


@dataclass(frozen=True, kw_only=True)
class SeveralLabels(Goal):
    """Goal for several independent labels; ``truth`` is float32 B×C."""

    def labels(self, logits: Tensor) -> list[str | None]:
        """Return the labels with probability above one half."""
        names = () if self.classes is None else self.classes.names
        return ["|".join(name for name, hit in zip(names, row, strict=True) if hit) for row in (logits > 0).tolist()]

    def _losses(self, name: LossName, logits: Tensor, truth: Tensor) -> Tensor:
        signed = ((1 - 2 * truth) * logits).flatten(1)  # positive if wrong
        if name == "cross_entropy":
            return (-functional.softplus(signed) if self.targeted else functional.softplus(signed)).mean(dim=1)
        return functional.logsigmoid(-signed if self.targeted else signed).mean(dim=1)

    def _agreement(self, logits: Tensor, truth: Tensor) -> Tensor:
        return ((logits > 0).float() == truth).float().mean(dim=1)

    def _flipped(self, logits: Tensor, clean: Tensor) -> Tensor:
        return ((logits > 0) != (clean > 0)).any(dim=1)


@dataclass(frozen=True, kw_only=True)
class MaskGoal(SeveralLabels):
    """Goal for a mask; ``truth`` is float32 B×H×W."""

    losses_known = ("cross_entropy", "margin", "dice")

    def labels(self, logits: Tensor) -> list[str | None]:
        """Return None for each image."""
        return [None] * len(logits)

    def _losses(self, name: LossName, logits: Tensor, truth: Tensor) -> Tensor:
        if name != "dice":
            return super()._losses(name, logits, truth)
        predicted, true = logits.sigmoid().flatten(1), truth.flatten(1)
        return 1 - (2 * (predicted * true).sum(dim=1) + 1) / (predicted.sum(dim=1) + true.sum(dim=1) + 1)

    def _flipped(self, logits: Tensor, clean: Tensor) -> Tensor:
        return self.reached(logits) > 0.5

    def _agreement(self, logits: Tensor, truth: Tensor) -> Tensor:
        predicted, true = (logits >= 0).flatten(1).float(), truth.flatten(1)
        whole = predicted.sum(dim=1) + true.sum(dim=1)
        return torch.where(whole > 0, 2 * (predicted * true).sum(dim=1) / whole.clamp_min(1), 1.0)


def goal_of(cases: Sequence[CraftCase], probe: Probe, clean: Tensor) -> Goal:
    """Return the goal of attacks on a batch of images.

    Args:
        cases: The cases; their parameter ``target`` names the target labels.
        probe: Probe of the system.
        clean: Its logits of the source images.
    """
    classes, own = probe.classes, clean.detach()
    kind = MaskGoal if classes is None else (SeveralLabels if classes.multi else OneLabel)
    decided = own.argmax(dim=1) if kind is OneLabel else (own > 0).float()
    rows, references = [], []
    for number, case in enumerate(cases):
        target = case.params.get("target")
        labels = tuple(map(str, target)) if isinstance(target, list) else case.seed.labels
        truth = _mask(case) if classes is None else _labels(labels, classes)
        references.append("target" if isinstance(target, list) else ("answer" if truth is None else "truth"))
        rows.append(decided[number] if truth is None else truth.to(own.device))
    return kind(truth=torch.stack(rows), targeted="target" in references, references=tuple(references), classes=classes)


def _mask(case: CraftCase) -> Tensor | None:
    return None if case.seed.mask is None else torch.from_numpy(case.seed.mask.copy()).float()


def _labels(labels: tuple[str, ...] | None, classes: Classes) -> Tensor | None:
    if labels is None:
        return None
    if classes.multi:
        return torch.tensor([float(name in labels) for name in classes.names])
    return torch.tensor(classes.names.index(labels[0])) if len(labels) == 1 else None
