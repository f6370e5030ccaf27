"""Parts for searches: a relation that writes its strength into the picture, and systems with known thresholds."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np
from pydantic import Field
from question_parts import question_suite
from runner_parts import Blobs, make_suite, plan_of

from medtest.core.cases import Address, FollowUp, Image, Json, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.relations.base import Relation
from medtest.relations.levels import Level, LeveledSettings, number
from medtest.suite.model import Suite
from medtest.systems.base import RawAnswer, System, SystemSettings

TOP = 65535
LEVELS = {1: 0.2, 2: 0.4, 3: 0.6, 4: 0.8, 5: 1.0}


class CodeLevel(Level):
    """One severity: the strength that is written."""

    strength: float = Field(gt=0.0, le=1.0)


class CodeSettings(LeveledSettings[CodeLevel]):
    """Ranges of strengths without room, and ranges at which it breaks."""

    no_room: tuple[float, float] = (2.0, 2.0)
    broken: tuple[float, float] = (2.0, 2.0)


class Code(Relation):
    """Write strength and a drawn angle into the first pixels, 16 bits each."""

    Settings = CodeSettings
    group: ClassVar[str] = "objects"
    nested: ClassVar[bool] = True

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        strength, settings = self.settings.levels[severity].strength, self.settings
        if settings.no_room[0] < strength < settings.no_room[1]:
            raise NotApplicable("no room")
        if settings.broken[0] < strength < settings.broken[1]:
            raise RuntimeError("broken")
        return {"strength": strength, "angle": float(rng.uniform(0.0, 1.0))}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        image = seed.image.copy()
        for column, name in enumerate(("strength", "angle")):
            image[0, column, :2] = divmod(round(number(params, name) * TOP), 256)
        return FollowUp(image=image, params=params, scale=number(params, "strength"))


class ReaderSettings(SystemSettings):
    """Ranges of strength at which it fails, of angles outside which it does not, and its faults."""

    fails: tuple[tuple[float, float], ...] = ((0.53, 1.0),)
    angles: tuple[float, float] = (0.0, 1.0)
    jitter: float = 0.0
    log: str = ""
    pause: float = 0.0
    healed_by: str = ""
    fault_in: str = "_s0_f3_"
    sources_fail: str = ""


class StrengthReader(System):
    """Answer the lesion, or nothing if the picture's strength is in a failing range."""

    Settings = ReaderSettings

    def fingerprint(self) -> dict[str, Json]:
        return {}

    def open(self, *, device: str, threads: int) -> None:
        self._rng = np.random.default_rng(os.getpid() if self.settings.jitter < 0 else 5)

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        settings = self.settings
        if settings.log:
            with Path(settings.log).open("a") as file:
                file.writelines(f"{address}\n" for address in addresses)
        time.sleep(settings.pause)
        is_hit = bool(settings.healed_by) and any(settings.fault_in in str(address) for address in addresses)
        if is_hit and not Path(settings.healed_by).exists():
            raise ValueError("cannot do this one")
        lost = settings.sources_fail
        if lost and any(lost in str(address) for address in addresses):
            return [np.zeros(image.shape[:2], bool) for image in images]
        return [self._one(image, address.is_source) for image, address in zip(images, addresses, strict=True)]

    def _one(self, image: Image, is_source: bool) -> RawAnswer:
        strength, angle = (float(image[0, column, 0] * 256.0 + image[0, column, 1]) / TOP for column in (0, 1))
        strength += float(self._rng.uniform(-1, 1)) * self.settings.jitter
        low, high = self.settings.angles
        fails = not is_source and low <= angle <= high
        fails = fails and any(start <= strength <= end for start, end in self.settings.fails)
        answer = image.max(axis=2) > 128
        answer[:2] = False
        return (
            np.zeros_like(answer)
            if fails
            else cv2.morphologyEx(answer.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)).astype(bool)
        )


class Bluish(Code):
    """Remove blue as well, in squares, strength 1 all of it, so that the similarity falls with the strength."""

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        follow_up = super().apply(seed, params)
        image = follow_up.image.copy()
        rows, columns = np.indices(image.shape[:2]) // 4
        squares = (rows + columns) % 2 == 1
        squares[0] = False
        image[squares, 2] = image[squares, 2] * (1.0 - number(params, "strength"))
        return replace(follow_up, image=image)


def search_suite(
    search: Any = "mildest",
    *,
    seeds: int = 2,
    relation: dict[str, Any] | None = None,
    kind: type[Code] = Code,
    **settings: Any,
) -> Suite:
    """Return a suite with one searched relation and one system.

    Args:
        search: ``mildest`` or ``worst``.
        seeds: Source cases.
        relation: Settings of the relation.
        kind: Class of the relation.
        settings: Settings of the system; ``systems`` names several, each with its own.
    """
    systems = settings.pop("systems", {"reader": settings})
    stated = {"levels": {severity: {"strength": level} for severity, level in LEVELS.items()}, **(relation or {})}
    base = make_suite(seeds=seeds, size=32)
    return replace(
        base,
        seeds=(plan_of("seeds", "blobs", Blobs, count=seeds, size=32),),
        relations=(replace(plan_of("relations", "code", kind, **stated), search=search),),
        systems=tuple(plan_of("systems", name, StrengthReader, **own) for name, own in systems.items()),
    )


class Darken(Code):
    """Remove light, strength 1 all of it."""

    group: ClassVar[str] = "lighting"

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        image = (seed.image * (1.0 - number(params, "strength"))).astype(np.uint8)
        return FollowUp(image=image, params=params, scale=number(params, "strength"))


def asking_suite(search: Any = "mildest", *, seeds: int = 3, together: bool = False, **meter: Any) -> Suite:
    """Return a suite whose system answers three questions about each picture, in a stream."""
    base = question_suite(seeds=seeds, together=together, systems={"meter": meter})
    levels = {severity: {"strength": level} for severity, level in LEVELS.items()}
    return replace(base, relations=(replace(plan_of("relations", "darken", Darken, levels=levels), search=search),))
