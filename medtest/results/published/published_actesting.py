"""ACTesting's published figures, to stand beside the user's own.

S. Gu, "Automated Testing Method for Text-to-Image Software" (2023; arXiv 2312.12933): ``actesting_errors.csv`` is
figure 6 (Error_e and Error_r by operator, read from the figure in the authors' repository), ``actesting_fidelity.csv``
table 1 (I-FID, I-IS, RP), ``actesting_miss.csv`` table 2 (Miss_e and Miss_r). What the text says of them is rebuilt
from the cells, never stored; :data:`STATED` has what it states.
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
"""The paper's words, and the relation that stands for each; its source is the picture of the seed's own prompt."""

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
"""What section 5.3 (RQ3) states, in percent: means over the four software of the ratios of two cells, less one. All but
the first are; that one is 26.7."""
STATED_EFFICIENCY = 1.75
"""How many times SS's errors ER_A is said to find (section 5.2); figure 6 gives 1.51 of entities, 1.91 of relations."""
STATED_FID_RISE = 5.0
"""By how many percent ER_A is said to raise I-FID (section 5.1); table 1 gives 11.1."""


@dataclass(frozen=True, kw_only=True)
class PublishedCell:
    """Figures of one software under one operator.

    Attributes:
        software: As the paper writes it.
        operator: The paper's word; ``Orig`` for the seeds' own prompts.
        values: By the file's column; rates in [0, 1], ``rp_percent`` in percent.
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
    """Return one figure; None where there is none."""
    found = [one for one in cells(table) if (one.software, one.operator) == (software, operator)]
    return found[0].values[column] if found else None


@cache
def software() -> tuple[str, ...]:
    """Return the four software that were tested, in the paper's order."""
    return tuple(dict.fromkeys(one.software for one in cells("errors")))


def mean_of(table: str, operator: str, column: str) -> float:
    """Return the mean of a figure over the four software."""
    return fmean(one.values[column] for one in cells(table) if one.operator == operator and one.software in software())


def mean_ratio(table: str, column: str, over: str, base: str) -> float:
    """Return the mean over the four software of one operator's figure divided by another's."""
    return fmean(_known(table, one, over, column) / _known(table, one, base, column) for one in software())


def rebuilt() -> dict[str, float]:
    """Return what :data:`STATED` states, as the cells give it, in percent."""
    found = {}
    for name in STATED:
        column, over, _, base = name.split()
        found[name] = 100 * (mean_ratio("miss", column.lower(), over, base) - 1)
    return found


def _known(table: str, software_: str, operator: str, column: str) -> float:
    found = value(table, software_, operator, column)
    if found is None:
        raise ValueError(f"nothing was published of {software_} under {operator}")
    return found
