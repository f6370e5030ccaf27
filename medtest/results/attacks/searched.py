"""Results of searches: ``tables/search.csv``, ``search_curve.csv`` and ``search_relations.csv``.

A follow-up with several questions fails if the answer to any of them violates the primary criterion. The mildest
failing follow-up is the weakest that was tried and failed, a level or a query; failing need not be monotone, so that a
weaker one may fail that was not tried. Of the share of source cases still passing, a failing source falls at scale 0,
and one that never fails is censored at the strongest follow-up with a verdict
(:mod:`medtest.results.attacks.smallest`); searches without any verdict are apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd
from medtest.core.oracles.criteria import compared_columns, components
from medtest.core.records import ADDRESS
from medtest.relations.calibration.searching.bisection import bracket
from medtest.relations.calibration.searching.queries import MILDEST, RANDOM, REPEATED, WORST
from medtest.results.attacks.smallest import flip_curve, median_of
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, Axes, axes
from medtest.results.records.records_io import SEARCH, Records
from medtest.results.records.status import status
from medtest.suite.model import Criterion

COLUMNS = columns_in(__file__, "search")
CURVE_COLUMNS = columns_in(__file__, "search_curve")
RELATION_COLUMNS = columns_in(__file__, "search_relations")
FAILS, PASSES, SOURCE_FAILS, SKIPPED = "fails", "passes", "source fails", "skipped"
"""States of a search."""
DIFFERS, STRONGER_PASSES, AT_MILDEST = "answers differ", "a stronger picture passes", "fails at the mildest level"
AMBIGUOUS = (DIFFERS, STRONGER_PASSES)
"""Notes of a search whose threshold is not one number."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MildestPair:
    """Two follow-ups to be shown side by side.

    Attributes:
        relation: The relation.
        search: ``mildest``: the mildest failing picture and its passing neighbour; ``worst``: the worst picture, and
            the worst of the random search.
        records: Their records; None where there is none.
    """

    relation: str
    search: str
    records: tuple[Mapping[str, Any], Mapping[str, Any] | None]


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchTables:
    """Tables of searches, and pictures to show; empty without a search.

    Attributes:
        named: Tables by file name.
        pairs: For each relation the pictures to show.
    """

    named: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    pairs: tuple[MildestPair, ...] = ()


@dataclass(frozen=True, eq=False)
class _Point:
    """One follow-up of a search."""

    scale: float
    fails: bool | None
    search: str
    score: float
    row: int


class _Points:
    """Follow-ups of all searches: levels and queries, judged by one criterion."""

    def __init__(self, records: Records, queries: pd.DataFrame, primary: Criterion) -> None:
        relations = set(queries["relation"].astype(str))
        levels = records.followups.loc[records.followups["relation"].astype(str).isin(relations).to_numpy(dtype=bool)]
        frame = pd.concat([levels.astype(object), queries.astype(object)], ignore_index=True)
        self.records = Records(followups=frame, sources=records.sources)
        self.rows: list[dict[str, Any]] = frame.to_dict("records")  # type: ignore[assignment]
        judged = status(self.records, primary)
        self._case, self._violated = judged.case, judged.violated
        self.source_failed = judged.source_failed & ~self.records.source_broken
        names = [compared_columns(name, primary.against)[0] for name in components(primary.score)]
        scores = np.stack([self.records.floats(name) for name in names])
        counts = np.isfinite(scores).sum(0)
        self._score = np.where(counts > 0, np.nansum(scores, 0) / np.maximum(counts, 1), np.nan)

    def searches(self) -> Iterator[tuple[tuple[Any, ...], list[int]]]:
        """Yield data set, seed, relation and repeat of each search, with the rows of its cases."""
        keys: dict[tuple[Any, ...], list[int]] = {}
        for number, row in enumerate(self.rows):
            key = (str(row["dataset"]), str(row["seed_id"]), str(row["relation"]), int(row["repeat"]))
            keys.setdefault(key, []).append(number)
        yield from keys.items()

    def points(self, rows: Sequence[int]) -> list[_Point]:
        """Return the follow-ups of one search, each over all its questions."""
        followups: dict[tuple[int, int], list[int]] = {}
        for number in rows:
            row = self.rows[number]
            followups.setdefault((int(row["severity"]), int(row["frame"])), []).append(number)
        return [self._point(numbers) for numbers in followups.values()]

    def _point(self, numbers: Sequence[int]) -> _Point:
        failing = [number for number in numbers if self._violated[number]]
        judged = [number for number in numbers if self._case[number]]
        shown = next(iter((*failing, *judged, *numbers)))
        scale, search = self.rows[shown]["scale"], self.rows[shown][SEARCH]
        scores = [float(self._score[number]) for number in judged]
        return _Point(
            scale=float("nan") if scale is None else float(scale),
            fails=bool(failing) if judged else None,
            search=search if isinstance(search, str) else "",
            score=float(np.mean(scores)) if scores else float("nan"),
            row=shown,
        )


