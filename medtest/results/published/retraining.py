"""The published figures of further training, to stand beside the user's own.

``published/medtest_retraining_segmentation.csv`` holds the tables of the MedTest slides (RQ2, segmentation): Dice and
IoU of three networks on two data sets, before and after, on the originals, on nine artefacts, and their average.
``published/medtest_retraining_classification.csv`` holds those of classification: accuracy of two networks on capsule
endoscopy, on the originals, on eight artefacts (blood is a diagnosis there), and their average. Every Average row of
both includes the originals.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from medtest.results.published.reference import ARTEFACTS
from medtest.seeds.datasets.facts import plain

FILE = Path(__file__).parent / "medtest_retraining_segmentation.csv"
LABEL_FILE = FILE.with_name("medtest_retraining_classification.csv")
SOURCE = "MedTest slides, RQ2 (further training, segmentation of polyps)"

ORIGINAL = "original"
"""Row of the unchanged source images."""
AVERAGE = "average"
"""Row of the mean of the originals and the nine relations, as the slides' Average rows have it."""
WITHOUT = "average_without_original"
"""Row of the mean of the relations alone, as the slides' tables of classifiers have it."""

CAPSULE = "CAD-CAP and KID"
"""The slides' 600 frames of capsule endoscopy, pooled."""

NETWORKS: dict[str, str] = {
    "pranet": "PraNet",
    "sanet": "SANet",
    "ssformer": "SSFormer",
    "agdn": "AGDN",
    "dsinet": "DSI-Net",
}
"""Families of networks, and the slides' words for them; TGANet was not trained further."""

_ROWS = {**ARTEFACTS, "Original": ORIGINAL, "Average": AVERAGE}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One published pair of figures.

    Attributes:
        model: Network, as the slides write it.
        dataset: Data set, as the slides write it.
        relation: The relation that stands for the artefact; ``original`` or ``average``.
        score: ``dice``, ``iou`` or ``accuracy``.
        before: Mean score before, in [0, 1], rounded to three decimals by its authors.
        after: Mean score after further training.
    """

    model: str
    dataset: str
    relation: str
    score: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        """After minus before, rounded as the figures are."""
        return round(self.after - self.before, 3)


@cache
def figures() -> tuple[Figure, ...]:
    """Return every published pair of segmentation, in the file's order."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
            Figure(
                model=row["model"],
                dataset=row["dataset"],
                relation=_ROWS[row["artifact"]],
                score=row["score"].lower(),
                before=float(row["before"]),
                after=float(row["after"]),
            )
            for row in csv.DictReader(file)
        )


@cache
def label_figures() -> tuple[Figure, ...]:
    """Return every published pair of classification, in the file's order."""
    with LABEL_FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
            Figure(
                model=row["model"],
                dataset=CAPSULE,
                relation=_ROWS[row["artifact"]],
                score="accuracy",
                before=float(row["accuracy_before"]),
                after=float(row["accuracy_after"]),
            )
            for row in csv.DictReader(file)
        )


def datasets(family: str = "pranet") -> tuple[str, ...]:
    """Return the data sets that the slides have for a network.

    Args:
        family: As :func:`figure`.
    """
    model = NETWORKS.get(family)
    return tuple(dict.fromkeys(one.dataset for one in _all() if one.model == model))


def figure(family: str, dataset: str, relation: str, score: str) -> Figure | None:
    """Return what the slides have for a network, a data set, a row and a score; None where they have nothing.

    Args:
        family: A key of :data:`NETWORKS`.
        dataset: Data set; case, ``-`` and ``_`` do not matter.
        relation: Relation id, ``original`` or ``average``.
        score: ``dice``, ``iou`` or ``accuracy``.
    """
    wanted = (NETWORKS.get(family, ""), plain(dataset), relation, score)
    return next((f for f in _all() if (f.model, plain(f.dataset), f.relation, f.score) == wanted), None)


def _all() -> tuple[Figure, ...]:
    return (*figures(), *label_figures())


def mean_difference(family: str, relation: str, score: str) -> float | None:
    """Return the mean of the slides' differences over their data sets; None where they have nothing.

    For ``average`` and ``dice`` this is the improvement that the slides state for a network: 4.9 points for PraNet, 1.6
    for SANet, 0.8 for SSFormer. For ``average`` and ``accuracy``: 6.0 points for AGDN, 3.7 for DSI-Net.

    Args:
        family: As :func:`figure`.
        relation: As :func:`figure`.
        score: As :func:`figure`.
    """
    model = NETWORKS.get(family)
    found = [one.difference for one in _all() if (one.model, one.relation, one.score) == (model, relation, score)]
    return sum(found) / len(found) if found else None
