"""Oracles that judge differently from the bundled ones, as later revisions of them would."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from runner_parts import Blobs, Threshold, make_suite, plan_of

from medtest.core.cases import Effect, MaskOutput, Output, PreparedSeed, Seed, SeedRef
from medtest.core.oracles.base import Oracle
from medtest.suite.model import Suite
from medtest.tasks.classify.oracle import Labels
from medtest.tasks.region.oracle import Regions
from medtest.tasks.restore.oracle import Quality
from medtest.tasks.segment.oracle import Masks


class HalfMasks(Masks):
    """Gives half of the Dice of revision 1."""

    revision: ClassVar[int] = 2

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        scores = super().score(answer=answer, source=source, seed=seed, effect=effect)
        return scores | {"dice": None if scores["dice"] is None else scores["dice"] / 2}


class StallingMasks(HalfMasks):
    """Judges two seeds and hangs on the third."""

    def score(self, **case: Any) -> dict[str, float | None]:
        if case["seed"].ref.seed_id.endswith("2"):
            time.sleep(3600)
        return super().score(**case)


class AreaMasks(Masks):
    """Gives an additional score."""

    scores: ClassVar[tuple[str, ...]] = (*Masks.scores, "pixels")

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        scores = super().score(answer=answer, source=source, seed=seed, effect=effect)
        assert isinstance(answer, MaskOutput)
        return scores | {"pixels": float(answer.mask.sum())}


class BrokenMasks(Masks):
    """Raises on every answer."""

    revision: ClassVar[int] = 3

    def score(self, **case: Any) -> dict[str, float | None]:
        raise RuntimeError("no score today")


class LostBlobs(Blobs):
    """Blobs of which every second seed cannot be read any more."""

    def load(self, ref: SeedRef) -> Seed:
        if int(ref.seed_id[-1]) % 2:
            raise FileNotFoundError(2, "No such file", ref.locator)
        return super().load(ref)

    def digest(self) -> str:
        return Blobs(dataset=self.dataset, settings=self.settings, root=None, suite_seed=self.suite_seed).digest()


def judged_by(suite: Suite, oracle: type[Oracle]) -> Suite:
    """Return the suite with another class of its oracle."""
    own = suite.oracle.part
    info = replace(own.info, target=f"{oracle.__module__}:{oracle.__name__}")
    return replace(suite, oracle=replace(suite.oracle, part=replace(own, info=info)))


def logged_suite(log: Path, *, system: type[Threshold] = Threshold, **more: Any) -> Suite:
    """Return a suite whose system writes its calls to a file."""
    suite = make_suite(systems={"bright": {"log": str(log)}}, **more)
    return replace(suite, systems=tuple(plan_of("systems", p.id, system, log=str(log)) for p in suite.systems))


def calls(log: Path) -> list[str]:
    """Return the addresses of the system's calls."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [address for line in lines for address in line.split()[1:]]


class LaterLabels(Labels):
    """Gives half of the probability of revision 1."""

    revision: ClassVar[int] = 2

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        scores = super().score(answer=answer, source=source, seed=seed, effect=effect)
        return scores | {"probability": None if scores["probability"] is None else scores["probability"] / 2}


class LaterQuality(Quality):
    """Gives half of the similarity of revision 1."""

    revision: ClassVar[int] = 2

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        scores = super().score(answer=answer, source=source, seed=seed, effect=effect)
        return scores | {"ssim": None if scores["ssim"] is None else scores["ssim"] / 2}


class LaterRegions(Regions):
    """Gives half of the Dice of revision 1."""

    revision: ClassVar[int] = 2

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        scores = super().score(answer=answer, source=source, seed=seed, effect=effect)
        return scores | {"dice": None if scores["dice"] is None else scores["dice"] / 2}
