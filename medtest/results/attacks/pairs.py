"""Differences on the same source cases between two attack settings, or between two answers of one setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.tasks.results import Graded
from medtest.results.attacks.settings import Setting
from medtest.results.cube.axes import Axes
from medtest.results.rates.differences import difference_of
from medtest.results.records.records_io import Records

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Difference of two shares over paired cases, first minus second.

    Attributes:
        first: First share, in [0, 1].
        second: Second share, in [0, 1].
        low: Lower end of the 95 % interval of the difference; NaN with fewer than two clusters.
        high: Upper end.
        cases: Number of paired cases.
    """

    first: float
    second: float
    low: float
    high: float
    cases: int

    @property
    def value(self) -> float:
        """First share minus second."""
        return self.first - self.second

    @property
    def above(self) -> bool:
        """True if the first share is significantly larger: the interval is above 0."""
        return self.low > 0

    @property
    def below(self) -> bool:
        """True if the first share is significantly smaller."""
        return self.high < 0

    @property
    def figures(self) -> dict[str, float]:
        """The difference and the ends of its interval."""
        return {"value": self.value, "low": self.low, "high": self.high}

    @property
    def words(self) -> str:
        """The difference in points as text, with its interval."""
        ends = "" if np.isnan(self.low) else f" ({100 * self.low:+.1f} to {100 * self.high:+.1f})"
        return f"{100 * self.value:+.1f} points{ends}"


class PairedCases:
    """Follow-ups of settings, paired by source case.

    Args:
        records: Records of one system.
        place: Axes of the records.
        graded: Correctness of the answers.
    """

    def __init__(self, records: Records, place: Axes, graded: Graded) -> None:
        self.place, self.graded = place, graded
        self._key = place.seed.astype(np.int64)
        for name in ("repeat", "frame"):
            if name in records.followups.columns:
                numbers = records.followups[name].to_numpy(dtype=np.int64)
                self._key = self._key * (int(numbers.max(initial=0)) + 1) + numbers

    def between(self, first: Setting, second: Setting, dataset: int) -> Difference | None:
        """Return the difference in correctness between two settings; None without a common case.

        Args:
            first: A setting.
            second: Another setting; its repeats are paired, or its first draw if it has fewer.
            dataset: Index of the data set.
        """
        return self.of_rows(*(setting.inside(self.place, dataset) for setting in (first, second)))

    def least_right(self, chosen: Sequence[Integers], dataset: int) -> Integers:
        """Return the least correct follow-up of each source case among several settings; int64 indices.

        Args:
            chosen: Indices of follow-ups.
            dataset: Index of the data set; follow-ups of others are ignored.
        """
        rows = np.concatenate([np.asarray(rows, np.int64) for rows in chosen])
        rows = self._judged(rows[self.place.dataset[rows] == dataset])
        share = self.graded.right[rows] / self.graded.whole[rows]
        rows = rows[np.lexsort((share, self._key[rows]))]
        first = np.ones(len(rows), bool)
        first[1:] = self._key[rows][1:] != self._key[rows][:-1]
        return np.asarray(rows[first], np.int64)

    def of_rows(self, first: Integers, second: Integers) -> Difference | None:
        """Return the difference in correctness between two sets of follow-ups; None without a common case.

        Args:
            first: Indices, one for each source case.
            second: Indices, one for each source case.
        """
        first, second = self._judged(first), self._judged(second)
        _, first_at, second_at = np.intersect1d(self._key[first], self._key[second], return_indices=True)
        matched, partner = first[first_at], second[second_at]
        return self._difference(self.graded.right[matched], self.graded.right[partner], matched)

    def rounding(self, setting: Setting, dataset: int) -> Difference | None:
        """Return the change in correctness from rounding the pixels; None if unknown."""
        rows = self._judged(setting.inside(self.place, dataset))
        rows = rows[self.graded.unrounded_whole[rows] > 0]
        return self._difference(self.graded.right[rows], self.graded.unrounded[rows], rows)

    def judged(self, setting: Setting, dataset: int) -> Integers:
        """Return the indices of a setting's follow-ups with a graded answer."""
        return self._judged(setting.inside(self.place, dataset))

    def _judged(self, rows: Integers) -> Integers:
        return np.asarray(rows[self.graded.whole[rows] > 0], np.int64)

    def _difference(self, right: Floats, compared: Floats, rows: Integers) -> Difference | None:
        if not rows.size:
            return None
        places = self.place.take(rows).with_cells(np.zeros(len(rows), np.int64), (1,))
        counts = places.sums(
            self.graded.whole[rows], right, compared, np.maximum(right - compared, 0), np.maximum(compared - right, 0)
        )
        drawn = np.sum(places.drawn(counts), axis=0)[:, :, 0]
        difference = difference_of(np.concatenate(counts)[:, :, 0], drawn)
        low, high = (float(str(difference[name])) / 100 for name in ("ci_low", "ci_high"))
        shares = (float(str(difference[name])) / 100 for name in ("first_percent", "second_percent"))
        return Difference(first=next(shares), second=next(shares), low=low, high=high, cases=len(rows))
