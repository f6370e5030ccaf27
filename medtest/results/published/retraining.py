"""Published figures of further training, for comparison with the user's.

``published/medtest_retraining_segmentation.csv`` holds the tables of the MedTest slides (RQ2, segmentation): Dice and
IoU of three networks on two data sets, before and after, on the originals, on nine artefacts, and their average.
``published/medtest_retraining_classification.csv`` holds those of classification: accuracy of two networks on capsule
endoscopy, on the originals, on eight artefacts (blood is a diagnosis there), and their average. Every Average row of
both includes the originals.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

from medtest.results.published.reference import ARTEFACTS
from medtest.results.published.rows import FOLDER, published_rows
from medtest.seeds.datasets.facts import plain

FILE = FOLDER / "medtest_retraining_segmentation.csv"
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


@cache
def figures() -> tuple[SimpleNamespace, ...]:
    """Return every published pair of segmentation, in the file's order.

    Each has the ``model`` and ``dataset`` as the slides write them, the ``relation`` that corresponds to the artefact
    (or ``original``, ``average``), the ``score``, the mean score ``before`` and ``after`` further training, in [0, 1]
    and rounded to three decimals by its authors, and their ``difference``.
    """
    rows = published_rows(FILE.name)
    return tuple(_figure(row, row.dataset, row.score.lower()) for row in rows)


@cache
def label_figures() -> tuple[SimpleNamespace, ...]:
    """Return every published pair of classification, in the file's order, as :func:`figures` does."""
    names = {"accuracy_before": "before", "accuracy_after": "after"}
    rows = published_rows("medtest_retraining_classification.csv", **names)
    return tuple(_figure(row, CAPSULE, "accuracy") for row in rows)


def _figure(row: SimpleNamespace, dataset: str, score: str) -> SimpleNamespace:
    row.dataset, row.score, row.relation = dataset, score, _ROWS[row.artifact]
    row.difference = round(row.after - row.before, 3)
    return row


def datasets(family: str = "pranet") -> tuple[str, ...]:
    """Return the data sets in the slides for a network.

    Args:
        family: As in :func:`figure`.
    """
    model = NETWORKS.get(family)
    return tuple(dict.fromkeys(row.dataset for row in _all() if row.model == model))


def figure(family: str, dataset: str, relation: str, score: str) -> SimpleNamespace | None:
    """Return the figures in the slides for a network, a data set, a row and a score, or None.

    Args:
        family: A key of :data:`NETWORKS`.
        dataset: Data set; case, ``-`` and ``_`` are ignored.
        relation: Relation id, ``original`` or ``average``.
        score: ``dice``, ``iou`` or ``accuracy``.
    """
    key = (NETWORKS.get(family, ""), plain(dataset), relation, score)
    return next((f for f in _all() if (f.model, plain(f.dataset), f.relation, f.score) == key), None)


def _all() -> tuple[SimpleNamespace, ...]:
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
