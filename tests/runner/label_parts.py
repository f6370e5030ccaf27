"""Parts for tests of labels: shades as seeds, a classifier by mean level, a relation with frames."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from runner_parts import Dim, plan_of

from medtest.core.cases import Address, Classes, FollowUp, Image, Json, Params, PreparedSeed, Seed, SeedRef
from medtest.core.plugins import PartSettings
from medtest.relations.base import Relation, RelationSettings
from medtest.seeds.base import SeedSource
from medtest.suite.model import Criterion, OraclePlan, Prepare, Privacy, Suite
from medtest.systems.base import LabelAnswer, Missing, RawAnswer, System, SystemSettings
from medtest.tasks.classify.oracle import Labels

SHADES = Classes(names=("dark", "middle", "bright"))
FINDINGS = Classes(names=("red", "green", "blue"), multi=True)
LEVELS = (60, 120, 180)


class ShadeSettings(PartSettings):
    """Number of seeds and their properties."""

    count: int = 6
    size: int = 48
    multi: bool = False
    labelled: bool = True
    masks: bool = False


class Shades(SeedSource):
    """Noise of a mean level: its class. With ``multi`` each colour may be bright or not: the findings."""

    Settings = ShadeSettings
    task: ClassVar[str] = "label"
    phantom: ClassVar[bool] = True

    def classes(self) -> Classes:
        return FINDINGS if self.settings.multi else SHADES

    def refs(self) -> Sequence[SeedRef]:
        return tuple(
            SeedRef(dataset=self.dataset, seed_id=f"shade-{i:03d}", cluster=f"video{i // 2}", locator=str(i))
            for i in range(self.settings.count)
        )

    def load(self, ref: SeedRef) -> Seed:
        index, n = int(ref.locator), self.settings.size
        rng = ref.source.generator(self.suite_seed)
        if self.settings.multi:
            bright = [bool(index >> bit & 1) for bit in range(3)]
            level = np.array([190 if yes else 60 for yes in bright])
            labels = tuple(name for name, yes in zip(FINDINGS.names, bright, strict=True) if yes)
        else:
            level, labels = np.array([LEVELS[index % 3]] * 3), (SHADES.names[index % 3],)
        image = np.clip(rng.normal(level, 12, (n, n, 3)), 0, 255).astype(np.uint8)
        mask = np.zeros((n, n), np.bool_)
        mask[n // 4 : n // 2, n // 4 : n // 2] = True
        return Seed(
            ref=ref,
            image=image,
            expected=mask if self.settings.masks else None,
            kind="label",
            classes=self.classes(),
            labels=labels if self.settings.labelled else None,
        )

    def digest(self) -> str:
        return f"shades-{self.suite_seed}-{self.settings!r}"


class Fade(Dim):
    """Removes light in frames: frame 0 is the source."""

    group = "sequence"

    def frames(self) -> int:
        return 4

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        raise AssertionError("a sequence is sampled frame by frame")

    def sample_frame(
        self, seed: PreparedSeed, severity: int, frame: int, rng: np.random.Generator, sequence: np.random.Generator
    ) -> dict[str, Any]:
        return {"loss": frame * severity * 8, "noise_seed": int(rng.integers(2**31)), "way": int(sequence.integers(9))}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        loss = int(str(params["loss"]))
        if not loss:
            return FollowUp(image=seed.image, params=params, scale=0.0)
        image = np.clip(seed.image.astype(np.int16) - loss, 0, 255).astype(np.uint8)
        return FollowUp(image=image, params=params, scale=float(loss))


class MeterSettings(SystemSettings):
    """Form of the answers, and faults.

    Attributes:
        form: probabilities, logits or labels.
        turned: Its classes are in reverse order.
        unfit: It has other classes.
        mask: It gives a mask as well.
        fault: nan, tie, sum, count (of scores), missing, raise; "" for none.
        when: Part of an address on which the fault shows.
        meet: A file: the answers to the first image wait for it; those to the second make it and then take a while.
    """

    form: str = "probabilities"
    turned: bool = False
    unfit: bool = False
    mask: bool = False
    fault: str = ""
    when: str = ""
    meet: str = ""


class Meter(System):
    """Classifies an image by its mean level; of colours, each as bright or not."""

    Settings = MeterSettings
    tasks: ClassVar[tuple[str, ...]] = ("label",)

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self.answer_form = settings.form
        if settings.turned:
            self.classes = Classes(names=SHADES.names[::-1])
        if settings.unfit:
            self.classes = Classes(names=("dark", "middle"))

    def fingerprint(self) -> dict[str, Json]:
        return {"form": self.settings.form}

    def open(self, *, device: str, threads: int) -> None:
        return

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        if self.settings.meet and addresses:
            self._meet(Path(self.settings.meet), addresses[0].seed_id)
        return [self._one(image, str(address)) for image, address in zip(images, addresses, strict=True)]

    def _meet(self, sign: Path, seed_id: str) -> None:
        if seed_id.endswith("001"):
            sign.touch()
            time.sleep(0.1)
        for _ in range(600 if seed_id.endswith("000") else 0):
            if sign.exists():
                return
            time.sleep(0.05)

    def _one(self, image: Image, address: str) -> RawAnswer:
        fault = self.settings.fault if self.settings.fault and self.settings.when in address else ""
        if fault == "raise":
            raise ValueError("cannot do this one")
        if fault == "missing":
            return Missing("no prediction")
        logits = -np.abs(float(image.mean()) - np.array(LEVELS)) / 10
        if self.settings.turned:
            logits = logits[::-1]
        scores = np.exp(logits) / np.exp(logits).sum()
        if fault == "count":
            return scores[:2] / scores[:2].sum()
        scores = {"nan": scores * np.nan, "tie": np.array([0.4, 0.4, 0.2]), "sum": scores * 1.1}.get(fault, scores)
        if self.settings.form == "logits":
            scores = logits
        if self.settings.form == "labels":
            return int(np.argmax(logits))
        return LabelAnswer(scores=scores, mask=image.mean(axis=2) > 128) if self.settings.mask else scores


class Colours(Meter):
    """Answers the bright colours."""

    def _one(self, image: Image, address: str) -> RawAnswer:
        logits = (image.reshape(-1, 3).mean(axis=0) - 128) / 20
        if self.settings.form == "labels":
            return [name for name, logit in zip(FINDINGS.names, logits, strict=True) if logit > 0]
        return np.asarray(1 / (1 + np.exp(-logits)))


def label_suite(
    *,
    seeds: dict[str, Any] | None = None,
    systems: dict[str, dict[str, Any]] | None = None,
    relations: dict[str, type[Relation]] | None = None,
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    against: Any = "source",
    score: str = "label",
    threshold: float = 0.0,
    privacy: Privacy | None = None,
    gates: Any = (),
    system: type[System] = Meter,
) -> Suite:
    """Return a suite of these parts."""
    chosen = relations if relations is not None else {"dim": Dim, "fade": Fade}
    return Suite(
        name="label_suite",
        version="1",
        description="for tests",
        seed=7,
        seeds=(plan_of("seeds", "shades", Shades, **(seeds or {})),),
        relations=tuple(plan_of("relations", name, cls, severities=list(severities)) for name, cls in chosen.items()),
        systems=tuple(
            plan_of("systems", name, system, **settings) for name, settings in (systems or {"meter": {}}).items()
        ),
        oracle=OraclePlan(
            part=plan_of("oracles", "labels", Labels),
            primary=Criterion(score=score, threshold=threshold, against=against),
            scores=("label", "probability"),
            thresholds=(0.25, 0.5),
            against=("source", "truth"),
        ),
        gates=tuple(gates),
        privacy=privacy or Privacy(),
        prepare=Prepare(size=None),
        composed={"name": "label_suite", "relations": {name: {} for name in chosen}},
    )


__all__ = ["FINDINGS", "SHADES", "Colours", "Fade", "Meter", "RelationSettings", "Shades", "label_suite"]
