"""GPT-4V's published accuracies on the 18 questions, for comparison with the user's.

From the MedTest slides, over 182 images of CLEF 2023 MEDVQA-GI; averages are computed from the questions, not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace

from medtest.language.questions.questions import find
from medtest.results.published.rows import published_rows

FILE = "medtest_vqa_gpt4v.csv"
IMAGES = 182
"""Number of images in the slides."""
SOURCE = "MedTest slides, RQ1: GPT-4V on 182 images of CLEF 2023 MEDVQA-GI"


@cache
def published() -> Mapping[str, SimpleNamespace]:
    """Return the 18 rows by question name, in the slides' order.

    Each has the accuracy on the originals (``source``), rounded to three decimals by its authors, the mean accuracy on
    the perturbed images (``perturbed``), their ``difference`` as printed, and ``kept``, True for the 14 questions that
    the authors keep.
    """
    rows: dict[str, SimpleNamespace] = {}
    names = {"original_accuracy": "source", "mean_perturbed_accuracy": "perturbed", "kept_after_deletion": "kept"}
    for row in published_rows(FILE, **names):
        question = find(row.question)
        if question is None:
            raise ValueError(f"{FILE}: {row.question!r} is none of the 18 questions")
        row.kept = row.kept == "True"
        rows[question.name] = row
    return rows
