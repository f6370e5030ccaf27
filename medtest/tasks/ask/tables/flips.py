"""Flips by question and relation: rates, net of the model's own instability, tests, and directions.

A flip is a FAIL against the model's own answer to the source. Some flips occur without a cause: repeating the question
on the unperturbed image measures them (relation ``unchanged``), and ``net`` is the rate under a relation minus that
rate.

A cell is one question under one relation. Its rate has Wilson's interval, its net rate Newcombe's for the difference of
independent proportions (R. G. Newcombe, "Interval estimation for the difference between independent proportions",
Statistics in Medicine 17, 1998, method 10). Several severities or repeats of one image are not independent: images are
counted, each with the share of its cases that flipped; if metadata name patients or videos, these replace images
throughout. Pools (``all`` questions, ``overall`` relations) are resampled by images, from which both rates are drawn
together; the floor of a pool is the mean of its questions' floors, weighted by the number of judged answers in the
pool, so that a question that most relations may change has the same weight in floor and rate. A rate for which fewer
than ten images flipped, or fewer than ten did not, has Wilson's interval instead of the bootstrap's; the two intervals
are then combined as by Newcombe (the method for any two intervals: G. Y. Zou and A. Donner, Statistics in Medicine 27,
2008).

``p`` tests whether a relation flips more or fewer answers than repeating the question does: McNemar's exact test on
each image's first cases of both, with whole images exchanged. ``p_holm`` is corrected over all cells of the table (S.
Holm, 1979).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd
from medtest.language.questions.questions import by_name
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, OVERALL, Floats
from medtest.results.cube.intervals import FEW_CLUSTERS, joined, percentile_ends, wilson_of_rate
from medtest.results.cube.paired import clustered, holm
from medtest.results.cube.rates import BOOTSTRAP
from medtest.results.cube.resampling import Resampler
from medtest.tasks.ask.tables.cells import Questions
from medtest.tasks.ask.tables.rows import SOURCE, UNCHANGED

COLUMNS = columns_in(__file__, "flips_detail")
CONTRACT = columns_in(__file__, "flips")
"""Columns of ``tables/flips.csv``; ``flips_detail.csv`` has all of them."""
DIRECTION_COLUMNS = columns_in(__file__, "flip_directions")


def flip_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return flips of every question × relation with their pools, with exactly :data:`COLUMNS`.

    ``item`` is the question's name, ``question`` its wording. Rates and intervals are fractions. ``net`` is ``rate``
    minus ``unchanged_rate``, which for a pool is weighted by judged answers and therefore not the quotient of its
    counts. ``not_judged`` counts answers without a verdict (``may change``, ``skip``, unparsed, no answer to the
    source), which are not in ``cases``; ``refusals`` counts refused answers, which are in ``cases`` and are flips if
    the source was answered.

    Args:
        frame: Rows of one system, with :data:`medtest.tasks.ask.tables.rows.COLUMNS`.
    """
    if not (frame["relation"] != SOURCE).any():
        return pd.DataFrame(columns=list(COLUMNS))
    flips = _Flips(frame)
    place = flips.place
    under = [*np.flatnonzero(place.pooled), len(place.relations)]
    cells = [(relation, item) for item in range(len(place.items) + 1) for relation in under]
    rows = [flips.row(*cell) for cell in cells if flips.asked[cell]]
    return _with_holm(pd.DataFrame(rows, columns=list(COLUMNS)))


