"""Each label under attack, as the page of a classifier of several labels shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medtest.report.attacks.section import number, ranged, share
from medtest.report.charts.heat import rows_of
from medtest.results.cube.axes import ALL

if TYPE_CHECKING:
    import pandas as pd


def attack_labels(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return each label under each attack at its largest severity, a table for each threshold.

    Args:
        table: ``attack_labels.csv``.
    """
    rows = rows_of(table, dataset=ALL)
    if not rows:
        return []
    tops: dict[str, int] = {}
    for row in rows:
        tops[str(row["relation"])] = max(int(row["severity"]), tops.get(str(row["relation"]), 0))
    found = []
    for threshold in dict.fromkeys(float(row["threshold"]) for row in rows):
        own = [
            row for row in rows if row["threshold"] == threshold and int(row["severity"]) == tops[str(row["relation"])]
        ]
        relations = list(dict.fromkeys(str(row["relation"]) for row in own))
        labels = list(dict.fromkeys(str(row["label"]) for row in own))
        cells = {(str(row["label"]), str(row["relation"])): row for row in own}
        found.append(
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
    return found


def _label(row: Mapping[Any, Any] | None) -> dict[str, str]:
    if row is None:
        return {"right": "", "more": ""}
    auroc = number(row["auroc"], 2)
    return {
        "right": ranged(row, "right"),
        "more": f"fooled {share(row['fooling'])}" + (f", AUROC {auroc}" if auroc else ""),
    }
