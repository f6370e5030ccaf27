"""Published error-finding rates of the MedTest report, for comparison with the user's.

``published/medtest_efr.csv`` holds every figure of the report's tables 2 to 9 (four networks, four data sets, nine
artefacts, Dice and IoU, two thresholds). The pools below are computed from those cells, not stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace

from medtest.results.published.rows import FOLDER, published_rows

FILE = FOLDER / "medtest_efr.csv"
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


@cache
def cells() -> tuple[SimpleNamespace, ...]:
    """Return every published figure, in the file's order.

    Each has the ``model``, ``dataset`` and ``artifact`` as the report writes them, the ``threshold`` t of equation 6,
    the ``relation`` that corresponds to the artefact, the ``score`` (``dice`` or ``iou``) and ``efr_percent``, rounded
    to one decimal by its authors.
    """
    rows = published_rows(FILE.name)
    for row in rows:
        row.relation, row.score = ARTEFACTS[row.artifact], row.score.lower()
    return tuple(rows)


def models() -> tuple[str, ...]:
    """Return the published networks."""
    return tuple(dict.fromkeys(cell.model for cell in cells()))


def _chosen(model: str, score: str, threshold: float, datasets: tuple[str, ...] | None) -> list[SimpleNamespace]:
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
    return _weighted(_chosen(model, score, threshold, datasets))


def _weighted(matches: Sequence[SimpleNamespace]) -> float:
    """Return the mean of cells, weighted by the images of their data sets."""
    weights = [DATASET_SIZES[cell.dataset] for cell in matches]
    return float(sum(w * cell.efr_percent for w, cell in zip(weights, matches, strict=True)) / sum(weights))


def overall_cells(model: str, *, score: str, threshold: float, datasets: tuple[str, ...] | None = None) -> float:
    """Return the mean of the cells in percent; arguments and errors as in :func:`overall`."""
    matches = _chosen(model, score, threshold, datasets)
    return float(sum(cell.efr_percent for cell in matches) / len(matches))


def relation_rate(model: str, relation: str, *, score: str, threshold: float) -> float | None:
    """Return a relation's published rate over all cases of the four data sets in percent, or None."""
    matches = [cell for cell in _chosen(model, score, threshold, None) if cell.relation == relation]
    return _weighted(matches) if matches else None