class _Flips:
    """Judged answers by image, relation and question; the index after the last of either is the pool of all.

    Args:
        frame: Rows of one system.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.place = place = Questions.of(frame, "vqa flips")
        self._flip = frame["flip"].to_numpy(dtype=np.float64)
        judged = ~np.isnan(self._flip)
        flip = np.where(judged, self._flip, 0.0)
        self._made = place.rates(flip, judged)
        self._sums = place.sums(flip, judged)[0]
        self._rows = _ordered(place, frame)
        self.asked = place.counts(np.ones(len(frame)))
        self._refusals = place.counts(frame["state"] == "refusal")
        is_repeat = [name == UNCHANGED for name in place.relations]
        self._again = self._sums[:, :, is_repeat].sum(2)

    def row(self, relation: int, item: int) -> dict[str, object]:
        """Return the row of a relation and a question, or of a pool of either."""
        place, at = self.place, (0, relation, item)
        resampler = place.resamplers[0]
        relations = np.flatnonzero(place.pooled) if relation == len(place.relations) else [relation]
        items = range(len(place.items)) if item == len(place.items) else [item]
        pool = relation == len(place.relations) or item == len(place.items)
        sums = self._sums[:, :, relations][..., items]
        floor, repeats = self._floor(sums.sum((0, 2))[1], items, pool=pool)
        sums = sums.sum((2, 3))
        n, n0 = self._made.clusters[at], float((floor[:, 1] > 0).sum())
        rate, rate0 = float(self._made.rate[at]), _rate(floor.sum(0))
        resampled = [self._made.method[at] == BOOTSTRAP, pool and not _few(floor)]
        ends = float(self._made.low[at]), float(self._made.high[at])
        ends0 = percentile_ends(_drawn(floor, resampler)) if resampled[1] else wilson_of_rate(rate0, n0)
        all_resampled = all(resampled)
        low, high = (
            percentile_ends(_drawn(sums, resampler) - _drawn(floor, resampler))
            if all_resampled
            else joined(rate, ends, rate0, ends0)
        )
        method = "bootstrap" if all_resampled else "wilson and bootstrap" if any(resampled) else "newcombe"
        name = ALL if item == len(place.items) else place.items[item]
        question = by_name(name)
        return {
            "item": name,
            "question": "" if question is None else question.text,
            "relation": OVERALL if relation == len(place.relations) else place.relations[relation],
            "flips": int(self._made.part[at]),
            "cases": int(self._made.whole[at]),
            "unchanged_flips": int(repeats[0]),
            "unchanged_cases": int(repeats[1]),
            "rate": _round(rate),
            "rate_low": _round(ends[0]),
            "rate_high": _round(ends[1]),
            "unchanged_rate": _round(rate0),
            "net": _round(rate - rate0),
            "ci_low": _round(low),
            "ci_high": _round(high),
            "ci_method": method if n and n0 else "",
            "p": self._against_unchanged(relation, item) if not pool and n and n0 else float("nan"),
            "p_holm": float("nan"),
            "refusals": int(self._refusals[relation, item]),
            "not_judged": int(self.asked[relation, item] - self._made.whole[at]),
        }

    def _floor(self, judged: Floats, items: Sequence[int], *, pool: bool) -> tuple[Floats, Floats]:
        """Return flips and cases of repeated questions by image, images × 2, weighted in a pool; and the plain totals.

        The weight of a question is the number of its judged answers in the pool: a relation that makes a question
        irrelevant would otherwise be charged with that question's instability.
        """
        repeats = self._again[..., items]
        cases = judged if judged.any() else np.ones(len(judged))
        weights = cases / np.maximum(1.0, repeats[:, 1].sum(0)) if pool else np.ones(len(cases))
        return (repeats * weights).sum(-1), repeats[..., cases > 0].sum((0, 2))

    def _against_unchanged(self, relation: int, item: int) -> float:
        """Return McNemar's exact p on equally many first cases of each image, with and without the relation."""
        image, images = self.place.cluster, self.place.clusters[0]
        unchanged = self.place.relations.index(UNCHANGED)
        rows = [self._rows[row_number * len(self.place.items) + item] for row_number in (relation, unchanged)]
        judged = [cell_rows[~np.isnan(self._flip[cell_rows])] for cell_rows in rows]
        number = [np.bincount(image[cell_rows], minlength=images) for cell_rows in judged]
        first = np.minimum(*number)
        flips: list[Floats] = []
        for cell_rows, counts in zip(judged, number, strict=True):
            # Rows are ordered by image, so a row's rank within its image is its distance from the image's first row.
            place = np.arange(cell_rows.size) - (np.cumsum(counts) - counts)[image[cell_rows]]
            first_rows = cell_rows[place < first[image[cell_rows]]]
            flips.append(np.bincount(image[first_rows], self._flip[first_rows], images).astype(np.float64))
        net = (flips[0] - flips[1])[first > 0]
        return clustered(net.astype(np.int64)) if net.size else float("nan")


