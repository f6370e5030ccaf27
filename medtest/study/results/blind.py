"""Tables of a blind study: how often annotators told real frames from made ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from medtest.core.deferred import pd
from medtest.results.cube.intervals import FEW_CLUSTERS, wilson_ends
from medtest.study.questions import MADE, PUBLISHED_ACCURACY, REAL
from medtest.study.results.agreement import mean_interval, randolph
from medtest.study.results.ratings import Rating, Ratings, is_expected
from medtest.study.results.tables import OVERALL, returned, shared_tables, table_of

COLUMNS = (
    "by",
    "name",
    "items",
    "seeds",
    "answers",
    "correct",
    "percent",
    "ci_low",
    "ci_high",
    "wilson_low",
    "wilson_high",
    "real_recognised_percent",
    "made_recognised_percent",
    "balanced_percent",
    "published_percent",
)
"""Columns of ``accuracy.csv``. ``ci_low`` and ``ci_high`` resample seeds (and videos of real pictures)."""


def accuracy_table(ratings: Ratings) -> pd.DataFrame:
    """Return the share of right answers over all, by relation and by annotator.

    Several annotators judge one frame, and several frames come from one seed or video, so that answers are not
    independent: the interval is a bootstrap over seeds. With few seeds it would be too narrow; the interval is then
    Wilson's with every seed counted as one case. Wilson's interval of the answers is in the same row.
    """
    groups = [rating for group in ratings.by_item().values() for rating in group]
    rows = [_row("relation", name, [r for r in groups if r.item.relation == name]) for name in ratings.relations]
    rows += [_row("annotator", str(n), [r for r in groups if r.annotator == n]) for n in ratings.annotators]
    rows.append(_row("all", OVERALL, groups, published=PUBLISHED_ACCURACY))
    return table_of([row for row in rows if row["answers"]], COLUMNS)


def _row(by: str, name: str, answers: Sequence[Rating], published: float | None = None) -> dict[str, Any]:
    right = [is_expected(rating.item, rating.answer) for rating in answers]
    seeds = [rating.item.source for rating in answers]
    wilson = wilson_ends(sum(right), len(right)) if right else (np.nan, np.nan)
    sides = [_percent([ok for ok, r in zip(right, answers, strict=True) if _is(r, side)]) for side in (REAL, MADE)]
    return {
        "by": by,
        "name": name,
        "items": len({rating.item.id for rating in answers}),
        "seeds": len(set(seeds)),
        "answers": len(right),
        "correct": sum(right),
        "percent": _percent(right),
        **dict(zip(("ci_low", "ci_high"), _clustered(f"{by} {name}", right, seeds), strict=True)),
        **{f"wilson_{end}": _rounded(100 * value) for end, value in zip(("low", "high"), wilson, strict=True)},
        "real_recognised_percent": sides[0],
        "made_recognised_percent": sides[1],
        "balanced_percent": None if None in sides else round(sum(filter(None, sides)) / 2, 2),
        "published_percent": published,
    }


def _is(rating: Rating, side: str) -> bool:
    return list(rating.item.expected.get("marks", ())) == [side]


def _clustered(name: str, right: Sequence[bool], seeds: Sequence[str]) -> tuple[float | None, float | None]:
    """Return the interval in percent over seeds."""
    if not right:
        return None, None
    with_right = {seed for seed, ok in zip(seeds, right, strict=True) if ok}
    with_wrong = {seed for seed, ok in zip(seeds, right, strict=True) if not ok}
    if min(len(with_right), len(with_wrong)) < FEW_CLUSTERS:
        count = len({*seeds})
        low, high = wilson_ends(count * sum(right) / len(right), count)
    else:
        counts = np.array([[not ok, ok] for ok in right], np.int64)
        _, low, high = (value - 1 for value in mean_interval(counts, name, seeds))
    return _rounded(100 * low), _rounded(100 * high)


def _percent(right: Sequence[bool]) -> float | None:
    return round(100 * sum(right) / len(right), 2) if right else None


def _rounded(value: float) -> float | None:
    return None if value != value else round(value, 2)


def frames_table(ratings: Ratings) -> pd.DataFrame:
    """Return one row per frame: what it is, and how many took it for real; made frames that fooled most come first."""
    rows = []
    for group in ratings.by_item().values():
        item = group[0].item
        as_real = sum(REAL in (rating.answer.marks or ()) for rating in group)
        rows.append(
            {
                "address": item.address,
                "relation": item.relation,
                "severity": item.severity,
                "is": next(iter(item.expected.get("marks", ())), ""),
                "raters": len(group),
                "taken_for_real": as_real,
                "taken_for_real_percent": round(100 * as_real / len(group), 2),
                "followup_sha256": item.followup_sha256,
            }
        )
    rows.sort(key=lambda row: (row["is"] != MADE, -float(str(row["taken_for_real_percent"]))))
    columns = ("address", "relation", "severity", "is", "raters", "taken_for_real", "taken_for_real_percent")
    return table_of(rows, (*columns, "followup_sha256"))


def agreement_table(ratings: Ratings) -> pd.DataFrame:
    """Return Randolph's κ of real or made over all frames, and the share of repeated frames answered alike."""
    groups = list(ratings.by_item().values())
    counts = np.array([[sum(_said(r, side) for r in group) for side in (REAL, MADE)] for group in groups], np.int64)
    kappa = randolph(counts.reshape(-1, 2), OVERALL, [group[0].item.source for group in groups])
    again = [set(a.answer.marks or ()) == set(b.answer.marks or ()) for a, b in returned(ratings)]
    row = {
        "kappa": _rounded(kappa.value),
        "ci_low": _rounded(kappa.low),
        "ci_high": _rounded(kappa.high),
        "strength": kappa.words,
        "items": kappa.items,
        "raters": kappa.raters,
        "left_out": kappa.left_out,
        "repeated": len(again),
        "same_percent": _percent(again),
    }
    return table_of([row])


def _said(rating: Rating, side: str) -> bool:
    return side in (rating.answer.marks or ())


def blind_tables(ratings: Ratings) -> dict[str, pd.DataFrame]:
    """Return every table of a blind study by file name."""
    return {
        "accuracy.csv": accuracy_table(ratings),
        "taken_for_real.csv": frames_table(ratings),
        "agreement.csv": agreement_table(ratings),
        **shared_tables(ratings),
    }
