"""The report's own tables in ``report.html``: the user's rate and, below it, the published one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtest.results.published.paper import ALL_CASES, PUBLISHED, SCORES, number
from medtest.results.published.reference import DATASET_SIZES

if TYPE_CHECKING:
    from medtest.report.pages.material import Material


def paper(material: Material) -> dict[str, Any]:
    """Return each of the report's tables as rows of pairs, own and published; empty where the study is another."""
    found = material.tables.paper
    if found is None:
        return {"paper": [], "paper_words": "", "paper_sets": [], "paper_scores": []}
    images = {row["dataset"]: row for row in found.coverage.to_dict("records")}
    beside = f"in small the published rate of {found.model}" if found.model else "the report has no such network"
    words = f"EFR in percent against the expected mask; {beside}. Parameters are drawn once for each image; the report "
    words += "states ranges for blur and white balance alone, the others are assumed."
    if found.model and "compact" in material.system:
        words += f" {material.system} is a small network of the same kind, not the published one."
    if found.partial:
        words += f" {found.partial[0].upper()}{found.partial[1:]}."
    tables = [
        {
            "title": found.title(threshold),
            "rows": [
                {
                    "name": row["artefact"],
                    "sum": row["artefact"] == ALL_CASES,
                    "cells": [
                        {"own": number(row[f"{name} {score}"]), "published": number(row[f"{name} {score} {PUBLISHED}"])}
                        for name in DATASET_SIZES
                        for score in SCORES.values()
                    ],
                }
                for row in table.to_dict("records")
            ],
        }
        for threshold, table in found.tables.items()
    ]
    sets = [f"{name} ({images[name]['images']:,} of {images[name][PUBLISHED]:,})" for name in DATASET_SIZES]
    return {"paper": tables, "paper_words": words, "paper_sets": sets, "paper_scores": list(SCORES.values())}
