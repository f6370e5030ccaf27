"""The published figures of further training, to stand beside the user's own.

``published/medtest_retraining_segmentation.csv`` holds the tables of the MedTest slides (RQ2, segmentation): Dice and
IoU of three networks on two data sets, before and after, on the originals, on nine artefacts, and their average.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from medtest.results.reference import ARTEFACTS, plain

FILE = Path(__file__).parent / "published" / "medtest_retraining_segmentation.csv"
SOURCE = "MedTest slides, RQ2 (further training, segmentation of polyps)"

ORIGINAL = "original"
"""Row of the unchanged source images."""
AVERAGE = "average"
"""Row of the mean of the originals and the nine relations, as the slides' Average rows have it."""

NETWORKS: dict[str, str] = {"pranet": "PraNet", "sanet": "SANet", "ssformer": "SSFormer"}
"""Families of networks, and the slides' words for them; TGANet was not trained further."""

_ROWS = {**ARTEFACTS, "Original": ORIGINAL, "Average": AVERAGE}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One published pair of figures.

    Attributes:
        model: Network, as the slides write it.
        dataset: Data set, as the slides write it.
        relation: The relation that stands for the artefact; ``original`` or ``average``.
        score: ``dice`` or ``iou``.
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
    """Return every published pair, in the file's order."""
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


def datasets() -> tuple[str, ...]:
    """Return the data sets of the slides."""
    return tuple(dict.fromkeys(one.dataset for one in figures()))


def figure(family: str, dataset: str, relation: str, score: str) -> Figure | None:
    """Return what the slides have for a network, a data set, a row and a score; None where they have nothing.

    Args:
        family: ``pranet``, ``sanet``, ``ssformer``.
        dataset: Data set; case, ``-`` and ``_`` do not matter.
        relation: Relation id, ``original`` or ``average``.
        score: ``dice`` or ``iou``.
    """
    wanted = (NETWORKS.get(family, ""), plain(dataset), relation, score)
    return next((one for one in figures() if (one.model, plain(one.dataset), one.relation, one.score) == wanted), None)


def mean_difference(family: str, relation: str, score: str) -> float | None:
    """Return the mean of the slides' differences over their data sets; None where they have nothing.

    For ``average`` and ``dice`` this is the improvement that the slides state for a network: 4.9 points for PraNet, 1.6
    for SANet, 0.8 for SSFormer.

    Args:
        family: As :func:`figure`.
        relation: As :func:`figure`.
        score: As :func:`figure`.
    """
    model = NETWORKS.get(family)
    found = [one.difference for one in figures() if (one.model, one.relation, one.score) == (model, relation, score)]
    return sum(found) / len(found) if found else None
