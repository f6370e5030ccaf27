"""Report section on orders of medical pictures: findings ordered and seen, in total and picture by picture."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from PIL import Image as Pillow

from medtest.core.files.by_content import DamagedFile, PictureFiles
from medtest.core.records import PICTURES
from medtest.report.charts.heat import percent, rows_of
from medtest.results.cube.axes import ALL
from medtest.tasks.depict.rules import LEAST_JUDGED
from medtest.tasks.depict.tables.findings import RATES
from medtest.tasks.depict.tables.ordered import AS_ORDERED, WRONG, OrderedPicture
from medtest.tasks.depict.tables.results import DepictTables

_SIDE: Final = 224
"""Largest side of a picture in pixels."""
_QUALITY: Final = 72


def ordered_section(tables: DepictTables, folder: Path) -> dict[str, Any]:
    """Return the values of the section; empty unless prompts are orders.

    Args:
        tables: Tables of the system.
        folder: Folder of the run with its pictures.
    """
    if tables.findings.empty:
        return {}
    files = PictureFiles(folder / PICTURES)
    return {
        "rows": [_row(row) for row in rows_of(tables.findings)],
        "pictures": [_card(picture, files) for picture in tables.ordered],
        "wrong": sum(picture.wrong > 0 for picture in tables.ordered),
        "least": LEAST_JUDGED,
    }


def _row(row: Mapping[Any, Any]) -> dict[str, Any]:
    cells = []
    for name, of in RATES.items():
        cells.append(f"{row[of]:,}")
        cells.append(_share(row, name, row[of]))
        cells.append(_ends(row, f"{name}_corrected") if row[of] >= LEAST_JUDGED else "")
    name = "all findings" if row["finding"] == ALL else str(row["finding"]).replace("_", " ")
    return {
        "name": name,
        "modality": row["modality"],
        "sum": row["finding"] == ALL,
        "seen": f"{row['seen']:,}",
        "cells": cells,
        "cannot_tell": f"{row['cannot_tell']:,}",
        "card": " / ".join("–" if row[key] != row[key] else f"{row[key]:.2f}" for key in _CARD),
    }


_CARD: Final = ("sensitivity", "specificity", "side_right")


def _share(row: Mapping[Any, Any], name: str, count: int) -> str:
    """Return a rate with its interval; counts alone below :data:`LEAST_JUDGED` pictures."""
    if count < LEAST_JUDGED:
        return f"{row[name]:,} of {count:,}" if count else ""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{row[name]:,}: {percent(100 * row[f'{name}_rate'])} ({100 * low:.1f} to {100 * high:.1f})"


def _ends(row: Mapping[Any, Any], name: str) -> str:
    value = row[name]
    if value != value:
        return ""
    return f"{100 * value:.1f} ({100 * row[f'{name}_low']:.1f} to {100 * row[f'{name}_high']:.1f})"


def _card(picture: OrderedPicture, files: PictureFiles) -> dict[str, Any]:
    return {
        "data": _jpeg(picture.picture, files),
        "relation": picture.relation.replace("_", " "),
        "address": picture.address,
        "prompt": picture.prompt,
        "findings": [
            {
                "ordered": ordered,
                "seen": detected,
                "verdict": verdict,
                "class": "bad" if verdict in WRONG else "good" if verdict == AS_ORDERED else "open",
            }
            for ordered, detected, verdict in picture.findings
        ],
        "unasked": ", ".join(picture.unasked),
    }


def _jpeg(sha256: str, files: PictureFiles) -> str:
    """Return a picture as a small JPEG in a ``data:`` address; "" if it is no longer kept."""
    try:
        if not sha256 or files.size("images", sha256) is None:
            return ""
        shown = Pillow.fromarray(files.read("images", sha256))
    except DamagedFile:
        return ""
    shown.thumbnail((_SIDE, _SIDE), Pillow.Resampling.LANCZOS)
    buffer = io.BytesIO()
    shown.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
