"""Flips per question and relation: rates, net of the model's own unsteadiness, tests, and which way they went.

A flip is a FAIL against the model's own answer to the source. Some flips come without any cause: the unperturbed image
asked again shows how many (relation ``unchanged``), and ``net`` is the rate under a relation less that rate.

A cell is one question under one relation. Its rate has Wilson's interval, its net rate Newcombe's for the difference of
independent proportions (R. G. Newcombe, "Interval estimation for the difference between independent proportions",
Statistics in Medicine 17, 1998, method 10). Several severities or repeats of one image are not independent: images
are counted, each with the share of its cases that flipped; where metadata name patients or videos, these stand for
images throughout. Pools (``all`` questions, ``overall`` relations) are
resampled by images, from which both rates are drawn together; the floor of a pool is the mean of its questions'
floors, each weighed by how many of its answers are judged in the pool: a question that most relations may change counts
as little in the floor as it does in the rate. A rate for which fewer than ten images flipped, or fewer
than ten did not, has Wilson's interval in place of the bootstrap's; the two intervals are then joined as Newcombe joins
his (the method for any two intervals: G. Y. Zou and A. Donner, Statistics in Medicine 27, 2008).

``p`` asks whether a relation flips more or fewer answers than asking again does: McNemar's exact test on each image's
first cases of both, images exchanged whole. ``p_holm`` is corrected over all cells of the table (S. Holm, 1979).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from medtest.results.answers.answer_cells import in_order
from medtest.results.answers.answer_rows import SOURCE, UNCHANGED
from medtest.results.cube.axes import ALL, OVERALL
from medtest.results.cube.intervals import FEW_CLUSTERS, joined, percentile_ends, wilson_of_rate
from medtest.results.cube.paired import clustered, holm
from medtest.results.cube.resampling import Resampler
from medtest.vqa.questions import by_name

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "item",
    "question",
    "relation",
    "flips",
    "cases",
    "unchanged_flips",
    "unchanged_cases",
    "rate",
    "rate_low",
    "rate_high",
    "unchanged_rate",
    "net",
    "ci_low",
    "ci_high",
    "ci_method",
    "p",
    "p_holm",
    "refusals",
    "not_judged",
)
CONTRACT = (
    "item",
    "question",
    "relation",
    "flips",
    "cases",
    "unchanged_flips",
    "net",
    "ci_low",
    "ci_high",
    "p_holm",
)
"""The columns of ``tables/flips.csv``; ``flips_detail.csv`` has all of them."""
DIRECTION_COLUMNS = (
    "item",
    "question",
    "relation",
    "cases",
    "right_to_wrong",
    "wrong_to_right",
    "wrong_to_wrong",
    "accuracy_source",
    "accuracy",
    "p",
    "p_holm",
)

Floats = NDArray[np.float64]


def flip_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return flips of every question × relation with their pools, with exactly :data:`COLUMNS`.

    ``item`` is the question's name, ``question`` its wording. Rates and intervals are fractions. ``net`` is ``rate``
    less ``unchanged_rate``, which of a pool is weighed by judged answers and so not the quotient of its counts.
    ``not_judged`` counts
    answers without a verdict (``may change``, ``skip``, unparsed, no answer to the source), which are not in ``cases``;
    ``refusals`` counts refused answers, which are in ``cases`` and flips where the source was answered.

    Args:
        frame: Rows of one system, as :func:`medtest.results.answers.answer_rows.frame_of` gives them.
    """
    import pandas as pd

    if not (frame["relation"] != SOURCE).any():
        return pd.DataFrame(columns=list(COLUMNS))
    grid = QuestionGrid.of(frame)
    resampler = Resampler(grid.images, "vqa flips")
    relations = [name for name in grid.relations if name not in (SOURCE, UNCHANGED)]
    rows: list[dict[str, object]] = []
    for item in [*grid.items, ALL]:
        items = grid.items if item == ALL else (item,)
        for relation in [*relations, OVERALL]:
            under = relations if relation == OVERALL else [relation]
            cases = grid.rows(items, under)
            if cases.size:
                rows.append(_cell(item, relation, grid, cases, _floor(grid, items, under), resampler))
    return _with_holm(pd.DataFrame(rows, columns=list(COLUMNS)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Floor:
    """Rows of the images asked again that stand beside a cell or pool, with the weight of each."""

    rows: NDArray[np.int64]
    weights: Floats


def _floor(grid: QuestionGrid, items: Sequence[str], relations: Sequence[str]) -> _Floor:
    """Return the floor of some questions under some relations: what a question weighs is how often it is judged there.

    A relation that takes a question away would otherwise be held against that question's own unsteadiness.
    """
    judged = {item: float((~np.isnan(grid.flip[grid.rows((item,), relations)])).sum()) for item in items}
    if not any(judged.values()):
        judged = dict.fromkeys(items, 1.0)
    rows, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
    for item, cases in judged.items():
        again = grid.rows((item,), (UNCHANGED,))
        known = int((~np.isnan(grid.flip[again])).sum())
        if cases and again.size:
            rows.append(again)
            weights.append(np.full(again.size, cases / max(1, known)))
    return _Floor(rows=np.concatenate(rows), weights=np.concatenate(weights))


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionGrid:
    """Judged rows as arrays, cut into question × relation.

    Attributes:
        items: Questions in the order of tables.
        relations: Relations in the order of the rows.
        images: How many images there are.
        image: Each row's image.
        flip: float64, 1, 0 or NaN.
        right: As in the rows, and likewise the following.
        source_right: float64.
        refusal: bool.
        cells: Numbers of the rows of each pair, ordered by image, severity and repeat.
    """

    items: tuple[str, ...]
    relations: tuple[str, ...]
    images: int
    image: NDArray[np.int64]
    flip: Floats
    right: Floats
    source_right: Floats
    refusal: NDArray[np.bool_]
    cells: Mapping[tuple[str, str], NDArray[np.int64]]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> QuestionGrid:
        """Cut the rows of one system."""
        import pandas as pd

        image, images = pd.factorize(frame["image"].to_numpy(dtype=object))
        item, items = pd.factorize(frame["item"].to_numpy(dtype=object))
        relation, relations = pd.factorize(frame["relation"].to_numpy(dtype=object))
        severity, repeat = (frame[name].to_numpy(dtype=np.int64) for name in ("severity", "repeat"))
        pair = item * max(1, len(relations)) + relation
        order = np.lexsort((repeat, severity, image, pair))
        starts = np.flatnonzero(np.diff(pair[order], prepend=-1))
        cells = {
            (str(items[item[rows[0]]]), str(relations[relation[rows[0]]])): rows
            for rows in np.split(order, starts[1:])
            if rows.size
        }
        numbers = [frame[name].to_numpy(dtype=np.float64) for name in ("flip", "right", "source_right")]
        return cls(
            items=tuple(in_order(items)),
            relations=tuple(str(name) for name in relations),
            images=len(images),
            image=image.astype(np.int64),
            flip=numbers[0],
            right=numbers[1],
            source_right=numbers[2],
            refusal=(frame["state"] == "refusal").to_numpy(dtype=bool),
            cells=cells,
        )

    def rows(self, items: Iterable[str], relations: Iterable[str]) -> NDArray[np.int64]:
        """Return the numbers of the rows of some questions under some relations."""
        names = list(relations)
        found = [self.cells[item, name] for item in items for name in names if (item, name) in self.cells]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def per_image(self, rows: NDArray[np.int64], weights: Floats | None = None) -> Floats:
        """Return images × 2: flips and judged cases, each row as often as its weight says (once without weights)."""
        known = ~np.isnan(self.flip[rows])
        judged = rows[known]
        each = np.ones(judged.size) if weights is None else weights[known]
        flips = np.bincount(self.image[judged], weights=each * self.flip[judged], minlength=self.images)
        cases = np.bincount(self.image[judged], weights=each, minlength=self.images)
        return np.stack([flips, cases], axis=1)


def _cell(
    item: str,
    relation: str,
    grid: QuestionGrid,
    rows: NDArray[np.int64],
    floor: _Floor,
    resampler: Resampler,
) -> dict[str, object]:
    pool = item == ALL or relation == OVERALL
    found, again = grid.per_image(rows), grid.per_image(floor.rows, floor.weights if pool else None)
    counted = grid.per_image(floor.rows).sum(0)
    n, n0 = float((found[:, 1] > 0).sum()), float((again[:, 1] > 0).sum())
    rate, rate0 = _rate(found.sum(0)), _rate(again.sum(0))
    resampled = [pool and not _few(one) for one in (found, again)]
    ends = _bootstrap(found, None, resampler) if resampled[0] else wilson_of_rate(rate, n)
    ends0 = _bootstrap(again, None, resampler) if resampled[1] else wilson_of_rate(rate0, n0)
    low, high = _bootstrap(found, again, resampler) if all(resampled) else joined(rate, ends, rate0, ends0)
    method = "bootstrap" if all(resampled) else "wilson and bootstrap" if any(resampled) else "newcombe"
    known = by_name(item)
    return {
        "item": item,
        "question": "" if known is None else known.text,
        "relation": relation,
        "flips": int(found[:, 0].sum()),
        "cases": int(found[:, 1].sum()),
        "unchanged_flips": int(counted[0]),
        "unchanged_cases": int(counted[1]),
        "rate": _round(rate),
        "rate_low": _round(ends[0]),
        "rate_high": _round(ends[1]),
        "unchanged_rate": _round(rate0),
        "net": _round(rate - rate0),
        "ci_low": _round(low),
        "ci_high": _round(high),
        "ci_method": method if n and n0 else "",
        "p": _against_unchanged(grid, rows, floor.rows) if not pool and n and n0 else float("nan"),
        "p_holm": float("nan"),
        "refusals": int(grid.refusal[rows].sum()),
        "not_judged": int(np.isnan(grid.flip[rows]).sum()),
    }


def _rate(sums: Floats) -> float:
    return float(sums[0] / sums[1]) if sums[1] > 0 else float("nan")


def _round(value: float) -> float:
    return round(float(value), 6)


def _few(found: Floats) -> bool:
    flipped = int((found[:, 0] > 0).sum())
    steady = int((found[:, 0] < found[:, 1]).sum())
    return min(flipped, steady) < FEW_CLUSTERS


def _bootstrap(found: Floats, again: Floats | None, resampler: Resampler) -> tuple[float, float]:
    both = found if again is None else np.concatenate([found, again], axis=1)
    draws = resampler.sums(both.astype(np.float32)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = draws[:, 0] / draws[:, 1]
        if again is not None:
            rates = rates - draws[:, 2] / draws[:, 3]
    return percentile_ends(rates)


def _against_unchanged(grid: QuestionGrid, rows: NDArray[np.int64], floor: NDArray[np.int64]) -> float:
    """Return McNemar's exact p on equally many first cases of each image, with the relation and without."""
    judged = [one[~np.isnan(grid.flip[one])] for one in (rows, floor)]
    number = [np.bincount(grid.image[one], minlength=grid.images) for one in judged]
    first = np.minimum(*number)
    flips: list[Floats] = []
    for one, counts in zip(judged, number, strict=True):
        # rows are ordered by image, so that a row's place among its image's is its distance from their first
        place = np.arange(one.size) - (np.cumsum(counts) - counts)[grid.image[one]]
        kept = one[place < first[grid.image[one]]]
        flips.append(np.bincount(grid.image[kept], grid.flip[kept], grid.images).astype(np.float64))
    net = (flips[0] - flips[1])[first > 0]
    return clustered(net.astype(np.int64)) if net.size else float("nan")


def _with_holm(table: pd.DataFrame) -> pd.DataFrame:
    tested = np.flatnonzero(table["p"].notna().to_numpy())
    corrected = np.full(len(table), np.nan)
    corrected[tested] = holm([float(value) for value in table["p"].to_numpy(dtype=np.float64)[tested]])
    return table.assign(p_holm=corrected)


def direction_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return which way answers went between right and wrong, with exactly :data:`DIRECTION_COLUMNS`.

    Only cases with a truth, judged at the source and after the relation. ``wrong_to_wrong`` counts answers that were
    wrong, are wrong and flipped. ``p`` is McNemar's exact test on right and wrong, images exchanged whole; the
    difference of the accuracies alone hides changes that cancel out.

    Args:
        frame: Rows of one system, as :func:`medtest.results.answers.answer_rows.frame_of` gives them.
    """
    import pandas as pd

    grid = QuestionGrid.of(frame)
    rows: list[dict[str, object]] = []
    for item in grid.items:
        for relation in grid.relations:
            chosen = grid.cells.get((item, relation), np.zeros(0, np.int64))
            chosen = chosen[~np.isnan(grid.right[chosen]) & ~np.isnan(grid.source_right[chosen])]
            if chosen.size and relation != SOURCE:
                rows.append(_direction(item, relation, grid, chosen))
    return _with_holm(pd.DataFrame(rows, columns=list(DIRECTION_COLUMNS)))


def _direction(item: str, relation: str, grid: QuestionGrid, rows: NDArray[np.int64]) -> dict[str, object]:
    before, after = grid.source_right[rows] == 1, grid.right[rows] == 1
    lost, won = before & ~after, ~before & after
    net = np.bincount(grid.image[rows], weights=lost.astype(np.float64) - won, minlength=grid.images)
    known = by_name(item)
    return {
        "item": item,
        "question": "" if known is None else known.text,
        "relation": relation,
        "cases": int(rows.size),
        "right_to_wrong": int(lost.sum()),
        "wrong_to_right": int(won.sum()),
        "wrong_to_wrong": int((~before & ~after & (grid.flip[rows] == 1)).sum()),
        "accuracy_source": _round(float(before.mean())),
        "accuracy": _round(float(after.mean())),
        "p": clustered(net.astype(np.int64)) if relation != UNCHANGED else float("nan"),
        "p_holm": float("nan"),
    }
