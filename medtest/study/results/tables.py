"""Tables of a study of pairs, and those shared by both kinds: pure functions of ratings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from medtest.core.deferred import pd
from medtest.study.model import Item
from medtest.study.questions import AGREE, CATCHES, LEVELS, QUESTIONS, REJECT, Role
from medtest.study.results.agreement import mean_interval, randolph
from medtest.study.results.ratings import Rating, Ratings, agree_counts, is_expected, level_counts

OVERALL = "overall"
FLAGGED_COLUMNS = (
    "address",
    "dataset",
    "seed_id",
    "relation",
    "severity",
    "frame",
    "repeat",
    "followup_sha256",
    "reason",
    "raters",
    "diagnosis_mean",
    "realism_mean",
    "comments",
)
"""Columns of ``flagged.csv``; ``exclude:`` reads ``relation`` and ``followup_sha256``."""


def table_of(rows: Iterable[dict[str, Any]], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table of rows, with the given columns even if it is empty."""
    return pd.DataFrame(list(rows), columns=None if columns is None else list(columns))


def _round(value: float, digits: int = 4) -> float | None:
    return None if value != value else round(value, digits)


def _pools(ratings: Ratings) -> list[tuple[str, list[list[Rating]]]]:
    """Return the items' ratings by relation, then over all."""
    groups = list(ratings.by_item().values())
    pools = [(name, [g for g in groups if g[0].item.relation == name]) for name in ratings.relations]
    return [*((name, group_list) for name, group_list in pools if group_list), *([(OVERALL, groups)] if groups else [])]


def _levels(groups: Iterable[Sequence[Rating]], question: str) -> list[list[int]]:
    return [[level for r in group if (level := r.level(question)) is not None] for group in groups]


def means_table(ratings: Ratings) -> pd.DataFrame:
    """Return the mean of each question by relation and over all, with its bootstrap interval over seeds."""
    rows = []
    for name, groups in _pools(ratings):
        seeds = [group[0].item.source for group in groups]
        for question in QUESTIONS:
            counts = level_counts(_levels(groups, question.name))
            mean, low, high = mean_interval(counts, f"{name} {question.name}", seeds)
            agree = agree_counts(counts).sum(0)
            rows.append(
                {
                    "relation": name,
                    "question": question.name,
                    "items": len(groups),
                    "ratings": int(counts.sum()),
                    "mean": _round(mean),
                    "ci_low": _round(low),
                    "ci_high": _round(high),
                    "published": question.published if name == OVERALL else None,
                    "agree_percent": _round(100 * float(agree[1]) / max(1, int(counts.sum())), 2),
                    **{f"n{level}": int(counts[:, level - 1].sum()) for level in range(1, LEVELS + 1)},
                }
            )
    columns = ["relation", "question", "items", "ratings", "mean", "ci_low", "ci_high", "published", "agree_percent"]
    return table_of(rows, [*columns, *(f"n{level}" for level in range(1, LEVELS + 1))])


def agreement_table(ratings: Ratings) -> pd.DataFrame:
    """Return Randolph's κ by relation and over all, per question, on 5 levels and on agree/not."""
    rows = []
    for name, groups in _pools(ratings):
        seeds = [group[0].item.source for group in groups]
        for question in QUESTIONS:
            counts = level_counts(_levels(groups, question.name))
            for scale, table in (("5 levels", counts), ("agree or not", agree_counts(counts))):
                kappa = randolph(table, f"{name} {question.name} {scale}", seeds)
                rows.append(
                    {
                        "relation": name,
                        "question": question.name,
                        "scale": scale,
                        "kappa": _round(kappa.value),
                        "ci_low": _round(kappa.low),
                        "ci_high": _round(kappa.high),
                        "strength": kappa.words,
                        "items": kappa.items,
                        "raters": kappa.raters,
                        "left_out": kappa.left_out,
                    }
                )
    columns = ("relation", "question", "scale", "kappa", "ci_low", "ci_high", "strength", "items", "raters", "left_out")
    return table_of(rows, columns)


def returned(ratings: Ratings, annotator: int | None = None) -> list[tuple[Rating, Rating]]:
    """Return first and second showing of the repeated items, of one annotator or of all."""
    ratings_of = [r for r in ratings.main if annotator is None or r.annotator == annotator]
    first = {(r.annotator, r.item.id): r for r in ratings_of if r.showing == 1}
    pairs = [(first.get((r.annotator, r.item.id)), r) for r in ratings_of if r.showing == 2]
    return [(before, after) for before, after in pairs if before is not None]


