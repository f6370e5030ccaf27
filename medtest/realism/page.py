"""Files of a comparison with real artefacts: CSV tables and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medtest.core import __version__
from medtest.core.deferred import pd
from medtest.realism import tables
from medtest.realism.run import Realism
from medtest.report.pages.page import render
from medtest.runner.folder import output_problems, writing_text

PAGE = "realism.html"
_WORDS = {"met": "good", "missed": "bad", "invalid": "bad"}


def write_files(result: Realism, folder: Path, command: str = "") -> list[Path]:
    """Write the tables and the page; return their paths, the page first.

    Raises:
        OutputProblem: A file cannot be written.
    """
    with output_problems(folder / PAGE):
        folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, rows in tables.csv_tables(result).items():
        path = folder / f"{name}.csv"
        if not rows:
            path.unlink(missing_ok=True)
            continue
        with writing_text(path) as opened:
            pd.DataFrame(rows).to_csv(opened, index=False, float_format="%.6g", lineterminator="\n")
        written.append(path)
    with writing_text(folder / PAGE) as opened:
        opened.write(realism_html(result, command))
    return [folder / PAGE, *written]


def realism_html(result: Realism, command: str = "") -> str:
    """Return the page as HTML; it is self-contained."""
    relations = list(dict.fromkeys(row.relation for row in result.statistics))
    return render(
        "realism.html.j2",
        {
            "suite": result.suite,
            "phantom": result.phantom,
            "notices": result.notices,
            "targets": tables.TARGETS,
            "cards": _cards(result),
            "relations": [
                {
                    "name": relation,
                    "real": len(result.real[relation]),
                    "groups": len({sample.group for sample in result.real[relation]}),
                    "made": len(result.made[relation]),
                    "rows": [
                        _row(row.title, tables.statistic_cells(row))
                        for row in result.statistics
                        if row.relation == relation
                    ],
                }
                for relation in relations
            ],
            "patches": [_row(row.relation, tables.patch_cells(row)) for row in result.patches],
            "seams": [_row(row.relation, tables.seam_cells(row)) for row in result.seams],
            "levels": tables.levels(result),
            "command": command,
            "medtest": __version__,
        },
    )


def _row(name: str, cells: Sequence[str]) -> dict[str, Any]:
    return {"name": name, "cells": cells[:-1], "verdict": cells[-1], "sign": _WORDS.get(cells[-1], "")}


def _cards(result: Realism) -> list[dict[str, str]]:
    cards = []
    for relation in dict.fromkeys(row.relation for row in result.statistics):
        verdicts = [row.verdict for row in result.statistics if row.relation == relation]
        judged = sum(verdict in ("met", "missed", "none") for verdict in verdicts)
        cards.append(
            {
                "name": relation,
                "value": f"{verdicts.count('met')} of {judged}",
                "note": "statistics meet their targets" if judged else "statistics can be judged: too few real ones",
            }
        )
    return cards
