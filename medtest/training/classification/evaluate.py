"""Evaluation of a classifier on unseen phantoms: accuracy or area under the ROC curve, overall and per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address
from medtest.core.errors import MedtestError
from medtest.systems.base import LabelAnswer, Missing, System
from medtest.training.classification.cases import maker, squared
from medtest.training.classification.families import ClassifierFamily, kind_of
from medtest.training.classification.scores import areas

SEED = 6_021
"""Suite seed of the phantoms for the card, not used by any training."""
REPLICATES = 2_000
BATCH = 8
_MULTI = "mean AUROC"


@dataclass(frozen=True, kw_only=True, eq=False)
class PhantomScores:
    """Scores of a classifier on phantoms.

    Attributes:
        count: Number of phantoms.
        name: ``accuracy``, or ``mean AUROC`` if several classes may apply.
        score: That score.
        low: Lower end of its 95 % bootstrap interval over phantoms.
        high: Upper end.
        classes: Recall of each class, or AUROC of each finding, by name.
    """

    count: int
    name: str
    score: float
    low: float
    high: float
    classes: dict[str, float]

    def __str__(self) -> str:
        return f"{self.name} {self.score:.3f} ({self.low:.3f} to {self.high:.3f})"


def evaluate_phantoms(system: System, count: int) -> PhantomScores:
    """Run an opened classifier on unseen phantoms, prepared as in a suite.

    Raises:
        MedtestError: It has no answer for one.
    """
    kind = kind_of(system.name)
    truth: list[NDArray[np.float32]] = []
    scores: list[NDArray[np.float64]] = []
    make = maker(kind.phantoms)
    for start in range(0, count, BATCH):
        phantoms = [make(index, SEED, size=kind.stored) for index in range(start, min(start + BATCH, count))]
        images = [_shown(phantom.image, kind) for phantom in phantoms]
        addresses = [Address(dataset="evaluation", seed_id=str(start + place)) for place in range(len(phantoms))]
        for phantom, answer in zip(phantoms, system.predict(images, addresses), strict=True):
            if isinstance(answer, Missing):
                raise MedtestError(f"{system.record_name} has no answer for phantom {start}: {answer.reason}")
            raw: Any = answer.scores if isinstance(answer, LabelAnswer) else answer
            scores.append(np.asarray(raw, np.float64))
            truth.append(np.array([name in phantom.labels for name in kind.classes.names], np.float32))
    return _phantom_scores(np.stack(scores), np.stack(truth), kind)


def _shown(image: Any, kind: ClassifierFamily) -> NDArray[np.uint8]:
    """Return the centre of a phantom at the network's input side."""
    cut = (kind.stored - kind.side) // 2
    return squared(image[cut : cut + kind.side, cut : cut + kind.side] if cut else image, kind.side)


def _phantom_scores(scores: NDArray[np.float64], truth: NDArray[np.float32], kind: ClassifierFamily) -> PhantomScores:
    names = kind.classes.names
    rng = np.random.Generator(np.random.PCG64(0))
    draws = rng.integers(len(truth), size=(REPLICATES, len(truth)))
    if kind.classes.multi:
        single = scores.astype(np.float32)
        each = areas(single, truth)
        drawn = np.array([np.nanmean(areas(single[draw], truth[draw])) for draw in draws[:300]])
        score, name = float(np.nanmean(each)), _MULTI
    else:
        right = scores.argmax(axis=1) == truth.argmax(axis=1)
        each = np.array([right[truth[:, place] > 0].mean() for place in range(len(names))])
        drawn = right[draws].mean(axis=1)
        score, name = float(right.mean()), "accuracy"
    low, high = np.percentile(drawn, [2.5, 97.5])
    classes = {class_name: float(value) for class_name, value in zip(names, each, strict=True)}
    return PhantomScores(count=len(truth), name=name, score=score, low=float(low), high=float(high), classes=classes)
