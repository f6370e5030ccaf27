"""Parts for follow-ups of the store's tests; workers import them by this module's name."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medtest.core.cases import Address, Effect, FollowUp, Image, Json, Params, PreparedSeed, Seed, SeedRef
from medtest.core.errors import NotApplicable
from medtest.core.plugins import PartInfo, PartSettings
from medtest.relations.base import Relation, RelationSettings
from medtest.relations.clinical.warps import Breathing
from medtest.runner.followups import StoreReport, make_followups
from medtest.seeds.base import SeedSource
from medtest.suite.model import Criterion, Invocation, OraclePlan, PartPlan, Prepare, Privacy, Suite
from medtest.systems.base import RawAnswer, System, SystemSettings
from medtest.tasks.segment.oracle import Masks


class SquareSettings(PartSettings):
    """Number of seeds; ``pause`` seconds for loading one; ``bad`` is a seed that cannot be loaded."""

    count: int = 3
    size: int = 64
    labelled: bool = True
    pause: float = 0.0
    bad: int = -1
    brighter: int = 0


class Squares(SeedSource):
    """A bright square on noise."""

    Settings = SquareSettings

    def refs(self) -> Sequence[SeedRef]:
        return tuple(
            SeedRef(
                dataset=self.dataset,
                seed_id=f"jane-doe-{i}",
                cluster=f"patient-{i // 2}",
                strata=(("site", "north" if i % 2 else "south"),),
                locator=f"images/jane-doe-{i}.png",
            )
            for i in range(self.settings.count)
        )

    def load(self, ref: SeedRef) -> Seed:
        time.sleep(self.settings.pause)
        number = int(ref.seed_id.rpartition("-")[2])
        if number == self.settings.bad:
            raise OSError(f"{ref.locator} is gone")
        rng = ref.source.generator(self.suite_seed)
        n = self.settings.size
        image = rng.integers(20, 90, (n, n, 3)).astype(np.uint8)
        mask = np.zeros((n, n), np.bool_)
        row, column = (int(v) for v in rng.integers(8, n // 2, 2))
        mask[row : row + 20, column : column + 16] = True
        image[mask] = 200 + self.settings.brighter
        return Seed(ref=ref, image=image, expected=mask if self.settings.labelled else None)

    def digest(self) -> str:
        return f"squares-{self.suite_seed}-{self.settings.model_dump_json(exclude={'pause'})}"


class DimSettings(RelationSettings):
    """``by`` is the light removed at severity 1."""

    by: float = 10.0


class Dim(Relation):
    """Removes light, with noise drawn from the generator."""

    Settings = DimSettings
    group = "lighting"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        return {"loss": self.settings.by * severity, "noise_seed": int(rng.integers(2**31)), "scale": float(severity)}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        noise = np.random.default_rng(params["noise_seed"]).normal(0, 4, seed.image.shape)
        image = np.clip(seed.image - params["loss"] + noise, 0, 255).astype(np.uint8)
        return FollowUp(image=image, params=params, scale=params["scale"], facts={"object_area": 0.25})


class Shift(Relation):
    """Moves the image to the right, and the expected mask with it; has no room on severity 5."""

    Settings = RelationSettings
    group = "motion"

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        if severity == 5:
            raise NotApplicable(f"no room beside {seed.ref.seed_id}")
        return {"columns": 2 * severity}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        image = np.zeros_like(seed.image)
        image[:, params["columns"] :] = seed.image[:, : -params["columns"]]
        matrix = [[1.0, 0.0, float(params["columns"])], [0.0, 1.0, 0.0]]
        return FollowUp(
            image=image,
            params=params,
            scale=float(params["columns"]),
            effect=Effect(kind="move", data={"matrix": matrix}),
        )


class Bend(Breathing):
    """Bends the image, and the expected mask with it."""


class TroubleSettings(RelationSettings):
    """Fault on severity 2: raise, exit, hang, shape; ``once`` is a file made at the first fault."""

    kind: str = "raise"
    once: str = ""


class Trouble(Dim):
    """Fails on severity 2."""

    Settings = TroubleSettings

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        return {"loss": 10.0 * severity, "noise_seed": int(rng.integers(2**31)), "scale": float(severity)}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        follow_up = super().apply(seed, params)
        if params["scale"] != 2.0:
            return follow_up
        if self.settings.once:
            mark = Path(self.settings.once)
            if mark.exists():
                return follow_up
            mark.touch()
        match self.settings.kind:
            case "raise":
                raise RuntimeError(f"broken on {seed.ref.seed_id} at /home/someone/{seed.ref.locator}")
            case "exit":
                os._exit(9)
            case "hang":
                time.sleep(3600)
        return FollowUp(image=follow_up.image[:-1], params=params, scale=2.0)


class Bright(System):
    """Segments bright pixels."""

    Settings = SystemSettings

    def fingerprint(self) -> dict[str, Json]:
        return {}

    def open(self, *, device: str, threads: int) -> None:
        """Nothing to load."""

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        return [image.max(axis=2) > 150 for image in images]


def _info(family: Any, cls: type[Any]) -> PartInfo:
    return PartInfo(family=family, name=cls.__name__.lower(), target=f"{__name__}:{cls.__name__}")


def make_suite(
    *,
    relations: dict[str, tuple[type[Relation], dict[str, Any]]] | None = None,
    privacy: Privacy | None = None,
    size: int | None = 64,
    seed: int = 7,
    name: str = "tiny",
    dataset: str = "squares",
    **seeds: Any,
) -> Suite:
    """Return a suite of these parts."""
    chosen = relations or {"dim": (Dim, {}), "shift": (Shift, {})}
    return Suite(
        name=name,
        version="1",
        description="",
        seed=seed,
        seeds=(PartPlan(id=dataset, info=_info("seeds", Squares), settings=SquareSettings(**seeds)),),
        relations=tuple(
            PartPlan(id=key, info=_info("relations", cls), settings=cls.Settings(**settings))
            for key, (cls, settings) in chosen.items()
        ),
        systems=(PartPlan(id="bright", info=_info("systems", Bright), settings=SystemSettings()),),
        oracle=OraclePlan(
            part=PartPlan(
                id="masks",
                info=PartInfo(family="oracles", name="masks", target="medtest.tasks.segment.oracle:Masks"),
                settings=Masks.Settings(),
            ),
            primary=Criterion(),
            scores=("dice",),
            thresholds=(0.25,),
            against=("truth",),
        ),
        privacy=privacy or Privacy(),
        prepare=Prepare(size=size),
    )


def go(suite: Suite, home: Path, folder: Path | None = None, *, workers: int = 0, **options: object) -> StoreReport:
    return make_followups(suite, Invocation(home=home, **options), folder, workers=workers)  # type: ignore[arg-type]


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for kind in ("images", "masks")
        for p in sorted((folder / kind).rglob("*"))
        if p.is_file()
    }
