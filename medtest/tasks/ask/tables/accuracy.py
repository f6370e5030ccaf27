"""Accuracy by question, on source images and under relations, with the published figures.

The slides do not say how an answer was scored, and 15 of their 18 accuracies are not a multiple of 1/182: any-hit is
our primary accuracy, with ``exact`` in addition. F1, recall and MCC, which the contest names, are computed over
indicators of every label that occurs for a question, all cases together (micro average); the contest's code was not
published.

``perturbed`` is the mean over the relations, as on the slides; ``difference`` hides flips that cancel out, which
:mod:`medtest.tasks.ask.tables.flips` counts. Intervals of sources and of published accuracies (182 images) are
Wilson's; those of ``perturbed``, ``difference`` and averages are bootstraps over images, with all questions and
relations of an image together. If fewer than ten images are right, or fewer than ten wrong, ``perturbed`` has Wilson's
interval with every image counted once, and ``difference`` combines the two as Newcombe does, which is conservative;
averages of fewer than ten images have no interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd
from medtest.language.questions.questions import by_name, in_slide_order
from medtest.language.questions.wording import NOT_RELEVANT
from medtest.results.columns import columns_in
from medtest.results.cube.axes import Floats
from medtest.results.cube.intervals import FEW_CLUSTERS, joined, percentile_interval, wilson, wilson_of_rate
from medtest.results.cube.rates import decimals
from medtest.results.published.published_answers import IMAGES, published
from medtest.tasks.ask.tables.cells import Questions, in_order
from medtest.tasks.ask.tables.rows import SOURCE, UNCHANGED

_ENDS = ("_low", "_high")
AVERAGE_18, AVERAGE_14 = "average of 18", "average of the 14 kept"

COLUMNS = columns_in(__file__, "answer_accuracy")
RELATION_COLUMNS = columns_in(__file__, "answer_accuracy_by_relation")


def relation_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy of every question × relation, including the source and ``unchanged``.

    Intervals are Wilson's, with images counted as cases.

    Args:
        frame: Rows of one system, with :data:`medtest.tasks.ask.tables.rows.COLUMNS`.

    Returns:
        A table with exactly :data:`RELATION_COLUMNS`; fractions.
    """
    if frame.empty:
        return pd.DataFrame(columns=list(RELATION_COLUMNS))
    place = Questions.of(frame, "vqa accuracy")
    right, exact = (frame[name].to_numpy(dtype=np.float64) for name in ("right", "exact"))
    judged = ~np.isnan(right)
    accuracy = place.rates(np.where(judged, right, 0.0), judged, pools=False)
    total, cases = place.counts(np.ones(len(frame))), place.counts(judged)
    columns = {
        "cases": cases,
        "right": accuracy.part[0].astype(np.int64),
        "accuracy": decimals(accuracy.rate[0]),
        "ci_low": decimals(accuracy.low[0]),
        "ci_high": decimals(accuracy.high[0]),
        "exact": place.means(exact, judged & ~np.isnan(exact)),
        "not_judged": total - cases,
    }
    keep = total > 0
    keep[-1], keep[:, -1] = False, False
    return place.table(columns, keep, RELATION_COLUMNS)


def accuracy_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy by question in the slides' order, with averages and published figures.

    Args:
        frame: Rows of one system, with :data:`medtest.tasks.ask.tables.rows.COLUMNS`.

    Returns:
        A table with exactly :data:`COLUMNS`; fractions. An average is included if all its questions are present.
    """
    by_relation = relation_table(frame)
    resampled = Resampled.of(frame)
    rows = [_row(item, frame, by_relation) | resampled.ends_of(item) for item in in_order(frame["item"])]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    every = [question.name for question in in_slide_order()]
    kept_names = [question.name for question in in_slide_order() if question.kept]
    means = [mean_row(table, name, names) for name, names in ((AVERAGE_18, every), (AVERAGE_14, kept_names))]
    items_of = {AVERAGE_18: every, AVERAGE_14: kept_names}
    means = [row | resampled.ends_of_mean(items_of[str(row["item"])]) for row in means if row is not None]
    return pd.concat([table, pd.DataFrame(means, columns=list(COLUMNS))], ignore_index=True) if means else table


def mean_row(table: pd.DataFrame, name: str, items: list[str]) -> dict[str, object] | None:
    """Return the plain mean over questions of a table's figures, or None if one of them has no row."""
    selected = table[table["item"].isin(items)]
    if len(selected) != len(items):
        return None
    figures = [name for name in COLUMNS if name not in ("item", "question", "cases") and not name.endswith(_ENDS)]
    means = {column: round(float(selected[column].astype(float).mean(skipna=False)), 6) for column in figures}
    return {"item": name, "question": "", "cases": selected["cases"].sum(min_count=1), **means}


