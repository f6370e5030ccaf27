"""Strengths of a relation between its levels.

A position is a number from 0 (the mildest chosen level) to the number of chosen levels - 1 (the strongest). Between two
levels every number of the level is interpolated linearly; whole numbers are rounded.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medtest.relations.base import Relation
from medtest.relations.calibration.searching.queries import level_fields


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

    def fields(self, position: float) -> dict[str, float]:
        """Return the numbers of the level at a position."""
        severities = self.relation.severities()
        levels = self.relation.settings.levels
        below = min(int(position), len(severities) - 1)
        low = level_fields(levels[severities[below]])
        share = position - below
        if share <= 0.0:
            return low
        high = level_fields(levels[severities[below + 1]])
        return {name: _number(low[name], high[name], share) for name in low}

    def scale(self, position: float) -> float:
        """Return the scale of the level at a position."""
        level = self._level(position)
        return float(getattr(level, "scale", level))

    def _level(self, position: float) -> Any:
        fields = self.fields(position)
        like = next(iter(self.relation.settings.levels.values()))
        return like.model_copy(update=fields) if hasattr(like, "model_copy") else fields[""]

    def relation_at(self, position: float) -> tuple[Relation, int]:
        """Return the relation with the level at a position among its own, and that level's severity.

        The level takes its place in the order of all levels, because some relations look at the level below, and at the
        strongest.
        """
        severities = self.relation.severities()
        levels: Mapping[int, Any] = self.relation.settings.levels
        below = min(int(position), len(severities) - 1)
        if position == below:
            return self.relation, severities[below]
        last = severities[below]
        inner = [severity for severity in sorted(levels) if last < severity < severities[below + 1]]
        scale = self.scale(position)
        weaker = [severity for severity in inner if float(getattr(levels[severity], "scale", levels[severity])) < scale]
        last = weaker[-1] if weaker else last
        order = sorted(levels)
        at = order.index(last) + 1
        sequence = [*(levels[severity] for severity in order[:at]), self._level(position)]
        sequence += [levels[severity] for severity in order[at:]]
        moved = copy.copy(self.relation)
        moved.settings = self.relation.settings.model_copy(update={"levels": dict(enumerate(sequence, start=1))})
        return moved, at + 1


def _number(low: float, high: float, share: float) -> float:
    value = low + (high - low) * share
    return round(value) if isinstance(low, int) and isinstance(high, int) else float(value)
