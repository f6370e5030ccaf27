"""Statistics of made artefacts beside those of real ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.realism.classifier import REPLICATES, Rows
from medtest.realism.measures import STATISTICS, TURNS, WITHOUT_TARGET
from medtest.results.cube.intervals import percentile_interval
from medtest.results.cube.resampling import generator

FEWEST_REAL = 10
"""Real artefacts below which a statistic is weak: its targets are not judged."""
SPREADS = (0.5, 2.0)
"""Target for the interquartile range of made artefacts, as a multiple of that of real ones."""
NO_TARGETS: Mapping[str, frozenset[str]] = {"blood": frozenset({"pieces", "largest", "solidity"})}
"""Statistics without a target, by part: shapes of blood were only measured in capsule pictures."""


@dataclass(frozen=True, kw_only=True)
class PictureStatistics:
    """Statistics of one picture.

    Attributes:
        name: The picture.
        group: Its video or patient.
        values: Value by name of the statistic; NaN where it does not exist.
        severity: Severity of a made one; 0 for real ones.
    """

    name: str
    group: str
    values: Mapping[str, float]
    severity: int = 0


@dataclass(frozen=True, kw_only=True)
class StatisticRow:
    """One statistic of one relation. Quartiles are 25 %, median and 75 %; intervals are 95 %, over groups.

    Attributes:
        relation: Relation id.
        statistic: Its column of tables.
        real_n: Real pictures that have it.
        real_groups: Their videos or patients.
        made_n: Made pictures that have it.
        real: Quartiles of the real ones.
        made: Quartiles of the made ones.
        made_median: Interval of the made median.
        inside: Share of made ones inside the real 5 to 95 % range.
        inside_interval: Its interval.
        ratio: Interquartile range of the made ones over that of the real ones; NaN if the real one is 0.
        ratio_interval: Its interval.
        target: Whether there are targets for it.
    """

    relation: str
    statistic: str
    real_n: int
    real_groups: int
    made_n: int
    real: tuple[float, float, float]
    made: tuple[float, float, float]
    made_median: tuple[float, float]
    inside: float
    inside_interval: tuple[float, float]
    ratio: float
    ratio_interval: tuple[float, float]
    target: bool

    @property
    def weak(self) -> bool:
        """True if there are too few real pictures to judge it."""
        return self.real_n < FEWEST_REAL

    @property
    def title(self) -> str:
        """Readable name of the statistic with its unit."""
        return STATISTICS[self.statistic]

    @property
    def median_inside(self) -> bool:
        """True if the made median lies inside the real quartiles."""
        return self.real[0] <= self.made[1] <= self.real[2]

    @property
    def spread_alike(self) -> bool:
        """True if the ratio of interquartile ranges is on target; real ones without spread set no target."""
        return math.isnan(self.ratio) or SPREADS[0] <= self.ratio <= SPREADS[1]

    @property
    def verdict(self) -> str:
        """One of ``met``, ``missed``, ``weak``, ``no target`` and ``none`` (no made artefact has it)."""
        if not self.target:
            return "no target"
        if self.weak:
            return "weak"
        if self.made_n == 0:
            return "none"
        return "met" if self.median_inside and self.spread_alike else "missed"


def compare(
    relation: str, part: str, real: Sequence[PictureStatistics], made: Sequence[PictureStatistics]
) -> list[StatisticRow]:
    """Return every statistic of a relation that a real picture has.

    Args:
        relation: Relation id.
        part: Name of its part.
        real: Real artefacts.
        made: Made artefacts.
    """
    real_values, made_values = _matrix(real), _matrix(made)
    for column, statistic in enumerate(STATISTICS):
        if statistic in TURNS:
            _unroll(real_values[:, column], made_values[:, column])
    groups = [np.unique([sample.group for sample in side], return_inverse=True) for side in (real, made)]
    rng = generator("realism", relation)
    draws = np.array(
        [
            _figures(_drawn(real_values, groups[0][1], rng), _drawn(made_values, groups[1][1], rng))
            for _ in range(REPLICATES // 2)
        ]
    )
    whole = _figures(real_values, made_values)
    low, high = percentile_interval(draws)
    rows = []
    for column, statistic in enumerate(STATISTICS):
        present = ~np.isnan(real_values[:, column])
        if not present.any():
            continue
        rows.append(
            StatisticRow(
                relation=relation,
                statistic=statistic,
                real_n=int(present.sum()),
                real_groups=len({sample.group for sample, has in zip(real, present, strict=True) if has}),
                made_n=int((~np.isnan(made_values[:, column])).sum()),
                real=_quartiles(real_values[:, column]),
                made=_quartiles(made_values[:, column]),
                made_median=(float(low[0, column]), float(high[0, column])),
                inside=float(whole[1, column]),
                inside_interval=(float(low[1, column]), float(high[1, column])),
                ratio=float(whole[2, column]),
                ratio_interval=(float(low[2, column]), float(high[2, column])),
                target=statistic not in WITHOUT_TARGET and statistic not in NO_TARGETS.get(part, ()),
            )
        )
    return rows


def _matrix(samples: Sequence[PictureStatistics]) -> Rows:
    rows = [[sample.values[statistic] for statistic in STATISTICS] for sample in samples]
    return np.array(rows, np.float64).reshape(len(samples), len(STATISTICS))


def _unroll(real: Rows, made: Rows) -> None:
    """Move hours of the clock to within half a turn of the real ones' mean direction, in place."""
    turns = real[~np.isnan(real)] * (2 * np.pi / 12)
    if len(turns):
        middle = np.arctan2(np.sin(turns).mean(), np.cos(turns).mean()) * 12 / (2 * np.pi)
        for hours in (real, made):
            hours[:] = (hours - middle + 6) % 12 - 6 + middle % 12


