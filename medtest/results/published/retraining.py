"""Published figures of further training, for comparison with the user's.

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
"""Row with the mean of the originals and the nine relations, as in the slides' Average rows."""
WITHOUT = "average_without_original"
"""Row with the mean of the relations only, as in the slides' tables of classifiers."""

CAPSULE = "CAD-CAP and KID"
"""The 600 frames of capsule endoscopy in the slides, pooled."""

NETWORKS: dict[str, str] = {
    "pranet": "PraNet",
    "sanet": "SANet",
    "ssformer": "SSFormer",
    "agdn": "AGDN",
    "dsinet": "DSI-Net",
}
"""Families of networks with their names in the slides; TGANet was not trained further."""

_ROWS = {**ARTEFACTS, "Original": ORIGINAL, "Average": AVERAGE}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One published pair of figures.

    Attributes:
        model: Network, as the slides write it.
        dataset: Data set, as the slides write it.
        relation: Relation that corresponds to the artefact; ``original`` or ``average``.
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
        """After minus before, rounded like the figures."""
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
    """Return the data sets in the slides for a network.

    Args:
        family: As in :func:`figure`.
    """
    model = NETWORKS.get(family)
    return tuple(dict.fromkeys(row.dataset for row in _all() if row.model == model))


def figure(family: str, dataset: str, relation: str, score: str) -> Figure | None:
    """Return the figures in the slides for a network, a data set, a row and a score, or None.

    Args:
        family: A key of :data:`NETWORKS`.
        dataset: Data set; case, ``-`` and ``_`` are ignored.
        relation: Relation id, ``original`` or ``average``.
        score: ``dice``, ``iou`` or ``accuracy``.
    """
    key = (NETWORKS.get(family, ""), plain(dataset), relation, score)
    return next((f for f in _all() if (f.model, plain(f.dataset), f.relation, f.score) == key), None)


def _all() -> tuple[Figure, ...]:
    return (*figures(), *label_figures())


def mean_difference(family: str, relation: str, score: str) -> float | None:
    """Return the mean of the slides' differences over their data sets, or None.

    For ``average`` and ``dice`` this is the improvement that the slides state for a network: 4.9 points for PraNet, 1.6
    for SANet, 0.8 for SSFormer. For ``average`` and ``accuracy``: 6.0 points for AGDN, 3.7 for DSI-Net.

    Args:
        family: As in :func:`figure`.
        relation: As in :func:`figure`.
        score: As in :func:`figure`.
    """
    model = NETWORKS.get(family)
    differences = [row.difference for row in _all() if (row.model, row.relation, row.score) == (model, relation, score)]
    return sum(differences) / len(differences) if differences else None
