"""Accuracy per question, on source images and after relations, beside the published.

The slides do not say how an answer was scored, and 15 of their 18 accuracies are no fraction of 182: any-hit is our
primary accuracy, ``exact`` stands beside it. F1, recall and MCC, which the contest names, are taken over indicators of
every label that occurs for a question, all cases together (micro average); its own code for them was not published.

``perturbed`` is the mean over the relations, as on the slides; ``difference`` hides flips that cancel out, which
:mod:`medtest.results.answer_flips` counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from medtest.results import statistics
from medtest.results.answer_rows import SOURCE, UNCHANGED
from medtest.results.published_answers import published
from medtest.vqa.judging import NOT_RELEVANT
from medtest.vqa.questions import by_name, in_slide_order

if TYPE_CHECKING:
    import pandas as pd

AVERAGE_18, AVERAGE_14 = "average of 18", "average of the 14 kept"

COLUMNS = (
    "item",
    "question",
    "cases",
    "source",
    "source_low",
    "source_high",
    "source_exact",
    "perturbed",
    "difference",
    "f1",
    "recall",
    "mcc",
    "published_source",
    "published_perturbed",
    "published_difference",
)
RELATION_COLUMNS = ("item", "relation", "cases", "right", "accuracy", "ci_low", "ci_high", "exact", "not_judged")


def relation_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy of every question × relation, source and ``unchanged`` among them.

    Intervals are Wilson's, images counted as cases.

    Args:
        frame: Rows of one system, as :func:`medtest.results.answer_rows.frame_of` gives them.

    Returns:
        A table with exactly :data:`RELATION_COLUMNS`; fractions.
    """
    import pandas as pd

    rows: list[dict[str, object]] = []
    for item in _items(frame):
        asked = frame[frame["item"] == item]
        for relation in dict.fromkeys(frame["relation"]):
            cases = asked[asked["relation"] == relation]
            judged = cases[cases["right"].notna()]
            if cases.empty:
                continue
            rate = float(judged["right"].mean()) if len(judged) else float("nan")
            images = judged["image"].nunique()
            low, high = (float(end) for end in statistics.wilson(np.nan_to_num(rate) * images, images))
            rows.append(
                {
                    "item": item,
                    "relation": relation,
                    "cases": len(judged),
                    "right": int(judged["right"].sum()),
                    "accuracy": round(rate, 6),
                    "ci_low": round(low, 6),
                    "ci_high": round(high, 6),
                    "exact": round(float(judged["exact"].mean()), 6),
                    "not_judged": len(cases) - len(judged),
                }
            )
    return pd.DataFrame(rows, columns=list(RELATION_COLUMNS))


def accuracy_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy per question in the slides' order, with averages, beside the published figures.

    Args:
        frame: Rows of one system, as :func:`medtest.results.answer_rows.frame_of` gives them.

    Returns:
        A table with exactly :data:`COLUMNS`; fractions. An average is there where all its questions are.
    """
    import pandas as pd

    by_relation = relation_table(frame)
    rows = [_row(item, frame, by_relation) for item in _items(frame)]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    every = [one.name for one in in_slide_order()]
    kept = [one.name for one in in_slide_order() if one.kept]
    means = [mean_row(table, name, names) for name, names in ((AVERAGE_18, every), (AVERAGE_14, kept))]
    means = [row for row in means if row is not None]
    return pd.concat([table, pd.DataFrame(means, columns=list(COLUMNS))], ignore_index=True) if means else table


def published_table() -> pd.DataFrame:
    """Return the published figures in the form of :func:`accuracy_table`, averages among them."""
    import pandas as pd

    rows = [
        {"item": row.question, "source": row.source, "perturbed": row.perturbed, "difference": row.difference}
        for row in published().values()
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    kept = [row.question for row in published().values() if row.kept]
    means = [mean_row(table, AVERAGE_18, list(published())), mean_row(table, AVERAGE_14, kept)]
    return pd.concat([table, pd.DataFrame([row for row in means if row is not None])], ignore_index=True)


def mean_row(table: pd.DataFrame, name: str, items: list[str]) -> dict[str, object] | None:
    """Return the plain mean over questions of a table's figures, or None where one of them has no row."""
    chosen = table[table["item"].isin(items)]
    if len(chosen) != len(items):
        return None
    figures = [column for column in COLUMNS if column not in ("item", "question", "cases", "source_low", "source_high")]
    means = {column: round(float(chosen[column].astype(float).mean(skipna=False)), 6) for column in figures}
    return {"item": name, "question": "", "cases": chosen["cases"].sum(min_count=1), **means}


def label_scores(said: list[frozenset[str]], true: list[frozenset[str]]) -> tuple[float, float, float]:
    """Return F1, recall and Matthews' correlation over indicators of all labels, all cases together.

    Args:
        said: Labels of each answer; empty for a refusal.
        true: Labels of each truth.

    Returns:
        Each in [0, 1], [0, 1] and [-1, 1]; NaN where it is not defined.
    """
    labels = frozenset().union(*said, *true)
    hit = sum(len(a & b) for a, b in zip(said, true, strict=True))
    false = sum(len(a - b) for a, b in zip(said, true, strict=True))
    missed = sum(len(b - a) for a, b in zip(said, true, strict=True))
    rest = len(labels) * len(said) - hit - false - missed
    f1 = 2 * hit / (2 * hit + false + missed) if hit + false + missed else float("nan")
    recall = hit / (hit + missed) if hit + missed else float("nan")
    product = float(hit + false) * (hit + missed) * (rest + false) * (rest + missed)
    mcc = (hit * rest - false * missed) / product**0.5 if product else float("nan")
    return f1, recall, mcc


def _items(frame: pd.DataFrame) -> list[str]:
    there = list(dict.fromkeys(frame["item"]))
    known = [one.name for one in in_slide_order() if one.name in set(there)]
    return [*known, *(name for name in there if name not in set(known))]


def _row(item: str, frame: pd.DataFrame, by_relation: pd.DataFrame) -> dict[str, object]:
    own = by_relation[by_relation["item"] == item].set_index("relation")
    perturbed = own.drop(index=[SOURCE, UNCHANGED], errors="ignore")["accuracy"].dropna()
    mean = float(perturbed.mean()) if len(perturbed) else float("nan")
    at_source = own.loc[SOURCE] if SOURCE in own.index else None
    source = float("nan") if at_source is None else float(own["accuracy"].to_dict()[SOURCE])
    chosen = (frame["item"] == item) & (frame["relation"] == SOURCE) & frame["right"].notna()
    judged = frame[chosen]
    scores = label_scores(*([_labels(text) for text in judged[column]] for column in ("said", "true")))
    known, beside = by_name(item), published().get(item)
    return {
        "item": item,
        "question": "" if known is None else known.text,
        "cases": len(judged),
        "source": source,
        "source_low": float("nan") if at_source is None else at_source["ci_low"],
        "source_high": float("nan") if at_source is None else at_source["ci_high"],
        "source_exact": float("nan") if at_source is None else at_source["exact"],
        "perturbed": round(mean, 6),
        "difference": round(source - mean, 6),
        **dict(zip(("f1", "recall", "mcc"), (round(score, 6) for score in scores), strict=True)),
        "published_source": float("nan") if beside is None else beside.source,
        "published_perturbed": float("nan") if beside is None else beside.perturbed,
        "published_difference": float("nan") if beside is None else beside.difference,
    }


def _labels(text: str) -> frozenset[str]:
    return frozenset([text] if text == NOT_RELEVANT else [part for part in text.split(";") if part])
