"""What an attack raises, for one label, several or a mask: cross-entropy, margin, Dice; away, or towards a target.

Cross-entropy is that of the task: softmax over exclusive classes, binary over several labels or over pixels, its mean.
The margin of exclusive classes is the largest other logit minus the true one's (N. Carlini, D. Wagner, "Towards
evaluating the robustness of neural networks", 2017). Where several labels may hold, or pixels, each has a margin of its
own, s = (1 - 2y)·z; their mean of log σ(s) is raised, which looks most at what is not wrong yet, while binary
cross-entropy looks most at what is wrong already. Dice is 1 minus the soft Dice coefficient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from medtest.cases import Classes
from medtest.errors import NotApplicable
from medtest.probes import CraftCase, Probe

LossName: TypeAlias = Literal["cross_entropy", "margin", "dice"]
Task: TypeAlias = Literal["one", "several", "mask"]


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What is led away from, or towards, for each image of a batch.

    Attributes:
        task: ``one`` label of exclusive classes, ``several`` labels, or ``mask``.
        truth: int64 B (one), float32 B×C (several), float32 B×H×W (mask).
        targeted: Whether ``truth`` is led towards.
        references: For each image ``truth``, ``answer`` (the system's own) or ``target``.
        classes: The seeds' classes; None of masks.
    """  # noqa: RUF002

    task: Task
    truth: Tensor
    targeted: bool
    references: tuple[str, ...]
    classes: Classes | None

    def losses(self, name: LossName, logits: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return what is raised, one number for each image.

        Args:
            name: Which loss.
            logits: Of the images.
            rows: Which of the batch's images they are; None for all.
        """
        truth = self.truth if rows is None else self.truth[rows]
        if self.task != "one" and name != "dice":
            return _several(name, logits, truth, towards=self.targeted)
        found = _dice(logits, truth) if name == "dice" else _one(name, logits, truth)
        return -found if self.targeted else found

    def reached(self, logits: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return how far an attack came, float32 B in [0, 1]: 1 is all that it can reach.

        Untargeted: whether the label is wrong; the share of labels that are; 1 minus the Dice coefficient of the mask
        at 0.5. Targeted: whether the label is the target; the share of labels that are as it says; the Dice
        coefficient.
        """
        truth = self.truth if rows is None else self.truth[rows]
        if self.task == "one":
            hit = (logits.argmax(dim=1) == truth).float()
        elif self.task == "several":
            hit = ((logits > 0).float() == truth).float().mean(dim=1)
        else:
            given = (logits >= 0).flatten(1).float()
            whole = given.sum(dim=1) + truth.flatten(1).sum(dim=1)
            hit = torch.where(whole > 0, 2 * (given * truth.flatten(1)).sum(dim=1) / whole.clamp_min(1), 1.0)
        return hit if self.targeted else 1 - hit

    def labels(self, logits: Tensor) -> list[str | None]:
        """Return the answers as records have them: labels joined by ``|``, in the order of the classes; None of masks.

        Args:
            logits: Of the images.
        """
        if self.classes is None:
            return [None] * len(logits)
        names = self.classes.names
        if self.task == "one":
            return [names[int(row)] for row in logits.argmax(dim=1)]
        return ["|".join(name for name, hit in zip(names, row, strict=True) if hit) for row in (logits > 0).tolist()]


def goal_of(cases: Sequence[CraftCase], probe: Probe, clean: Tensor) -> Goal:
    """Return what attacks on images are to reach.

    Args:
        cases: The cases; ``target`` among their parameters names what to lead towards.
        probe: Of the system.
        clean: Its logits of the source images.
    """
    task: Task = "mask" if probe.classes is None else ("several" if probe.classes.multi else "one")
    targets = [case.params.get("target") for case in cases]
    own = clean.detach()
    decided = own.argmax(dim=1) if task == "one" else (own > 0).float()
    rows, references = [], []
    for number, (case, target) in enumerate(zip(cases, targets, strict=True)):
        known = _target(target, probe.classes, task) if isinstance(target, list) else _truth(case, probe.classes, task)
        references.append("target" if isinstance(target, list) else ("answer" if known is None else "truth"))
        rows.append(decided[number] if known is None else known.to(own.device))
    return Goal(
        task=task,
        truth=torch.stack(rows),
        targeted=any(isinstance(target, list) for target in targets),
        references=tuple(references),
        classes=probe.classes,
    )


def _truth(case: CraftCase, classes: Classes | None, task: Task) -> Tensor | None:
    seed = case.seed
    if task == "mask":
        return None if seed.mask is None else torch.from_numpy(seed.mask.copy()).float()
    if seed.labels is None or classes is None:
        return None
    if task == "several":
        return torch.tensor([float(name in seed.labels) for name in classes.names])
    if len(seed.labels) != 1:
        return None
    return torch.tensor(classes.names.index(seed.labels[0]))


def _target(target: Sequence[object], classes: Classes | None, task: Task) -> Tensor:
    if classes is None:
        raise NotApplicable("a target is a label, and this system gives masks")
    if task == "several":
        return torch.tensor([float(name in target) for name in classes.names])
    return torch.tensor(classes.names.index(str(target[0])))


def _one(name: LossName, logits: Tensor, truth: Tensor) -> Tensor:
    if name == "cross_entropy":
        return functional.cross_entropy(logits, truth, reduction="none")
    true = logits.gather(1, truth[:, None])[:, 0]
    return logits.scatter(1, truth[:, None], -torch.inf).amax(dim=1) - true


def _several(name: LossName, logits: Tensor, truth: Tensor, *, towards: bool) -> Tensor:
    signed = ((1 - 2 * truth) * logits).flatten(1)  # above 0 where it is wrong
    if name == "cross_entropy":
        return (-functional.softplus(signed) if towards else functional.softplus(signed)).mean(dim=1)
    return (functional.logsigmoid(-signed) if towards else functional.logsigmoid(signed)).mean(dim=1)


def _dice(logits: Tensor, truth: Tensor) -> Tensor:
    given, true = logits.sigmoid().flatten(1), truth.flatten(1)
    return 1 - (2 * (given * true).sum(dim=1) + 1) / (given.sum(dim=1) + true.sum(dim=1) + 1)