@dataclass(frozen=True, kw_only=True, eq=False)
class Resampled:
    """Accuracies on resampled images.

    Attributes:
        items: The questions.
        source: float64 replicates × questions, accuracy on sources.
        perturbed: float64 replicates × questions, mean over the relations.
        images: float64 3 × questions: images with a judged follow-up, with a right one, with a wrong one.
        at_source: The same for sources.
        means: float64 2 × questions: accuracy on sources, and mean over the relations.
    """

    items: tuple[str, ...]
    source: Floats
    perturbed: Floats
    images: Floats
    at_source: Floats
    means: Floats

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Resampled:
        """Resample the images of rows; every question and relation of an image is drawn together."""
        judged = frame[frame["right"].notna() & (frame["relation"] != UNCHANGED)]
        place = Questions.of(judged, "vqa accuracy", items=in_order(frame["item"]))
        first = np.array([name == SOURCE for name in place.relations], dtype=bool)
        right = judged["right"].to_numpy(dtype=np.float64)
        sums = place.sums(right, np.ones(len(right)))
        source, perturbed = _accuracies(place.drawn(sums)[0], first)
        at_source, images = (_images(sums[0][:, :, mask].sum(2)) for mask in (first, ~first))
        means = np.concatenate(_accuracies(sums[0].sum(0)[None], first))
        return cls(
            items=place.items, source=source, perturbed=perturbed, images=images, at_source=at_source, means=means
        )

    def ends_of(self, item: str) -> dict[str, object]:
        """Return the ends of the intervals of one question's ``perturbed`` and ``difference``."""
        column = self.items.index(item)
        source, perturbed = (float(mean) for mean in self.means[:, column])
        few = min(*self.images[1:, column], *self.at_source[1:, column]) < FEW_CLUSTERS
        if not few:
            drawn = percentile_interval(self.perturbed[:, column])
            fall = percentile_interval(self.source[:, column] - self.perturbed[:, column])
            return _ends("perturbed", drawn) | _ends("difference", fall)
        source_ends = wilson_of_rate(source, self.at_source[0, column])
        perturbed_ends = wilson_of_rate(perturbed, self.images[0, column])
        return _ends("perturbed", perturbed_ends) | _ends(
            "difference", joined(source, source_ends, perturbed, perturbed_ends)
        )

    def ends_of_mean(self, items: list[str]) -> dict[str, object]:
        """Return the ends of the intervals of an average over questions; empty for fewer than ten images."""
        if self.images[0].max(initial=0.0) < FEW_CLUSTERS:
            return {}
        columns = [self.items.index(item) for item in items]
        source, perturbed = self.source[:, columns].mean(1), self.perturbed[:, columns].mean(1)
        intervals: dict[str, object] = {}
        for name, draws in (("source", source), ("perturbed", perturbed), ("difference", source - perturbed)):
            intervals |= _ends(name, percentile_interval(draws))
        return intervals


def _images(sums: Floats) -> Floats:
    """Return the number of images with a judged answer, a right one and a wrong one, 3 × questions.

    Args:
        sums: images × 2 (right, cases) × questions.
    """
    right, cases = sums[:, 0], sums[:, 1]
    return np.stack([(cases > 0).sum(0), (right > 0).sum(0), (right < cases).sum(0)]).astype(np.float64)


