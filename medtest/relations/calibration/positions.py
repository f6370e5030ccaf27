"""Levels of a relation as a function of one number, the position: severities, and what lies between and beyond them.

Between two levels numbers are interpolated linearly. Below the mildest level they go on for one severity, and above the
strongest as far as the bounds of the settings allow. Whole numbers are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from medtest.relations.base import Relation
from medtest.relations.calibration.interpolation import Limits, Value, interpolated, is_numeric, level_fields

LEVEL = "level"
"""Name of the position itself, of which all numbers of the levels are functions."""
_BEYOND = (1, 3, 7, 15, 31, 63)
"""Severities above the strongest level that are tried."""
_NEAR = 1e-3
"""Distance from a bound that is excluded, as share of the mildest value."""

Values: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True, kw_only=True)
class Positions:
    """Values of the solved parameters by position.

    Attributes:
        relation: The relation.
        parameter: Name of the solved parameter, :data:`LEVEL` for all together.
        names: Names of the values that change.
        severities: Severities of the levels, ascending.
        stated: Values of each level.
        limits: Bounds of each value.
    """

    relation: Relation
    parameter: str
    names: tuple[str, ...]
    severities: tuple[int, ...]
    stated: tuple[Values, ...]
    limits: Mapping[str, Limits]

    @classmethod
    def of(cls, relation: Relation, parameter: str | None) -> Self:
        """Return the positions of a relation of which :func:`parameters` is not empty."""
        severities, levels = _levels(relation)
        fields = _changing(relation)
        parameter = parameter or (fields[0] if len(fields) == 1 else LEVEL)
        names = fields if parameter == LEVEL else (parameter,)
        return cls(
            relation=relation,
            parameter=parameter,
            names=names,
            severities=severities,
            stated=tuple({name: level[name] for name in names} for level in levels),
            limits={name: _limits(relation, name, [level[name] for level in levels]) for name in names},
        )

    def grid(self) -> list[float]:
        """Return the positions that are tried one after the other, the mildest first."""
        first, last = self.severities[0], self.severities[-1]
        return [first - 1.0, *map(float, self.severities), *(float(last + step) for step in _BEYOND)]

    def is_stated(self, position: float) -> bool:
        """Return True for the position of a level."""
        return position in self.severities

    def values(self, position: float) -> dict[str, Value]:
        """Return the values at a position."""
        return {name: self._value(name, position) for name in self.names}

    def shown(self, position: float) -> Value:
        """Return the recorded form of a position: the value of the parameter, or the position."""
        if self.parameter == LEVEL:
            return round(position, 6)
        return self._value(self.parameter, position)

    def at(self, position: float) -> Relation:
        """Return the relation whose severity 1 has the values at a position.

        Raises:
            ValueError: The relation's settings do not allow them.
        """
        settings: Any = self.relation.settings
        levels: Mapping[int, Any] = settings.levels
        mildest, strongest = levels[self.severities[0]], levels[self.severities[-1]]
        values = self.values(position)
        is_model = isinstance(mildest, BaseModel)
        level = type(mildest).model_validate({**mildest.model_dump(), **values}) if is_model else {**mildest, **values}
        # A relation that reserves room for its strongest level draws the same with the strongest level beside.
        beside = {2: strongest} if position < self.severities[-1] else {}
        changed = settings.model_copy(update={"levels": {1: level, **beside}, "severities": [1], "calibrate": None})
        tuned: Relation = type(self.relation)(changed)
        return tuned

    def between(self, low: float, high: float, fraction: float) -> float | None:
        """Return a position between two whose values differ from those of both, None if there is none.

        Beyond a bound values stay the same: that part is left out.
        """
        ends = self.values(low), self.values(high)
        while ends[0] != ends[1] and (middle := round(low + (high - low) * fraction, 9)) not in (low, high):
            values = self.values(middle)
            if values not in ends:
                return middle
            low, high = (middle, high) if values == ends[0] else (low, middle)
        return None

    def _value(self, name: str, position: float) -> Value:
        value = interpolated(self.severities, [level[name] for level in self.stated], position, self.limits[name])
        return [round(number, 9) for number in value] if isinstance(value, list) else round(value, 9)


def parameters(relation: Relation) -> tuple[str, ...]:
    """Return the names of the numbers that every level of a relation has; empty without levels."""
    _, levels = _levels(relation)
    return tuple(name for name in (levels or [{}])[0] if all(is_numeric(level.get(name)) for level in levels))


def _changing(relation: Relation) -> tuple[str, ...]:
    """Return the numbers that the levels themselves state; those that they share if there is no other."""
    shared = getattr(relation.settings, "params", {})
    names = parameters(relation)
    return tuple(name for name in names if name not in shared) or names


def _levels(relation: Relation) -> tuple[tuple[int, ...], list[dict[str, Any]]]:
    """Return severities and values of all levels, ascending."""
    settings = relation.settings
    levels = getattr(settings, "levels", None)
    if not isinstance(levels, Mapping):
        return (), []
    severities = tuple(sorted(levels))
    shared = getattr(settings, "params", {})  # of transforms of other libraries
    rows = []
    for severity in severities:
        own = {name: value for name, value in level_fields(levels[severity]).items() if name}
        rows.append({**(shared if isinstance(shared, Mapping) else {}), **own})
    return severities, rows


def _limits(relation: Relation, name: str, stated: Sequence[Value]) -> Limits:
    """Return the bounds of a number: those of its field, and 0 for numbers that are positive at every level."""
    numbers = [number for value in stated for number in (value if isinstance(value, list | tuple) else [value])]
    near = _NEAR * abs(numbers[0])
    low, high = (0.0 if min(numbers) > 0 else -math.inf), (0.0 if max(numbers) < 0 else math.inf)
    level = next(iter(relation.settings.levels.values()))
    info: FieldInfo | None = type(level).model_fields.get(name) if isinstance(level, BaseModel) else None
    for bound in info.metadata if info is not None else ():
        for key, inward in (("ge", 0.0), ("gt", near)):
            if getattr(bound, key, None) is not None:
                low = max(low, getattr(bound, key) + inward)
        for key, inward in (("le", 0.0), ("lt", near)):
            if getattr(bound, key, None) is not None:
                high = min(high, getattr(bound, key) - inward)
    return low, high
