"""Parts for the runner's tests: seeds, relations, systems that answer from pixels, and faulty ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, FollowUp, Image, Json, Params, PreparedSeed, Seed, SeedRef
from medtest.core.errors import NotApplicable
from medtest.core.plugins import PartInfo, PartSettings
from medtest.relations.base import Relation, RelationSettings
from medtest.relations.clinical.visible import VisibleRecolouring
from medtest.seeds.base import SeedSource
from medtest.suite.model import Criterion, OraclePlan, PartPlan, Prepare, Privacy, Suite
from medtest.systems.base import Missing, RawAnswer, System, SystemSettings
from medtest.tasks.segment.oracle import Masks


class BlobSettings(PartSettings):
    """Number and size of the seeds."""

    count: int = 4
    size: int = 64
    labelled: bool = True
    one_patient: bool = False


class Blobs(SeedSource):
    """A bright ellipse on a dark ground; its mask is the ellipse."""

    Settings = BlobSettings
    phantom = True

    def refs(self) -> Sequence[SeedRef]:
        return tuple(
            SeedRef(
                dataset=self.dataset,
                seed_id=f"patient-{i:04d}",
                cluster="patient-jane-doe" if self.settings.one_patient else f"video{i // 2}",
                strata=(("site", "north" if i % 2 else "south"),),
                locator=f"images/patient-{i:04d}.png",
            )
            for i in range(self.settings.count)
        )

    def load(self, ref: SeedRef) -> Seed:
        rng = ref.source.generator(self.suite_seed)
        n = self.settings.size
        image = rng.integers(20, 70, (n, n, 3)).astype(np.uint8)
        mask = np.zeros((n, n), np.uint8)
        centre = tuple(int(v) for v in rng.integers(n // 3, 2 * n // 3, 2))
        cv2.ellipse(mask, centre, (n // 5, n // 7), float(rng.uniform(0, 180)), 0, 360, 1, -1)
        image[mask > 0] = np.minimum(image[mask > 0].astype(int) + 130, 255).astype(np.uint8)
        return Seed(ref=ref, image=image, expected=mask.astype(bool) if self.settings.labelled else None)

    def digest(self) -> str:
        return f"blobs-{self.suite_seed}-{self.settings!r}"


class DimSettings(RelationSettings):
    """No settings."""


class Fading(VisibleRecolouring):
    """Removes a third of the light with each severity."""

    Settings = DimSettings
    group = "lighting"

    def between(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> Callable[[float], dict[str, Any]]:
        return lambda share: {"scale": severity - 1 + share}

    def recolour(self, seed: PreparedSeed, params: Params) -> Callable[[Image], Image]:
        return lambda colours: (colours * max(1 - params["scale"] / 3, 0.0)).astype(np.uint8)  # type: ignore[operator]


class Dim(Relation):
    """Removes light and adds a little noise, so that bytes depend on the generator."""

    Settings = DimSettings
    group = "lighting"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        return {"loss": 15.0 * severity, "noise_seed": int(rng.integers(2**31)), "scale": float(severity)}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        noise = np.random.default_rng(params["noise_seed"]).normal(0, 4, seed.image.shape)
        image = np.clip(seed.image - params["loss"] + noise, 0, 255).astype(np.uint8)
        return FollowUp(image=image, params=params, scale=params["scale"], facts={"object_area": 0.25})


class Picky(Dim):
    """Has no room for odd severities, breaks on severity 4, and returns another size on severity 2."""

    group = "objects"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        if severity % 2:
            raise NotApplicable("no room off the lesion")
        if severity == 4:
            raise RuntimeError(f"broken on {seed.ref.seed_id} at /home/someone/{seed.ref.locator}")
        return super().sample(seed, severity, rng)

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        follow_up = super().apply(seed, params)
        return FollowUp(image=follow_up.image[:-1], params=params, scale=follow_up.scale)


class Stuck(Dim):
    """Hangs on severity 2."""

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        if params["scale"] == 2.0:
            time.sleep(3600)
        return super().apply(seed, params)


ODD = "half \ud83d \x1b[2J\x9b \u202etxet Authorization: Bearer sk-live-abc12345 api_key=q9w8 C:/x"


class ThresholdSettings(SystemSettings):
    """Threshold and faults.

    Attributes:
        level: Grey level above which a pixel is lesion.
        fault: raise, hang, nan, shape, exit, segfault, missing, leak, short, mixed; "" for none.
        when: Part of an address on which the fault shows; "" for every case.
        once: A file made at the first fault; later batches have none.
        pause: Seconds per batch.
        gate: A file without which a batch with ``when`` waits; "" for none.
        log: A file that gets one line per call.
    """

    level: int = 110
    fault: str = ""
    when: str = ""
    once: str = ""
    pause: float = 0.0
    gate: str = ""
    log: str = ""


class Threshold(System):
    """Segments pixels brighter than the threshold."""

    Settings = ThresholdSettings
    hoard: ClassVar[list[NDArray[Any]]] = []

    def fingerprint(self) -> dict[str, Json]:
        return {"level": self.settings.level}

    def open(self, *, device: str, threads: int) -> None:
        if self.settings.fault == "open":
            raise OSError("the weights are torn")
        if self.settings.fault == "open_exit":
            os._exit(7)

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        if self.settings.log:
            with Path(self.settings.log).open("a") as file:
                file.write(f"{os.getpid()} {' '.join(map(str, addresses))}\n")
        if self.settings.pause:
            time.sleep(self.settings.pause)
        while self.settings.gate and not Path(self.settings.gate).exists():
            if not any(self.settings.when in str(a) for a in addresses):
                break
            time.sleep(0.05)
        hit = [bool(self.settings.fault) and self.settings.when in str(a) for a in addresses]
        if any(hit) and self.settings.once:
            mark = Path(self.settings.once)
            hit = [False] * len(hit) if mark.exists() else hit
            mark.touch()
        if any(hit):
            self._whole_batch()
        answers: list[Any] = [(image.max(axis=2) > self.settings.level) for image in images]
        answers = [self._one(answer) if bad else answer for answer, bad in zip(answers, hit, strict=True)]
        return answers[:-1] if any(hit) and self.settings.fault == "short" else answers

    def _whole_batch(self) -> None:
        match self.settings.fault:
            case "raise":
                raise ValueError("cannot do this one")
            case "odd":
                raise ValueError(ODD)
            case "hang":
                time.sleep(3600)
            case "exit":
                os._exit(3)
            case "segfault":
                import ctypes

                ctypes.string_at(0)
            case "sysexit":
                raise SystemExit(5)
            case "leak":
                self.hoard.append(np.ones(64_000_000, np.uint8))

    def _one(self, answer: NDArray[Any]) -> RawAnswer:
        match self.settings.fault:
            case "nan":
                return np.full(answer.shape, np.nan, np.float32)
            case "shape":
                return np.zeros((3, *answer.shape), np.float32)
            case "missing":
                return Missing("no prediction")
            case "none":
                return None  # type: ignore[return-value]
        return answer


def plan_of(family: Any, identity: str, cls: type[Any], **settings: Any) -> PartPlan:
    info = PartInfo(family=family, name=identity, target=f"{cls.__module__}:{cls.__name__}")
    return PartPlan(id=identity, info=info, settings=cls.Settings(**settings))


def make_suite(
    *,
    seeds: int = 4,
    systems: dict[str, dict[str, Any]] | None = None,
    relations: dict[str, type[Relation]] | None = None,
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    repeats: int = 1,
    seed: int = 7,
    size: int = 64,
    labelled: bool = True,
    against: Any = "truth",
    threshold: float = 0.25,
    privacy: Privacy | None = None,
    one_patient: bool = False,
) -> Suite:
    """Return a suite of these parts."""
    chosen = relations if relations is not None else {"dim": Dim, "dim2": Dim}
    return Suite(
        name="runner_suite",
        version="1",
        description="for tests",
        seed=seed,
        seeds=(plan_of("seeds", "blobs", Blobs, count=seeds, size=size, labelled=labelled, one_patient=one_patient),),
        relations=tuple(
            plan_of("relations", name, cls, severities=list(severities), repeats=repeats)
            for name, cls in chosen.items()
        ),
        systems=tuple(
            plan_of("systems", name, Threshold, **settings) for name, settings in (systems or {"bright": {}}).items()
        ),
        oracle=OraclePlan(
            part=plan_of("oracles", "masks", Masks),
            primary=Criterion(threshold=threshold, against=against),
            scores=("dice", "iou"),
            thresholds=(0.25,),
            against=("truth", "source"),
        ),
        privacy=privacy or Privacy(),
        prepare=Prepare(size=None),
        composed={"name": "runner_suite", "relations": {"dim": {}}},
    )
