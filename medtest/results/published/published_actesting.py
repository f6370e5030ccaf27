"""ACTesting's published figures, for comparison with the user's.

S. Gu, "Automated Testing Method for Text-to-Image Software" (2023; arXiv 2312.12933): ``actesting_errors.csv`` is
figure 6 (Error_e and Error_r by operator, read from the figure in the authors' repository), ``actesting_fidelity.csv``
table 1 (I-FID, I-IS, RP), ``actesting_miss.csv`` table 2 (Miss_e and Miss_r).
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

from medtest.results.published.rows import published_rows

PAPER = 'S. Gu, "Automated Testing Method for Text-to-Image Software" (ACTesting, arXiv 2312.12933, 2023)'
ORIGINAL = "Orig"

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


@cache
def cells(table: str) -> tuple[SimpleNamespace, ...]:
    """Return the cells of ``errors``, ``miss`` or ``fidelity`` in the paper's order.

    Each has the ``software`` and ``operator`` as the paper writes them (``Orig`` for the seeds' own prompts), and a
    figure for each further column of the file: rates in [0, 1], ``rp_percent`` in percent.
    """
    return tuple(published_rows(f"actesting_{table}.csv"))


@cache
def value(table: str, software: str, operator: str, column: str) -> float | None:
    """Return one figure, or None."""
    matches = [cell for cell in cells(table) if (cell.software, cell.operator) == (software, operator)]
    return float(getattr(matches[0], column)) if matches else None


@cache
def software() -> tuple[str, ...]:
    """Return the four software under test, in the paper's order."""
    return tuple(dict.fromkeys(cell.software for cell in cells("errors")))