def _drawn(values: Rows, groups: NDArray[np.intp], rng: np.random.Generator) -> Rows:
    """Return the rows of groups drawn with replacement."""
    count = int(groups.max(initial=-1)) + 1
    times = np.bincount(rng.integers(count, size=count), minlength=count) if count else np.zeros(0, np.int64)
    return np.repeat(values, times[groups], axis=0)


def _figures(real: Rows, made: Rows) -> Rows:
    """Return made medians, shares inside the real range and ratios of interquartile ranges, 3 × statistics."""
    figures = np.full((3, len(STATISTICS)), np.nan)
    for column in range(len(STATISTICS)):
        real_values, made_values = _present(real[:, column]), _present(made[:, column])
        if not len(real_values) or not len(made_values):
            continue
        low, first, third, high = _quantiles(real_values, (0.05, 0.25, 0.75, 0.95))
        made_first, median, made_third = _quantiles(made_values, (0.25, 0.5, 0.75))
        inside = float(((made_values >= low) & (made_values <= high)).mean())
        ratio = (made_third - made_first) / (third - first) if third > first else math.nan
        figures[:, column] = median, inside, ratio
    return figures


def _present(values: Rows) -> Rows:
    return np.sort(values[~np.isnan(values)])


def _quantiles(ordered: Rows, shares: Sequence[float]) -> list[float]:
    """Return quantiles of ordered values with linear interpolation, as numpy.quantile and far faster."""
    places = np.asarray(shares) * (len(ordered) - 1)
    below = places.astype(int)
    above = np.minimum(below + 1, len(ordered) - 1)
    values = ordered[below] + (places - below) * (ordered[above] - ordered[below])
    return [float(value) for value in values]


def _quartiles(values: Rows) -> tuple[float, float, float]:
    present = _present(values)
    if not len(present):
        return (math.nan, math.nan, math.nan)
    first, median, third = _quantiles(present, (0.25, 0.5, 0.75))
    return first, median, third