def _accuracies(sums: Floats, first: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return accuracy on sources and the mean over relations; N × questions each.

    Args:
        sums: N × 2 (right, cases) × relations × questions.
        first: Mask of the relation that is the source.
    """
    right, cases = np.moveaxis(sums, (1, 2), (0, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        # contiguous relations: numpy adds in memory order, which can affect the last digit after rounding
        rates = np.ascontiguousarray(right[..., ~first] / cases[..., ~first])
        valid = ~np.isnan(rates)
        mean = np.where(valid, rates, 0.0).sum(-1) / valid.sum(-1)
        return right[..., first].sum(-1) / cases[..., first].sum(-1), mean


def _ends(name: str, ends: tuple[object, object]) -> dict[str, object]:
    low, high = ends
    return {f"{name}_low": round(float(low), 6), f"{name}_high": round(float(high), 6)}  # type: ignore[arg-type]


def label_scores(answered: list[frozenset[str]], true: list[frozenset[str]]) -> tuple[float, float, float]:
    """Return F1, recall and Matthews' correlation over indicators of all labels, all cases pooled.

    Args:
        answered: Labels of each answer; empty for a refusal.
        true: Labels of each truth.

    Returns:
        Each in [0, 1], [0, 1] and [-1, 1]; NaN if undefined.
    """
    labels = frozenset().union(*answered, *true)
    hit = sum(len(a & b) for a, b in zip(answered, true, strict=True))
    false = sum(len(a - b) for a, b in zip(answered, true, strict=True))
    missed = sum(len(b - a) for a, b in zip(answered, true, strict=True))
    true_negatives = len(labels) * len(answered) - hit - false - missed
    f1 = 2 * hit / (2 * hit + false + missed) if hit + false + missed else float("nan")
    recall = hit / (hit + missed) if hit + missed else float("nan")
    product = float(hit + false) * (hit + missed) * (true_negatives + false) * (true_negatives + missed)
    mcc = (hit * true_negatives - false * missed) / product**0.5 if product else float("nan")
    return f1, recall, mcc


def _row(item: str, frame: pd.DataFrame, by_relation: pd.DataFrame) -> dict[str, object]:
    item_rows = by_relation[by_relation["item"] == item].set_index("relation")
    perturbed = item_rows.drop(index=[SOURCE, UNCHANGED], errors="ignore")["accuracy"].dropna()
    mean = float(perturbed.mean()) if len(perturbed) else float("nan")
    at_source = item_rows.loc[SOURCE] if SOURCE in item_rows.index else None
    source = float("nan") if at_source is None else float(item_rows["accuracy"].to_dict()[SOURCE])
    at_source_rows = (frame["item"] == item) & (frame["relation"] == SOURCE) & frame["right"].notna()
    cases = frame[at_source_rows]
    scores = label_scores(*([_labels(text) for text in cases[column]] for column in ("said", "true")))
    question, beside = by_name(item), published().get(item)
    return {
        "item": item,
        "question": "" if question is None else question.text,
        "cases": len(cases),
        "source": source,
        "source_low": float("nan") if at_source is None else at_source["ci_low"],
        "source_high": float("nan") if at_source is None else at_source["ci_high"],
        "source_exact": float("nan") if at_source is None else at_source["exact"],
        "perturbed": round(mean, 6),
        "difference": round(source - mean, 6),
        **dict(zip(("f1", "recall", "mcc"), (round(score, 6) for score in scores), strict=True)),
        **_published(beside),
    }


def _published(beside: SimpleNamespace | None) -> dict[str, object]:
    """Return the published figures of a question, with Wilson's intervals for the number of images in the slides."""
    if beside is None:
        return {name: float("nan") for name in COLUMNS if name.startswith("published_")}
    return {
        "published_source": beside.source,
        **_ends("published_source", wilson(beside.source * IMAGES, IMAGES)),
        "published_perturbed": beside.perturbed,
        **_ends("published_perturbed", wilson(beside.perturbed * IMAGES, IMAGES)),
        "published_difference": beside.difference,
    }


def _labels(text: str) -> frozenset[str]:
    return frozenset([text] if text == NOT_RELEVANT else [part for part in text.split(";") if part])
