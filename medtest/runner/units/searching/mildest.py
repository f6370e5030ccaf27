"""Search for the mildest failing follow-up: bisection between levels, then the ends of the bracket once more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from medtest.core.cases import Address
from medtest.relations.base import Relation
from medtest.relations.calibration.searching.bisection import bracket, next_value
from medtest.relations.calibration.searching.queries import BISECTIONS, QUERIES, REPEATED
from medtest.relations.calibration.searching.strengths import Strengths
from medtest.runner.units.searching.outcomes import QueryOutcome
from medtest.runner.units.searching.query import Over, ShownQuery

_NOTHING_BETWEEN = "nothing is left between the mildest failing picture and its passing neighbour"


class Mildest:
    """Search for the mildest failing follow-up of one seed; all its draws but the severity are fixed.

    Args:
        relation: The relation.
        levels: Outcome of each chosen level.
    """

    def __init__(self, relation: Relation, levels: Mapping[int, QueryOutcome]) -> None:
        self._strengths = Strengths(relation)
        self._levels = levels
        self._tried: dict[float, bool | None] = {
            self._strengths.position(severity): outcome.fails for severity, outcome in levels.items()
        }
        self._positions: list[float | None] = []
        self._repeats = True

    def query(self, number: int, earlier: Sequence[QueryOutcome], address: Address, suite_seed: int) -> ShownQuery:
        """Return the change that a query shows.

        Args:
            number: The query's number among those of the search.
            earlier: Outcomes of the queries before it.
            address: The case.
            suite_seed: The suite's ``seed``.

        Raises:
            Over: There is nothing left to show.
        """
        while len(self._positions) < number:
            position, outcome = self._next(), earlier[len(self._positions)]
            self._take(position, outcome)
        position = self._next()
        if position is None:
            raise Over(self._why_over())
        relation, severity = self._strengths.relation_at(position)
        rng = relation.generator(replace(address, frame=0), suite_seed)
        return ShownQuery(relation, severity, rng)

    def again(self, number: int) -> int:
        """Count earlier showings of the same picture; 0 for a new one."""
        query = QUERIES[self._strengths.relation.searched][number]
        return query.number // 2 + 1 if query.name == REPEATED else 0

    def _take(self, position: float | None, outcome: QueryOutcome) -> None:
        number = len(self._positions)
        self._positions.append(position)
        if position is None:
            return
        if number < BISECTIONS:
            self._tried[position] = outcome.fails
        elif outcome.fails not in (None, self._tried[position]):
            self._repeats = False

    def _next(self) -> float | None:
        number = len(self._positions)
        if number < BISECTIONS:
            return next_value(self._tried, self._strengths.between)
        low, high = bracket(self._tried)
        if high is None or not self._repeats:
            return None
        return high if low is None or number % 2 == 0 else low

    def _why_over(self) -> str:
        low, high = bracket(self._tried)
        if not self._repeats:
            return "the answer to the same picture differs, so that it is not shown again"
        if high is None:
            return "no level fails" if low is not None else "no level has a verdict"
        return _NOTHING_BETWEEN if low is not None else "the mildest level fails already"