def self_agreement_table(ratings: Ratings) -> pd.DataFrame:
    """Return each annotator's self-agreement on the repeated items; the last rows pool all annotators."""
    rows = []
    for annotator in [*ratings.annotators, None]:
        pairs = returned(ratings, annotator)
        for question in QUESTIONS:
            both = [
                (a, b)
                for before, after in pairs
                if (a := before.level(question.name)) is not None and (b := after.level(question.name)) is not None
            ]
            counts = level_counts([[a, b] for a, b in both])
            apart = np.array([abs(a - b) for a, b in both])
            any_pairs = bool(both)
            rows.append(
                {
                    "annotator": "all" if annotator is None else annotator,
                    "question": question.name,
                    "items": len(both),
                    "same_percent": _round(100 * float((apart == 0).mean()), 2) if any_pairs else None,
                    "within_one_percent": _round(100 * float((apart <= 1).mean()), 2) if any_pairs else None,
                    "mean_distance": _round(float(apart.mean())) if any_pairs else None,
                    "kappa_levels": _round(randolph(counts).value),
                    "kappa_agree": _round(randolph(agree_counts(counts)).value),
                }
            )
    columns = ("annotator", "question", "items", "same_percent", "within_one_percent", "mean_distance")
    return table_of(rows, [*columns, "kappa_levels", "kappa_agree"])


def catches_table(ratings: Ratings) -> pd.DataFrame:
    """Return the number of hidden catch items each annotator passed."""
    rows = []
    for annotator in ratings.annotators:
        for role in CATCHES:
            shown = [r for r in ratings.main if r.annotator == annotator and r.item.role is role]
            if shown:
                passed = sum(is_expected(r.item, r.answer) for r in shown)
                rows.append(
                    {
                        "annotator": annotator,
                        "catch": role.value,
                        "shown": len(shown),
                        "passed": passed,
                        "passed_percent": _round(100 * passed / len(shown), 2),
                    }
                )
    return table_of(rows, ("annotator", "catch", "shown", "passed", "passed_percent"))


def training_table(ratings: Ratings) -> pd.DataFrame:
    """Return the number of training items each annotator answered as expected at the first try, and in the end."""
    rows = []
    for annotator in ratings.annotators:
        own = [r for r in ratings.training if r.annotator == annotator]
        if own:
            rows.append(
                {
                    "annotator": annotator,
                    "items": len(own),
                    "expected_at_first": sum(is_expected(r.item, r.first) for r in own),
                    "expected_at_last": sum(is_expected(r.item, r.answer) for r in own),
                }
            )
    return table_of(rows, ("annotator", "items", "expected_at_first", "expected_at_last"))


def times_table(ratings: Ratings) -> pd.DataFrame:
    """Return the time an item was in view before its first answer: by annotator, by relation, and in total."""
    groups: list[tuple[str, str, list[Rating], int | None]] = []
    for annotator in ratings.annotators:
        own = [r for r in ratings.main if r.annotator == annotator]
        groups.append(("annotator", str(annotator), own, ratings.planned[annotator]))
    for name in ratings.relations:
        groups.append(("relation", name, [r for r in ratings.judged if r.item.relation == name], None))
    groups.append(("all", OVERALL, list(ratings.main), sum(ratings.planned.values())))
    rows = []
    for kind, name, group, planned in groups:
        seconds = np.array([r.first.elapsed_ms for r in group], dtype=np.float64) / 1000
        low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75]) if seconds.size else (np.nan,) * 3
        rows.append(
            {
                "by": kind,
                "name": name,
                "answered": len(group),
                "planned": planned,
                "changed": sum(r.changes > 0 for r in group),
                "median_seconds": _round(float(middle), 2),
                "q25_seconds": _round(float(low), 2),
                "q75_seconds": _round(float(high), 2),
                "total_minutes": round(float(seconds.sum()) / 60, 2),
            }
        )
    columns = ("by", "name", "answered", "planned", "changed", "median_seconds", "q25_seconds", "q75_seconds")
    table = table_of(rows, [*columns, "total_minutes"])
    table["planned"] = table["planned"].astype("Int64")  # integers, empty for relations
    return table


