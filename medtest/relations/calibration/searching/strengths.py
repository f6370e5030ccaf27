"""Strengths of a relation between its levels.

A position is a number from 0 (the mildest chosen level) to the number of chosen levels - 1 (the strongest). Between two
levels every number of the level is interpolated linearly; whole numbers are rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from medtest.relations.base import Relation
from medtest.relations.calibration.interpolation import Value, interpolated, level_fields


@dataclass(frozen=True)
class Strengths:
    """Strengths of a relation between its chosen levels.

    Args:
        relation: The relation, of which :func:`~medtest.relations.calibration.searching.queries.unfit` says None.
    """

    relation: Relation

    @property
    def top(self) -> float:
        """Position of the strongest chosen level."""
        return float(len(self.relation.severities()) - 1)

    def position(self, severity: int) -> float:
        """Return the position of a chosen level."""
        return float(self.relation.severities().index(severity))

    def between(self, low: float, high: float, fraction: float) -> float | None:
        """Return the position between two, None if the level there is that of one of them (whole numbers)."""
        middle = low + (high - low) * fraction
        return None if self.fields(middle) in (self.fields(low), self.fields(high)) else middle

    def fields(self, position: float) -> dict[str, Value]:
        """Return the numbers of the level at a position."""
        severities = self.relation.severities()
        stated = self.relation.levels()
        levels = [level_fields(stated[severity]) for severity in severities]
        places = range(len(severities))
        return {name: interpolated(places, [level[name] for level in levels], position) for name in levels[0]}

    def scale(self, position: float) -> float:
        """Return the scale of the level at a position."""
        return self.relation.scale_of(self._level(position))

    def _level(self, position: float) -> Any:
        fields = self.fields(position)
        like = next(iter(self.relation.levels().values()))
        if isinstance(like, BaseModel):
            return like.model_copy(update=fields)
        return fields if isinstance(like, Mapping) else fields[""]

    def relation_at(self, position: float) -> tuple[Relation, int]:
        """Return the relation with the level at a position among its own, and that level's severity.

        The level takes its place in the order of all levels, because some relations look at the level below, and at the
        strongest.
        """
        severities = self.relation.severities()
        levels = self.relation.levels()
        below = min(int(position), len(severities) - 1)
        if position == below:
            return self.relation, severities[below]
        last = severities[below]
        inner = [severity for severity in sorted(levels) if last < severity < severities[below + 1]]
        scale = self.scale(position)
        weaker = [severity for severity in inner if self.relation.scale_of(levels[severity]) < scale]
        last = weaker[-1] if weaker else last
        order = sorted(levels)
        at = order.index(last) + 1
        sequence = [*(levels[severity] for severity in order[:at]), self._level(position)]
        sequence += [levels[severity] for severity in order[at:]]
        return self.relation.with_levels(dict(enumerate(sequence, start=1))), at + 1
