"""ACTesting's published figures, for comparison with the user's.

S. Gu, "Automated Testing Method for Text-to-Image Software" (2023; arXiv 2312.12933): ``actesting_errors.csv`` is
figure 6 (Error_e and Error_r by operator, read from the figure in the authors' repository), ``actesting_fidelity.csv``
table 1 (I-FID, I-IS, RP), ``actesting_miss.csv`` table 2 (Miss_e and Miss_r). Derived values are computed from the
cells and not stored; :data:`STATED` has those stated in the text.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

FOLDER = Path(__file__).parent
PAPER = 'S. Gu, "Automated Testing Method for Text-to-Image Software" (ACTesting, arXiv 2312.12933, 2023)'
SEEDS = 4062
ORIGINAL, REAL = "Orig", "Real-Image"

OPERATORS: dict[str, str] = {
    ORIGINAL: "source",
    "SS": "ss",
    "ER_R": "er_r",
    "EC": "ec",
    "ER_A": "er_a",
    "EC+ER_R": "ec_er_r",
    "EC+ER_A": "ec_er_a",
}
"""Operator names in the paper with their relations; the source is the picture of the seed's own prompt."""

STATED: dict[str, float] = {
    "Miss_e EC+ER_A over EC": 26.0,
    "Miss_e EC+ER_A over ER_A": 29.1,
    "Miss_e EC+ER_R over EC": 5.5,
    "Miss_e EC+ER_R over ER_R": 31.3,
    "Miss_r EC+ER_A over EC": 5.1,
    "Miss_r EC+ER_A over ER_A": 7.2,
    "Miss_r EC+ER_R over EC": 1.8,
    "Miss_r EC+ER_R over ER_R": 10.8,
}
"""Values stated in section 5.3 (RQ3), in percent: means over the four software of the ratio of two cells, minus one.

The cells reproduce all but the first, for which they give 26.7.
"""
STATED_EFFICIENCY = 1.75
"""Stated increase of I-FID by ER_A in percent (section 5.1); table 1 gives 11.1."""
STATED_FID_RISE = 5.0
"""Stated increase of I-FID by ER_A in percent (section 5.1); table 1 gives 11.1."""


@dataclass(frozen=True, kw_only=True)
class PublishedCell:
    """Figures of one software under one operator.

    Attributes:
        software: Name in the paper.
        operator: Name in the paper; ``Orig`` for the seeds' own prompts.
        values: By column of the file; rates in [0, 1], ``rp_percent`` in percent.
    """

    software: str
    operator: str
    values: Mapping[str, float]


@cache
def cells(table: str) -> tuple[PublishedCell, ...]:
    """Return the cells of ``errors``, ``miss`` or ``fidelity`` in the paper's order."""
    with (FOLDER / f"actesting_{table}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            PublishedCell(
                software=row.pop("software"),
                operator=row.pop("operator"),
                values={name: float(value) for name, value in row.items()},
            )
            for row in csv.DictReader(file)
        )


@cache
def value(table: str, software: str, operator: str, column: str) -> float | None:
    """Return one figure, or None."""
    matches = [cell for cell in cells(table) if (cell.software, cell.operator) == (software, operator)]
    return matches[0].values[column] if matches else None


@cache
def software() -> tuple[str, ...]:
    """Return the four software under test, in the paper's order."""
    return tuple(dict.fromkeys(cell.software for cell in cells("errors")))


def mean_of(table: str, operator: str, column: str) -> float:
    """Return the mean of a figure over the four software."""
    return fmean(
        cell.values[column] for cell in cells(table) if cell.operator == operator and cell.software in software()
    )


def mean_ratio(table: str, column: str, over: str, base: str) -> float:
    """Return the mean over the four software of one operator's figure divided by another's."""
    return fmean(_known(table, name, over, column) / _known(table, name, base, column) for name in software())


def rebuilt() -> dict[str, float]:
    """Return the values of :data:`STATED` computed from the cells, in percent."""
    percents = {}
    for name in STATED:
        column, over, _, base = name.split()
        percents[name] = 100 * (mean_ratio("miss", column.lower(), over, base) - 1)
    return percents


def _known(table: str, software_: str, operator: str, column: str) -> float:
    figure = value(table, software_, operator, column)
    if figure is None:
        raise ValueError(f"nothing was published of {software_} under {operator}")
    return figure