def disagreements_table(ratings: Ratings) -> pd.DataFrame:
    """Return the items on which annotators disagree, widest spread first.

    Two answers to a question disagree if they differ by two levels or more and lie on both sides of agreement.
    """
    rows = []
    for group in ratings.by_item().values():
        levels = {q.name: sorted(sorted_levels) for q in QUESTIONS if (sorted_levels := _levels([group], q.name)[0])}
        split = {
            name: sorted_levels[-1] - sorted_levels[0]
            for name, sorted_levels in levels.items()
            if sorted_levels[-1] - sorted_levels[0] >= 2 and sorted_levels[0] < AGREE <= sorted_levels[-1]
        }
        if split:
            item = group[0].item
            rows.append(
                {
                    "address": item.address,
                    "relation": item.relation,
                    "severity": item.severity,
                    "on": " ".join(split),
                    "spread": max(split.values()),
                    **{name: " ".join(map(str, sorted_levels)) for name, sorted_levels in levels.items()},
                    "comments": _comments(group),
                }
            )
    rows.sort(key=lambda row: -int(str(row["spread"])))
    columns = ("address", "relation", "severity", "on", "spread", *(q.name for q in QUESTIONS), "comments")
    return table_of(rows, columns)


def flagged_table(ratings: Ratings) -> pd.DataFrame:
    """Return the follow-ups rejected (1 or 2) by at least half of their raters, with the reason.

    ``unrealistic``: they could not occur; ``diagnosis``: the diagnosis is not kept, so that the expected answer is
    wrong.
    """
    rows = []
    for group in ratings.by_item().values():
        reasons = [
            word
            for word, question in (("unrealistic", "realism"), ("diagnosis", "diagnosis"))
            if (levels := _levels([group], question)[0]) and 2 * sum(v <= REJECT for v in levels) >= len(levels)
        ]
        if reasons:
            rows.append(_flag(group, " ".join(reasons)))
    return table_of(rows, FLAGGED_COLUMNS)


def _flag(group: Sequence[Rating], reason: str) -> dict[str, Any]:
    item: Item = group[0].item
    means = {f"{q.name}_mean": _round(float(np.mean(_levels([group], q.name)[0])), 3) for q in QUESTIONS}
    return {
        "address": item.address,
        **{name: getattr(item, name) for name in FLAGGED_COLUMNS[1:8]},
        "reason": reason,
        "raters": len(group),
        **means,
        "comments": _comments(group),
    }


def _comments(group: Sequence[Rating]) -> str:
    return " | ".join(f"{r.annotator}: {' '.join(r.answer.comment.split())}" for r in group if r.answer.comment)


def answers_table(ratings: Ratings) -> pd.DataFrame:
    """Return every valid answer, one row each, with the role of the item."""
    rows = [
        {
            "annotator": r.annotator,
            "phase": r.answer.phase,
            "position": r.position,
            "showing": r.showing,
            "role": r.item.role.value,
            "address": r.item.address,
            "relation": r.item.relation,
            "severity": r.item.severity,
            "diagnosis": r.answer.diagnosis,
            "realism": r.answer.realism,
            "marks": None if r.answer.marks is None else " ".join(r.answer.marks),
            "comment": r.answer.comment,
            "seconds": round(r.first.elapsed_ms / 1000, 3),
            "changes": r.changes,
            "saved_at": r.answer.saved_at,
            "followup_sha256": r.item.followup_sha256,
        }
        for r in (*ratings.training, *ratings.main)
    ]
    columns = ("annotator", "phase", "position", "showing", "role", "address", "relation", "severity", "diagnosis")
    rest = ("realism", "marks", "comment", "seconds", "changes", "saved_at", "followup_sha256")
    return table_of(rows, [*columns, *rest])


def second_look(ratings: Ratings) -> list[Item]:
    """Return the flagged or disputed items for a review, in the order of the study."""
    addresses = {*flagged_table(ratings)["address"], *disagreements_table(ratings)["address"]}
    return [item for item in ratings.items if item.address in addresses and item.role is Role.ITEM]


def pair_tables(ratings: Ratings) -> dict[str, pd.DataFrame]:
    """Return every table of a study of pairs by file name."""
    return {
        "means.csv": means_table(ratings),
        "agreement.csv": agreement_table(ratings),
        "self_agreement.csv": self_agreement_table(ratings),
        "disagreements.csv": disagreements_table(ratings),
        "flagged.csv": flagged_table(ratings),
        **shared_tables(ratings),
    }


def shared_tables(ratings: Ratings) -> dict[str, pd.DataFrame]:
    """Return the tables of both kinds of studies."""
    return {
        "catches.csv": catches_table(ratings),
        "training.csv": training_table(ratings),
        "times.csv": times_table(ratings),
        "answers.csv": answers_table(ratings),
    }
