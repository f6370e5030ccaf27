"""GPT-4V's published accuracies on the 18 questions, for comparison with the user's.

From the MedTest slides, over 182 images of CLEF 2023 MEDVQA-GI; averages are computed from the questions, not stored.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from medtest.core.files.paths import package_folder
from medtest.language.questions.questions import find

FILE = package_folder() / "results" / "published" / "medtest_vqa_gpt4v.csv"
IMAGES = 182
"""Number of images in the slides."""
SOURCE = "MedTest slides, RQ1: GPT-4V on 182 images of CLEF 2023 MEDVQA-GI"


@dataclass(frozen=True, kw_only=True)
class PublishedAccuracy:
    """One row of the table in the slides.

    Attributes:
        question: Name of the question.
        source: Accuracy on the originals, rounded to three decimals by its authors.
        perturbed: Mean accuracy on the perturbed images.
        difference: ``source - perturbed`` as printed.
        kept: True for the 14 questions that the authors keep.
    """

    question: str
    source: float
    perturbed: float
    difference: float
    kept: bool


@cache
def published() -> Mapping[str, PublishedAccuracy]:
    """Return the 18 rows by question name, in the slides' order."""
    rows: dict[str, PublishedAccuracy] = {}
    with FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            question = find(row["question"])
            if question is None:
                raise ValueError(f"{FILE.name}: {row['question']!r} is none of the 18 questions")
            rows[question.name] = PublishedAccuracy(
                question=question.name,
                source=float(row["original_accuracy"]),
                perturbed=float(row["mean_perturbed_accuracy"]),
                difference=float(row["difference"]),
                kept=row["kept_after_deletion"] == "True",
            )
    return rows
