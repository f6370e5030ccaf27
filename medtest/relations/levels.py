"""Severity levels as data: levels, the check that they increase, and published ranges."""

from __future__ import annotations

from typing import Any, Generic, Literal, Self, TypeVar, cast

import numpy as np
from pydantic import Field, model_validator

from medtest.core.cases import Params
from medtest.core.plugins import PartSettings, wrong_at
from medtest.relations.base import PUBLISHED_SEVERITY, RelationSettings

_SEEDS = 2**53
"""Upper bound of noise seeds, so that any JSON reader keeps them exact."""


class Level(PartSettings):
    """Parameters of one severity; a level with several parameters defines its ``scale``."""

    @property
    def scale(self) -> float:
        """Physical distance from identity, > 0, in the relation's ``scale_unit``; increases with severity."""
        (name,) = type(self).model_fields
        return float(getattr(self, name))


L = TypeVar("L", bound=Level)


class LeveledSettings(RelationSettings, Generic[L]):
    """Settings of a relation whose severities are defined in YAML.

    ``LeveledSettings[ALevel]`` is written at the top of a module: inside a class it could not be pickled.

    Attributes:
        levels: Parameters by severity. Their scales must increase, and every chosen severity must be defined.
    """

    levels: dict[int, L] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        low = [severity for severity in self.levels if severity < 1]
        if low:
            raise wrong_at("levels", f"severities from 1 (0 is kept for published mode); not {low[0]}")
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


class PublishedRanges(PartSettings):
    """Ranges of published mode: each parameter ``x`` of a level is drawn from ``x_low`` to ``x_high``, inclusive."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        for low in type(self).model_fields:
            high = f"{low.removesuffix('low')}high"
            if low.endswith("low") and getattr(self, low) > getattr(self, high):
                raise ValueError(f"{low} is above {high}")
        return self

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return one uniform value per parameter in the order of the ranges; integers if the ends are integers."""
        drawn: dict[str, Any] = {}
        for name in type(self).model_fields:
            if name.endswith("_low"):
                key = name.removesuffix("_low")
                low, high = getattr(self, name), getattr(self, f"{key}_high")
                whole = isinstance(low, int)
                drawn[key] = int(rng.integers(low, high + 1)) if whole else float(rng.uniform(low, high))
        return drawn


class RangedSettings(LeveledSettings[L], Generic[L]):
    """Settings of a relation whose parameters can also be drawn from published ranges; adds ``published``.

    Attributes:
        mode: ``levels`` (fixed severities from YAML) or ``published`` (parameters drawn from the ranges).
        published: The ranges.
    """

    mode: Literal["levels", "published"] = "levels"
    published: PartSettings

    @property
    def drawn(self) -> bool:
        """Whether the mode is ``published``."""
        return self.mode == "published"

    def level(self, severity: int, rng: np.random.Generator) -> L:
        """Return the level of a severity; in published mode one drawn from the :class:`PublishedRanges`."""
        if severity != PUBLISHED_SEVERITY:
            return self.levels[severity]
        kind = type(next(iter(self.levels.values())))
        return cast(L, kind.model_construct(**cast(PublishedRanges, self.published).draw(rng)))


def noise_seed(rng: np.random.Generator) -> int:
    """Draw a noise seed that any JSON reader keeps exact."""
    return int(rng.integers(_SEEDS))


def number(params: Params, key: str) -> float:
    """Return a stored parameter that is a number."""
    return float(cast(float, params[key]))
