"""Similarity of a relation's follow-ups over the position, and the position of a target by bisection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from medtest.core.cases import FollowUp, PreparedSeed
from medtest.core.errors import NotApplicable, TargetUnreachable
from medtest.core.recent import per_seed
from medtest.preparation.similarity import FieldSimilarity
from medtest.relations.calibration.interpolation import Value
from medtest.relations.calibration.positions import LEVEL, Positions
from medtest.relations.calibration.searching.bisection import bracket, next_value
from medtest.relations.calibration.settings import TOLERANCE

_STEPS = 14
"""Most bisections between two positions of the grid."""


@dataclass(kw_only=True)
class SimilarityCurve:
    """Similarity over the parameter for one seed with fixed draws; measured values are cached.

    Attributes:
        positions: Parameters by position.
        seed: The prepared source case.
        restarted: Returns the random generator as it is at the start of every follow-up.
        measured: Similarity of each measured position, or the reason for which there is no follow-up.
        visited: Positions that the present target has visited; results and messages depend on no other one.
        last: The last follow-up, with its position.
    """

    positions: Positions
    seed: PreparedSeed
    restarted: Callable[[], np.random.Generator]
    measured: dict[float, float | NotApplicable] = field(default_factory=dict)
    visited: set[float] = field(default_factory=set)
    last: tuple[float, FollowUp] | None = None

    def similarity(self, position: float) -> float | None:
        """Return the similarity of the follow-up at a position; None if there is none."""
        if position not in self.measured:
            self.measured[position] = self._measure(position)
        self.visited.add(position)
        value = self.measured[position]
        return None if isinstance(value, NotApplicable) else value

    def follow_up(self, position: float) -> FollowUp:
        """Return the follow-up at a position.

        Raises:
            NotApplicable: The relation does not apply there.
        """
        if self.last is None or self.last[0] != position:
            self.last = (position, self._make(position))
        return self.last[1]

    def solve(self, target: float, tolerance: float, near: float) -> float:
        """Return the mildest position whose similarity meets a target.

        Args:
            target: In (0, 1).
            tolerance: Largest distance from it.
            near: Distance within which the solver stops.

        Raises:
            TargetUnreachable: No position meets it.
            NotApplicable: The similarity does not fall steadily on the way to the target.
        """
        self.visited.clear()
        tried = {position: self._reaches(position, target) for position in self._bracket(target)}
        best = self._nearest(tried, target)
        for _ in range(_STEPS):
            middle = next_value(tried, self.positions.between)
            if middle is None or self._distance(best, target) <= near:
                break
            tried[middle] = self._reaches(middle, target)
            best = self._nearest((best, middle), target)
        self._check_falling(best)
        if self._distance(best, target) > tolerance:
            raise self._unreachable(target, beyond=bracket(tried)[1] or max(tried))
        return best

    def words(self) -> str:
        """Return the visited part of the curve as text, the mildest first."""
        name = self.positions.parameter
        points: dict[str, str] = {}
        for position, value in self._visited_values():
            points.setdefault(f"{value:.3f}", number_text(self.positions.shown(position)))
        return ", ".join(f"{value} at {name} {shown}" for value, shown in points.items())

    def rises(self, until: float = np.inf) -> bool:
        """Return True if the visited similarity rises by more than the tolerance between two positions."""
        lowest = 1.0
        for position, value in self._visited_values():
            if position <= until and value > lowest + TOLERANCE:
                return True
            lowest = min(lowest, value)
        return False

    def measure_levels(self) -> int:
        """Measure every level and the step below the mildest; return the number of follow-ups."""
        strongest = self.positions.severities[-1]
        positions = [position for position in self.positions.grid() if position <= strongest]
        return sum(self.similarity(position) is not None for position in positions)

    def _visited_values(self) -> Iterator[tuple[float, float]]:
        for position in sorted(self.visited):
            value = self.measured[position]
            if not isinstance(value, NotApplicable):
                yield position, value

    def _bracket(self, target: float) -> tuple[float, float]:
        """Return neighbours of the grid: the similarity is above the target at the first, and not at the second."""
        grid = self.positions.grid()
        mild: float | None = None
        before: dict[str, Value] | None = None
        for position in grid:
            values = self.positions.values(position)
            if values == before:
                break  # every bound is reached
            before, value = values, self.similarity(position)
            if value is not None and value > target:
                mild = position
            elif mild is not None:
                return mild, position
            elif value is not None:
                return position, position
        if mild is not None:
            return mild, mild
        raise self._unreachable(target, beyond=None)

    def _reaches(self, position: float, target: float) -> bool:
        """Return True if the similarity is not above a target, or if there is no follow-up."""
        value = self.similarity(position)
        return value is None or value <= target

    def _nearest(self, positions: Iterable[float], target: float) -> float:
        """Return the position whose similarity is nearest to a target, the first of equal ones."""
        return min(positions, key=lambda position: self._distance(position, target))

    def _distance(self, position: float, target: float) -> float:
        value = self.similarity(position)
        return np.inf if value is None else abs(value - target)

    def _check_falling(self, until: float) -> None:
        if self.rises(until):
            raise NotApplicable(f"SSIM does not fall steadily with {self.positions.parameter}: {self.words()}")

    def _unreachable(self, target: float, beyond: float | None) -> TargetUnreachable:
        self._check_falling(np.inf)
        curve = self.words()
        problem = self.measured.get(max(self.visited) if beyond is None else beyond)
        reason = f"; beyond, {problem}" if isinstance(problem, NotApplicable) and str(problem) else ""
        name = "the levels" if self.positions.parameter == LEVEL else self.positions.parameter
        return TargetUnreachable(f"SSIM {target:g} is out of reach of {name}{f' ({curve})' if curve else ''}{reason}")

    def _measure(self, position: float) -> float | NotApplicable:
        try:
            follow = self._make(position)
        except NotApplicable as reason:
            return reason
        except Exception as error:
            if self.positions.is_stated(position):
                raise
            return NotApplicable(f"it cannot be made: {error}")
        if "scale_applied" in follow.params:
            return NotApplicable("it is weakened where a lesion or the field leaves no room for more")
        self.last = (position, follow)
        return round(_similarity(self.seed).of(follow.image), 6)

    def _make(self, position: float) -> FollowUp:
        return self.positions.at(position).follow_up(self.seed, 1, self.restarted())


def generator_at(state: dict[str, Any]) -> np.random.Generator:
    """Return a random generator in a state."""
    rng = np.random.Generator(np.random.PCG64(0))
    rng.bit_generator.state = state
    return rng


def number_text(value: Value) -> str:
    """Return a value as text."""
    return f"[{', '.join(f'{part:.4g}' for part in value)}]" if isinstance(value, list) else f"{value:.4g}"


@per_seed
def _similarity(seed: PreparedSeed) -> FieldSimilarity:
    """Return the similarity to a seed's image.

    Raises:
        NotApplicable: The image or its field is smaller than the window.
    """
    try:
        return FieldSimilarity(seed.image, seed.spec, ~seed.frame)
    except ValueError as error:
        raise NotApplicable(f"it has no similarity: {error}") from None
