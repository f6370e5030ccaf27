"""Severities as data: what a level is, and the check that a relation's levels make a ladder."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, Literal, Self, TypeVar, cast

from pydantic import Field, model_validator

from medtest.cases import Params
from medtest.plugins import PartSettings, wrong_at
from medtest.relations.base import RelationSettings


class Level(PartSettings):
    """Parameters of one severity."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """Physical distance from identity, > 0, in the relation's ``scale_unit``; grows with severity."""


L = TypeVar("L", bound=Level)


class LeveledSettings(RelationSettings, Generic[L]):
    """Settings of a relation whose severities are written in YAML.

    Attributes:
        levels: Parameters by severity. Their scales must grow, and every chosen severity must be among them.
    """

    levels: dict[int, L] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        low = [severity for severity in self.levels if severity < 1]
        if low:
            raise wrong_at("levels", f"severities from 1 (0 is kept for published mode); not {low[0]}")
        missing = [severity for severity in self.severities if severity not in self.levels]
        if missing:
            known = ", ".join(str(severity) for severity in sorted(self.levels))
            raise wrong_at("severities", f"severities that have a level: {known}; not {missing[0]}")
        if len(set(self.severities)) != len(self.severities):
            raise wrong_at("severities", "each severity once")
        ordered = sorted(self.levels.items())
        for (lower, mild), (upper, severe) in zip(ordered, ordered[1:], strict=False):
            if not 0.0 < mild.scale < severe.scale:
                raise wrong_at(
                    "levels",
                    f"levels must grow: level {lower} has scale {mild.scale:.6g}, level {upper} has {severe.scale:.6g}",
                )
        return self


class RangedSettings(LeveledSettings[L], Generic[L]):
    """Settings of a relation whose parameters can be drawn from published ranges as well; it adds ``published``.

    Attributes:
        mode: ``levels`` (fixed severities from YAML) or ``published`` (parameters drawn from the ranges).
    """

    mode: Literal["levels", "published"] = "levels"

    @property
    def drawn(self) -> bool:
        """Whether the mode is ``published``."""
        return self.mode == "published"


def number(params: Params, key: str) -> float:
    """Return a stored parameter that is a number."""
    return float(cast(float, params[key]))
