"""Relation ``perturb``: an image transform of another library, judged like medtest's own relations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Self, cast

import cv2
import numpy as np
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from medtest.core.cases import Effect, FollowUp, Params, PreparedSeed
from medtest.core.errors import LesionInvisible, MedtestError
from medtest.core.plugins import WrongSetting, wrong_at, wrong_settings
from medtest.core.tasks.base import task_of
from medtest.preparation.visibility import is_below_floors, source_visibility, visibility
from medtest.relations.base import BY_SEVERITY, Relation, RelationSettings
from medtest.relations.levels import number
from medtest.relations.perturb.library import Companions, Moves
from medtest.relations.perturb.movement import coordinates, effect_of
from medtest.relations.perturb.rehearsal import rehearse
from medtest.relations.perturb.transform import transform_of


class PerturbSettings(RelationSettings):
    """Settings of ``perturb``.

    Attributes:
        transform: ``library.Class``.
        params: Arguments of the class that all levels share.
        levels: Arguments by severity; all of them are run unless ``severities`` chooses some.
    """

    transform: str
    params: dict[str, Any] = {}
    levels: dict[int, dict[str, Any]] = Field(default={1: {}}, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _run_all_levels(cls, values: Any) -> Any:
        if isinstance(values, dict) and "severities" not in values:
            levels = values.get("levels", {1: {}})
            numbered = [level for level in levels if str(level).isdigit()] if isinstance(levels, dict) else []
            if numbered:
                return {**values, "severities": numbered}
        return values

    @model_validator(mode="after")
    def _check_transform(self) -> Self:
        low = [severity for severity in self.levels if severity < 1]
        if low:
            raise wrong_at("levels", f"severities from 1; not {low[0]}")
        if len(set(self.severities)) != len(self.severities):
            raise wrong_at("severities", "each severity once")
        transform = transform_of(self.transform)
        wrong: list[WrongSetting] = []
        for severity in self.severities:
            problems = list(transform.mistakes(self.arguments(severity)))
            if not problems:
                sentences = rehearse(transform, self.arguments(severity))
                words = [f"another transform or other arguments: {sentence}" for sentence in sentences]
                problems = [WrongSetting(key=(), found=self.transform, allowed=text) for text in words]
            wrong += [self._placed(mistake, severity) for mistake in problems]
        if wrong:
            raise wrong_settings(list(dict.fromkeys(wrong)))
        return self

    def _placed(self, mistake: WrongSetting, severity: int) -> WrongSetting:
        """Return a mistake in arguments at its place in the settings."""
        in_level = bool(mistake.key and mistake.key[0] in self.levels[severity]) or mistake.found == "nothing"
        shared = bool(mistake.key and mistake.key[0] in self.params and not in_level)
        place = ("params",) if shared else ("levels", str(severity))
        if not mistake.key and not self.levels[severity]:
            place = ("params",) if self.params else ("transform",)
        return replace(mistake, key=(*place, *mistake.key))

    def arguments(self, severity: int) -> dict[str, Any]:
        """Return the stated arguments of a severity."""
        return {**self.params, **self.levels[severity]}


class Perturb(Relation):
    """Change a picture by a fresh object of another library's class, seeded from the case's address.

    Attributes:
        transform: The class, with its adapter.
    """

    Settings = PerturbSettings
    group: ClassVar[str] = "library"
    # A class decides which of them it has; together they keep questions from being judged wrongly.
    effects: ClassVar[frozenset[str]] = frozenset({"hide", "move", "recolour", "relight", "resize"})
    nested: ClassVar[bool] = True
    revision: ClassVar[int] = 2

    def __init__(self, settings: PerturbSettings) -> None:
        super().__init__(settings)
        try:
            self.transform = transform_of(settings.transform)
        except PydanticCustomError as error:  # a worker of another machine, which checks no settings again
            raise MedtestError(error.message()) from error
        self.scale_unit = growing_argument(settings.levels) or BY_SEVERITY  # type: ignore[misc]
        self.touches_frame = self.transform.moves is not Moves.NEVER  # type: ignore[misc]
        self.tells_places = self.transform.moves is not Moves.WITHOUT_MASKS  # type: ignore[misc]

    def fingerprint(self) -> dict[str, Any]:
        """Return the versions of the library and of what it computes with."""
        return {"library": self.transform.library.versions()}

    def unfit_for(self, task: str) -> tuple[str, str] | None:
        """Refuse movement without masks where answers have places."""
        if self.tells_places or task_of(task).labels or task_of(task).stream:
            return None
        return "transform", "a class that does not move pixels, or whose library moves masks alike"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the seed of the library's random numbers, which all severities share."""
        by_severity = self.scale_unit == BY_SEVERITY
        return {
            "transform": self.settings.transform,
            "arguments": self.settings.arguments(severity),
            "seed": int(rng.integers(2**31)),
            "scale": float(severity) if by_severity else self.scale_of(self.settings.levels[severity]),
        }

    def scale_of(self, level: Mapping[str, Any]) -> float:
        """Return the argument that grows with the severity."""
        return float(level[self.scale_unit])

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Change the picture; a class that moves nothing leaves the black frame unchanged.

        Raises:
            LesionInvisible: The lesion falls below the floors of visibility.
            NotApplicable: The picture is moved so that no mask can follow.
        """
        companions = Companions()
        if self.transform.moves is Moves.WITH_MASKS:
            companions = Companions(grid=coordinates(seed.height, seed.width))
        arguments = cast(Mapping[str, Any], params["arguments"])
        image, moved = self.transform.change(arguments, int(number(params, "seed")), seed.image, companions)
        effect = Effect() if moved.grid is None else effect_of(moved.grid)
        if not self.touches_frame:
            cv2.copyTo(seed.image, seed.frame.view(np.uint8), image)
        before = source_visibility(seed)
        if before is not None and is_below_floors(before, visibility(seed, image, effect)):
            raise LesionInvisible
        return FollowUp(image=image, params=params, scale=number(params, "scale"), effect=effect)


def growing_argument(levels: Mapping[int, Mapping[str, Any]]) -> str:
    """Return the one number above 0 that grows with the severity; "" if there is none, or several."""
    ordered = [levels[severity] for severity in sorted(levels)]
    names = [name for name in ordered[0] if all(_is_number(level.get(name)) for level in ordered)]
    growing = [
        name
        for name in names
        if ordered[0][name] > 0 and all(low[name] < high[name] for low, high in pairwise(ordered))
    ]
    return growing[0] if len(growing) == 1 else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