def _ordered(place: Questions, frame: pd.DataFrame) -> dict[int, NDArray[np.int64]]:
    """Return the rows of each cell, ordered by image, severity and repeat."""
    severity, repeat = (frame[name].to_numpy(dtype=np.int64) for name in ("severity", "repeat"))
    order = np.lexsort((repeat, severity, place.cluster, place.cell))
    starts = np.flatnonzero(np.diff(place.cell[order], prepend=-1))
    return {int(place.cell[rows[0]]): rows for rows in np.split(order, starts[1:]) if rows.size}


def _rate(sums: Floats) -> float:
    return float(sums[0] / sums[1]) if sums[1] > 0 else float("nan")


def _round(value: float) -> float:
    return round(float(value), 6)


def _few(sums: Floats) -> bool:
    flipped = int((sums[:, 0] > 0).sum())
    steady = int((sums[:, 0] < sums[:, 1]).sum())
    return min(flipped, steady) < FEW_CLUSTERS


def _drawn(sums: Floats, resampler: Resampler) -> Floats:
    """Return rates of resampled images."""
    resampled = resampler.drawn(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(resampled[:, 0] / resampled[:, 1])


def _with_holm(table: pd.DataFrame) -> pd.DataFrame:
    tested = np.flatnonzero(table["p"].notna().to_numpy())
    corrected = np.full(len(table), np.nan)
    corrected[tested] = holm([float(value) for value in table["p"].to_numpy(dtype=np.float64)[tested]])
    return table.assign(p_holm=corrected)


def direction_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the transitions of answers between right and wrong, with exactly :data:`DIRECTION_COLUMNS`.

    Only cases with a truth, judged on the source and under the relation. ``wrong_to_wrong`` counts answers that were
    wrong, are wrong and flipped. ``p`` is McNemar's exact test on right and wrong, with whole images exchanged; the
    difference of accuracies alone hides changes that cancel out.

    Args:
        frame: Rows of one system, with :data:`medtest.tasks.ask.tables.rows.COLUMNS`.
    """
    numbers = [frame[name].to_numpy(dtype=np.float64) for name in ("source_right", "right")]
    selected = ~np.isnan(numbers).any(0) & (frame["relation"] != SOURCE).to_numpy(dtype=bool)
    if not selected.any():
        return _with_holm(pd.DataFrame(columns=list(DIRECTION_COLUMNS)))
    place = Questions.of(frame, "vqa flips").take(selected)
    was_right, is_right = (values[selected] == 1 for values in numbers)
    lost, won = was_right & ~is_right, ~was_right & is_right
    flipped = frame["flip"].to_numpy(dtype=np.float64)[selected] == 1
    net = place.sums(lost.astype(np.float64) - won)[0][:, 0]
    tested = np.full((len(place.relations) + 1, len(place.items) + 1), np.nan)
    for relation in np.flatnonzero(place.pooled):
        tested[relation, :-1] = [clustered(net[:, relation, item].astype(np.int64)) for item in range(len(place.items))]
    cases, every = place.counts(np.ones(len(was_right))), np.ones(len(was_right), bool)
    columns = {
        "cases": cases,
        "right_to_wrong": place.counts(lost),
        "wrong_to_right": place.counts(won),
        "wrong_to_wrong": place.counts(~was_right & ~is_right & flipped),
        "accuracy_source": place.means(was_right.astype(np.float64), every),
        "accuracy": place.means(is_right.astype(np.float64), every),
        "p": tested,
    }
    keep = cases > 0
    keep[-1], keep[:, -1] = False, False
    table = place.table(columns, keep, ("item", "relation", *columns))
    questions = {name: by_name(name) for name in place.items}
    words = table["item"].map({name: "" if question is None else question.text for name, question in questions.items()})
    return _with_holm(table.assign(question=words))[list(DIRECTION_COLUMNS)]
