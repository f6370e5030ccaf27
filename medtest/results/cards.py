"""A reader's card as a table: sensitivity and specificity of each name, with Wilson's intervals."""

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
"""Counts; shares and the ends of their 95 % intervals, 0 to 1; whether the reader can tell the name."""


def card_rows(card: Card) -> list[dict[str, Any]]:
    """Return a card's rows under :data:`COLUMNS`; None where there is nothing to count."""
    rows = []
    for row in card.rows:
        low, high = wilson_ends(row.seen, row.present) if row.present else (None, None)
        least, most = wilson_ends(row.absent - row.spurious, row.absent) if row.absent else (None, None)
        values = (
            *(row.kind, row.name, row.present, row.seen, row.sensitivity, low, high),
            *(row.absent, row.spurious, row.specificity, least, most, row.told),
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def write_card_table(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write rows of a card as CSV, shares with four decimals.

    Raises:
        MedtestError: The file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            for row in rows:
                shown = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
                writer.writerow(shown)
    except OSError as error:
        raise MedtestError(f"{path.name}: cannot be written: {error.strerror}") from error
