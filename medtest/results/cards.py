"""Table of a reader's card: sensitivity and specificity of each name, with Wilson intervals."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from medtest.core.errors import MedtestError
from medtest.readers.pictures.card import Card
from medtest.results.cube.intervals import wilson_ends

COLUMNS: Final = (
    "kind",
    "name",
    "present",
    "seen",
    "sensitivity",
    "sensitivity_low",
    "sensitivity_high",
    "absent",
    "spurious",
    "specificity",
    "specificity_low",
    "specificity_high",
    "told",
)
"""Columns: counts; shares with the ends of their 95 % intervals, in [0, 1]; whether the reader reports the name."""


def card_rows(card: Card) -> list[dict[str, Any]]:
    """Return the rows of a card under :data:`COLUMNS`; None for shares without cases."""
    rows = []
    for row in card.rows:
        low, high = wilson_ends(row.seen, row.present) if row.present else (None, None)
        spec_low, spec_high = wilson_ends(row.absent - row.spurious, row.absent) if row.absent else (None, None)
        values = (
            *(row.kind, row.name, row.present, row.seen, row.sensitivity, low, high),
            *(row.absent, row.spurious, row.specificity, spec_low, spec_high, row.reliable),
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def write_card_table(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the rows of a card as CSV, shares with four decimals.

    Raises:
        MedtestError: The file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            for row in rows:
                cells = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
                writer.writerow(cells)
    except OSError as error:
        raise MedtestError(f"{path.name} cannot be written: {error.strerror}") from error
