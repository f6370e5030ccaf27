"""Published error-finding rates of the MedTest report, for comparison with the user's.

``published/medtest_efr.csv`` holds every figure of the report's tables 2 to 9 (four networks, four data sets, nine
artefacts, Dice and IoU, two thresholds). The pools below are computed from those cells, not stored.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "medtest_efr.csv"
SOURCE = "MedTest report, tables 2-9 (segmentation of polyps)"

DATASET_SIZES: dict[str, int] = {"CVC-300": 60, "CVC-ClinicDB": 612, "CVC-ColonDB": 380, "Kvasir": 1000}
"""Number of images in each data set (report, section 4.1.1); every artefact was applied once to every image."""

ARTEFACTS: dict[str, str] = {
    "Blood": "blood",
    "Feces": "feces",
    "Instrument": "instrument",
    "Spot": "specularity",
    "Saturation": "saturation",
    "Contrast": "contrast",
    "White Balance": "white_balance",
    "Blur": "blur",
    "Text": "text",
}
"""Names of artefacts in the report, with their relations."""

OUTSIDE_TRAINING: tuple[str, ...] = ("CVC-300", "CVC-ColonDB")
"""Data sets on which none of the four networks was trained."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One published figure.

    Attributes:
        model: Network, as the report writes it.
        threshold: t of equation 6.
        dataset: Data set, as the report writes it.
        artefact: Artefact, as the report writes it.
        relation: Relation that corresponds to it.
        score: ``dice`` or ``iou``.
        efr_percent: The figure, rounded to one decimal by its authors.
    """

    model: str
    threshold: float
    dataset: str
    artefact: str
    relation: str
    score: str
    efr_percent: float


@cache
def cells() -> tuple[Cell, ...]:
    """Return every published figure, in the file's order."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
            Cell(
                model=row["model"],
                threshold=float(row["threshold"]),
                dataset=row["dataset"],
                artefact=row["artifact"],
                relation=ARTEFACTS[row["artifact"]],
                score=row["score"].lower(),
                efr_percent=float(row["efr_percent"]),
            )
            for row in csv.DictReader(file)
        )


def models() -> tuple[str, ...]:
    """Return the published networks."""
    return tuple(dict.fromkeys(cell.model for cell in cells()))


def _chosen(model: str, score: str, threshold: float, datasets: tuple[str, ...] | None) -> list[Cell]:
    matches = [
        cell
        for cell in cells()
        if (cell.model, cell.score, cell.threshold) == (model, score, threshold)
        and (datasets is None or cell.dataset in datasets)
    ]
    if not matches:
        raise KeyError(f"nothing published for {model}, {score}, t = {threshold}, {datasets}")
    return matches


def overall(model: str, *, score: str, threshold: float, datasets: tuple[str, ...] | None = None) -> float:
    """Return the rate over all cases in percent: cells weighted by their data set's images.

    Args:
        model: Network, as the report writes it.
        score: ``dice`` or ``iou``.
        threshold: 0.25 or 0.5.
        datasets: Data sets; None for all four.

    Raises:
        KeyError: Nothing was published for these arguments.
    """
    matches = _chosen(model, score, threshold, datasets)
    weights = [DATASET_SIZES[cell.dataset] for cell in matches]
    return sum(w * cell.efr_percent for w, cell in zip(weights, matches, strict=True)) / sum(weights)


def overall_cells(model: str, *, score: str, threshold: float, datasets: tuple[str, ...] | None = None) -> float:
    """Return the mean of the cells in percent; arguments and errors as in :func:`overall`."""
    matches = _chosen(model, score, threshold, datasets)
    return sum(cell.efr_percent for cell in matches) / len(matches)


def relation_rate(model: str, relation: str, *, score: str, threshold: float) -> float | None:
    """Return a relation's published rate over all cases of the four data sets in percent, or None."""
    matches = [cell for cell in _chosen(model, score, threshold, None) if cell.relation == relation]
    if not matches:
        return None
    weights = [DATASET_SIZES[cell.dataset] for cell in matches]
    return sum(w * cell.efr_percent for w, cell in zip(weights, matches, strict=True)) / sum(weights)
