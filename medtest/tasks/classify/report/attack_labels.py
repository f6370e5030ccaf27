"""Labels under attack, for the report page of a multi-label classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.core.deferred import pd
from medtest.report.attacks.section import ranged, share
from medtest.report.charts.heat import rows_of
from medtest.report.pages.words import number_words
from medtest.results.cube.axes import ALL


def attack_labels(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return each label under each attack at its largest severity, one table for each threshold.

    Args:
        table: ``attack_labels.csv``.
    """
    rows = rows_of(table, dataset=ALL)
    if not rows:
        return []
    tops: dict[str, int] = {}
    for row in rows:
        tops[str(row["relation"])] = max(int(row["severity"]), tops.get(str(row["relation"]), 0))
    tables = []
    for threshold in dict.fromkeys(float(row["threshold"]) for row in rows):
        selected = [
            row for row in rows if row["threshold"] == threshold and int(row["severity"]) == tops[str(row["relation"])]
        ]
        relations = list(dict.fromkeys(str(row["relation"]) for row in selected))
        labels = list(dict.fromkeys(str(row["label"]) for row in selected))
        cells = {(str(row["label"]), str(row["relation"])): row for row in selected}
        tables.append(
            {
                "threshold": f"{threshold:g}",
                "columns": [f"{name.replace('_', ' ')}, severity {tops[name]}" for name in relations],
                "rows": [
                    {
                        "name": label.replace("_", " "),
                        "cells": [_label(cells.get((label, relation))) for relation in relations],
                    }
                    for label in labels
                ],
            }
        )
    return tables


def _label(row: Mapping[Any, Any] | None) -> dict[str, str]:
    if row is None:
        return {"right": "", "more": ""}
    auroc = number_words(row["auroc"], ".2f")
    return {
        "right": ranged(row, "right"),
        "more": f"fooled {share(row['fooling'])}" + (f", AUROC {auroc}" if auroc else ""),
    }
