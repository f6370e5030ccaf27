"""Differences between two attack settings, or two answers of one, on the same source cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.tasks.results import Graded
from medtest.results.attacks.settings import Setting
from medtest.results.cube.axes import Axes, Places
from medtest.results.rates.differences import difference_of
from medtest.results.records.records_io import Records

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference of two shares over paired cases, first minus second.

    Attributes:
        first: The first share, in [0, 1].
        second: The second.
        low: Lower end of the difference's 95 % interval; NaN with fewer than two clusters.
        high: Upper end.
        cases: PairedCases.
    """

    first: float
    second: float
    low: float
    high: float
    cases: int

    @property
    def value(self) -> float:
        """The difference."""
        return self.first - self.second

    @property
    def above(self) -> bool:
        """Whether the first is shown to be larger: the interval lies above 0."""
        return self.low > 0

    @property
    def below(self) -> bool:
        """Whether the first is shown to be smaller."""
        return self.high < 0

    @property
    def words(self) -> str:
        """The difference in points, with its interval."""
        ends = "" if np.isnan(self.low) else f" ({100 * self.low:+.1f} to {100 * self.high:+.1f})"
        return f"{100 * self.value:+.1f} points{ends}"


class PairedCases:
    """PairedCases the follow-ups of settings by their source case.

    Args:
        records: Records of one system.
        place: Their axes.
        graded: How right the answers are.
    """

    def __init__(self, records: Records, place: Axes, graded: Graded) -> None:
        self.place, self.graded = place, graded
        self._key = place.seed.astype(np.int64)
        for name in ("repeat", "frame"):
            if name in records.followups.columns:
                numbers = records.followups[name].to_numpy(dtype=np.int64)
                self._key = self._key * (int(numbers.max(initial=0)) + 1) + numbers

    def between(self, first: Setting, second: Setting, dataset: int) -> Difference | None:
        """Return by how much more is right under the first; None without a common case.

        Args:
            first: A setting.
            second: Another one; its repeats are taken as they are, or its first draw where it has fewer.
            dataset: Number of the data set.
        """
        return self.of_rows(*(setting.inside(self.place, dataset) for setting in (first, second)))

    def least_right(self, chosen: Sequence[Integers], dataset: int) -> Integers:
        """Return, of follow-ups of several settings, the one that is least right of each source case; int64 places.

        Args:
            chosen: Places of follow-ups.
            dataset: Number of the data set; those of others are left out.
        """
        rows = np.concatenate([np.asarray(rows, np.int64) for rows in chosen])
        rows = self._judged(rows[self.place.dataset[rows] == dataset])
        share = self.graded.right[rows] / self.graded.whole[rows]
        rows = rows[np.lexsort((share, self._key[rows]))]
        first = np.ones(len(rows), bool)
        first[1:] = self._key[rows][1:] != self._key[rows][:-1]
        return np.asarray(rows[first], np.int64)

    def of_rows(self, first: Integers, second: Integers) -> Difference | None:
        """Return by how much more is right of the first follow-ups than of the second; None without a common case.

        Args:
            first: Places, one for each source case.
            second: Likewise.
        """
        first, second = self._judged(first), self._judged(second)
        _, left, right = np.intersect1d(self._key[first], self._key[second], return_indices=True)
        one, other = first[left], second[right]
        return self._difference(self.graded.right[one], self.graded.right[other], one)

    def rounding(self, setting: Setting, dataset: int) -> Difference | None:
        """Return by how much more is right of the saved pixels than of those before rounding; None where unknown."""
        rows = self._judged(setting.inside(self.place, dataset))
        rows = rows[self.graded.unrounded_whole[rows] > 0]
        return self._difference(self.graded.right[rows], self.graded.unrounded[rows], rows)

    def judged(self, setting: Setting, dataset: int) -> Integers:
        """Return the places of a setting's follow-ups that something is known of."""
        return self._judged(setting.inside(self.place, dataset))

    def _judged(self, rows: Integers) -> Integers:
        return np.asarray(rows[self.graded.whole[rows] > 0], np.int64)

    def _difference(self, one: Floats, other: Floats, rows: Integers) -> Difference | None:
        if not rows.size:
            return None
        inside = self.place.take(rows)
        places = Places(
            shape=(1,),
            dataset=inside.dataset,
            cell=np.zeros(len(rows), np.int64),
            cluster=inside.cluster,
            resamplers=inside.resamplers,
        )
        counts = places.sums(
            self.graded.whole[rows], one, other, np.maximum(one - other, 0), np.maximum(other - one, 0)
        )
        drawn = np.sum(places.drawn(counts), axis=0)[:, :, 0]
        found = difference_of(np.concatenate(counts)[:, :, 0], drawn)
        low, high = (float(str(found[name])) / 100 for name in ("ci_low", "ci_high"))
        shares = (float(str(found[name])) / 100 for name in ("first_percent", "second_percent"))
        return Difference(first=next(shares), second=next(shares), low=low, high=high, cases=len(rows))