def search_tables(records: Records, relations: Sequence[str], primary: Criterion) -> SearchTables:
    """Return the tables of searches; empty if the records have no queries.

    Args:
        records: Records of one system.
        relations: Relation ids of the suite, in order.
        primary: Primary criterion of the suite.
    """
    queries = records.searched
    if queries is None or queries.empty:
        return SearchTables()
    points = _Points(records, queries, primary)
    place = axes(points.records, relations)
    rows = [_one(points, key, cases) for key, cases in points.searches()]
    order = {name: number for number, name in enumerate(relations)}
    rows.sort(key=lambda row: order.get(row["relation"], len(order)))
    summary, curves = _by_relation(rows, place)
    return SearchTables(
        named={
            "search.csv": pd.DataFrame(rows)[list(COLUMNS)],
            "search_curve.csv": pd.DataFrame(curves, columns=list(CURVE_COLUMNS)),
            "search_relations.csv": pd.DataFrame(summary, columns=list(RELATION_COLUMNS)),
        },
        pairs=tuple(_pairs(rows, points)),
    )


def _one(points: _Points, key: tuple[Any, ...], cases: Sequence[int]) -> dict[str, Any]:
    """Return the row of one search, with the rows of its two pictures under ``_shown``."""
    followups = points.points(cases)
    first = points.rows[cases[-1]]  # a query: levels come first
    search = MILDEST if str(first[SEARCH]).startswith(MILDEST) else WORST
    row: dict[str, Any] = {
        **dict(zip(("dataset", "seed_id", "relation", "repeat"), key, strict=True)),
        "cluster": str(first["cluster"]),
        "search": search,
        "crafted_on": first["crafted_on"],
        "cases": sum(point.fails is not None for point in followups),
        "_row": cases[0],
        "_source_failed": bool(points.source_failed[list(cases)].any()),
        "_top": max((point.scale for point in followups if point.fails is not None), default=float("nan")),
    }
    return row | (_mildest(points, followups, row) if search == MILDEST else _worst(points, followups))


def _mildest(points: _Points, followups: Sequence[_Point], row: Mapping[str, Any]) -> dict[str, Any]:
    tried = {point.scale: point for point in followups if point.search != REPEATED and point.fails is not None}
    low, high = bracket({scale: point.fails for scale, point in tried.items()})
    repeated = [point for point in followups if point.search == REPEATED and point.fails is not None]
    notes = []
    if any(point.scale in tried and tried[point.scale].fails != point.fails for point in repeated):
        notes.append(DIFFERS)
    if high is not None and any(scale > high and point.fails is False for scale, point in tried.items()):
        notes.append(STRONGER_PASSES)
    if high is not None and low is None:
        notes.append(AT_MILDEST)
    state = FAILS if high is not None else PASSES
    if not tried:
        state = SOURCE_FAILS if row["_source_failed"] else SKIPPED
    return {
        "state": state,
        "scale": float("nan") if high is None else high,
        "passing_scale": float("nan") if low is None else low,
        "address": "" if high is None else points.rows[tried[high].row][ADDRESS],
        "passing_address": "" if low is None else points.rows[tried[low].row][ADDRESS],
        "queries": sum(bool(point.search) and point.fails is not None for point in followups),
        "failures": sum(bool(point.fails) for point in followups if point.search),
        **dict.fromkeys(("random_queries", "random_failures", "score", "random_score"), float("nan")),
        "note": "; ".join(notes),
        "_shown": (None if high is None else tried[high].row, None if low is None else tried[low].row),
    }


