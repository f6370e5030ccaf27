"""Tables of the published study in ``report.html``: the user's rate with the published one below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtest.results.published.paper import ALL_CASES, PUBLISHED, SCORES, number
from medtest.results.published.reference import DATASET_SIZES

if TYPE_CHECKING:
    from medtest.report.pages.material import Material


def paper(material: Material) -> dict[str, Any]:
    """Return the study's tables as rows of own and published figures; empty if the suite is not of that study."""
    study = material.tables.paper
    if study is None:
        return {"paper": [], "paper_words": "", "paper_sets": [], "paper_scores": []}
    images = {row["dataset"]: row for row in study.coverage.to_dict("records")}
    beside = f"in small print the published rate of {study.model}" if study.model else "the report has no such network"
    words = f"EFR in percent against the expected mask; {beside}. Parameters are drawn once for each image; the report "
    words += "states ranges for blur and white balance only; the others are assumed."
    if study.model and "compact" in material.system:
        words += f" {material.system} is a small network of the same kind, not the published one."
    if study.partial:
        words += f" {study.partial[0].upper()}{study.partial[1:]}."
    tables = [
        {
            "title": study.title(threshold),
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
        for threshold, table in study.tables.items()
    ]
    sets = [f"{name} ({images[name]['images']:,} of {images[name][PUBLISHED]:,})" for name in DATASET_SIZES]
    return {"paper": tables, "paper_words": words, "paper_sets": sets, "paper_scores": list(SCORES.values())}