def _worst(points: _Points, followups: Sequence[_Point]) -> dict[str, Any]:
    by_search = {name: [p for p in followups if p.search == name and p.fails is not None] for name in (WORST, RANDOM)}
    worst, best_random = (
        min(group, key=lambda point: (not point.fails, np.nan_to_num(point.score)), default=None)
        for group in by_search.values()
    )
    state = SKIPPED if worst is None else (FAILS if worst.fails else PASSES)
    return {
        "state": state,
        "scale": float("nan") if worst is None else worst.scale,
        "passing_scale": float("nan"),
        "address": "" if worst is None else points.rows[worst.row][ADDRESS],
        "passing_address": "",
        "queries": len(by_search[WORST]),
        "failures": sum(bool(point.fails) for point in by_search[WORST]),
        "random_queries": len(by_search[RANDOM]),
        "random_failures": sum(bool(point.fails) for point in by_search[RANDOM]),
        "score": float("nan") if worst is None else round(worst.score, 6),
        "random_score": float("nan") if best_random is None else round(best_random.score, 6),
        "note": "",
        "_shown": (None if worst is None else worst.row, None if best_random is None else best_random.row),
    }


def _by_relation(rows: Sequence[Mapping[str, Any]], place: Axes) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    summary: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    for relation, search in dict.fromkeys((row["relation"], row["search"]) for row in rows):
        own = [row for row in rows if row["relation"] == relation]
        for dataset in (*place.datasets, ALL):
            group = [row for row in own if dataset in (ALL, row["dataset"])]
            if not group:
                continue
            head = {"dataset": dataset, "relation": relation}
            median, curve = _curve(group, place) if search == MILDEST else ({}, [])
            summary.append({**head, "search": search, **_counts(group), **median})
            curves += [{**head, **point} for point in curve]
    return summary, curves


def _counts(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    def total(name: str) -> Any:
        values = [row[name] for row in rows if row[name] == row[name]]
        return sum(values) if values else float("nan")

    states = [row["state"] for row in rows]
    worst = [row for row in rows if row["search"] == WORST]
    return {
        "searches": len(rows),
        "clusters": len({(row["dataset"], row["cluster"]) for row in rows}),
        "failed": states.count(FAILS),
        "failing_sources": states.count(SOURCE_FAILS),
        "passed": states.count(PASSES),
        "skipped": states.count(SKIPPED),
        "ambiguous": sum(any(note in row["note"] for note in AMBIGUOUS) for row in rows),
        **{name: total(name) for name in ("queries", "failures", "random_queries", "random_failures")},
        "more_than_random": sum(row["failures"] > row["random_failures"] for row in worst) if worst else float("nan"),
    }


def _curve(rows: Sequence[Mapping[str, Any]], place: Axes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the median scale at which source cases fail, and the share still passing over the scale."""
    judged = [row for row in rows if row["state"] != SKIPPED]
    if not judged:
        return {}, []
    value = np.array([0.0 if row["state"] == SOURCE_FAILS else row["scale"] for row in judged])
    bound = np.array([row["_top"] for row in judged])
    numbers: NDArray[np.int64] = np.array([row["_row"] for row in judged], dtype=np.int64)
    scales, shares, low, high, clusters = flip_curve(value, bound, place, numbers)
    has_interval = clusters > 1
    median = {
        "median": median_of(scales, shares),
        "median_low": median_of(scales, high) if has_interval else float("nan"),
        "median_high": median_of(scales, low) if has_interval else float("nan"),
    }
    points = [(0.0, 0.0, float("nan"), float("nan"))] if not scales.size or scales[0] > 0 else []
    points += list(zip(scales, shares, low, high, strict=True))
    top = float(np.nanmax(bound)) if np.isfinite(bound).any() else 0.0
    if points[-1][0] < top:
        points.append((top, *points[-1][1:]))
    return median, [
        {
            "scale": round(float(at), 6),
            "passing_share": round(1 - float(share), 6),
            "ci_low": round(1 - float(upper), 6),
            "ci_high": round(1 - float(lower), 6),
        }
        for at, share, lower, upper in points
    ]


def _pairs(rows: Sequence[Mapping[str, Any]], points: _Points) -> Iterator[MildestPair]:
    """Yield the pictures of each relation: of the search with the mildest failing picture, or with the worst one."""
    for relation in dict.fromkeys(row["relation"] for row in rows):
        own = [row for row in rows if row["relation"] == relation and row["state"] == FAILS]
        if not own:
            continue
        if own[0]["search"] == MILDEST:  # one with a neighbour, and with one threshold, is more telling
            chosen = min(own, key=lambda row: (row["_shown"][1] is None, bool(row["note"]), row["scale"]))
        else:
            chosen = min(own, key=lambda row: np.nan_to_num(row["score"]))
        first, second = chosen["_shown"]
        records = points.rows[first], None if second is None else points.rows[second]
        yield MildestPair(relation=relation, search=chosen["search"], records=records)
