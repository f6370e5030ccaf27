"""The parts of the suite that ``benchmarks/api.py`` runs: pictures of noise, asked the 18 questions of MEDVQA-GI."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks._clock import processor_seconds
from medtest.core.cases import Ask, Seed, SeedRef
from medtest.core.plugins import PartInfo, PartSettings, part
from medtest.language.questions.questions import official
from medtest.runner.reporting.outcome import Limits, RunOutcome
from medtest.runner.run import run_suite
from medtest.seeds.base import SeedSource
from medtest.suite.model import Criterion, Invocation, OraclePlan, PartPlan, Prepare, Suite
from medtest.tasks.ask.oracle import Answers

RELATIONS = {"unchanged": {"repeats": 1}, "contrast": {"severities": [1, 2, 3, 4, 5]}}
CALLS_A_SEED = len(official()) * (1 + 1 + 5)


class NoiseSettings(PartSettings):
    """How many pictures."""

    count: int = 10


class Noise(SeedSource):
    """Pictures of noise, 100×110: about 33 KB as PNG, before and after a change of contrast."""

    Settings = NoiseSettings
    task = "answer"
    phantom = True

    def refs(self) -> Sequence[SeedRef]:
        """List the pictures."""
        items = tuple(one.name for one in official())
        return tuple(
            SeedRef(dataset=self.dataset, seed_id=f"n{number:05d}", items=items)
            for number in range(self.settings.count)
        )

    def load(self, ref: SeedRef) -> Seed:
        """Draw a picture."""
        image = ref.source.generator(self.suite_seed).integers(64, 192, (100, 110, 3), dtype=np.uint8)
        asks = tuple(Ask(item=one.name, text=one.text, kind=one.kind.value, id=one.id) for one in official())
        return Seed(ref=ref, image=image, kind="answer", asks=asks)

    def digest(self) -> str:
        """Return what it draws."""
        return f"noise-{self.suite_seed}-{self.settings!r}"


def noise_suite(base_url: str, seeds: int, in_flight: int) -> Suite:
    """Return the suite."""

    def plan(family: str, name: str, **settings: object) -> PartPlan:
        info = part(family, name)  # type: ignore[arg-type]
        return PartPlan(id=name, info=info, settings=info.load().Settings(**{**info.defaults, **settings}))

    noise = PartInfo(family="seeds", name="noise", target="benchmarks._noise_suite:Noise")
    return Suite(
        name="benchmark_api",
        version="1",
        description="",
        seed=1,
        prepare=Prepare(size=None),
        seeds=(PartPlan(id="noise", info=noise, settings=NoiseSettings(count=seeds)),),
        relations=tuple(plan("relations", name, **settings) for name, settings in RELATIONS.items()),
        systems=(plan("systems", "openai_compatible", base_url=base_url, model="simulated", max_in_flight=in_flight),),
        oracle=OraclePlan(
            part=PartPlan(id="answers", info=part("oracles", "answers"), settings=Answers.Settings()),
            primary=Criterion(score="answer", against="source"),
            scores=("answer",),
            thresholds=(0.25,),
            against=("source",),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run of the product.

    Attributes:
        calls: Cases, each one call.
        seconds: From the first worker that is ready to the last record, on the clock.
        processor: Seconds of the run's own process and its worker, the worker's start included.
    """

    calls: int
    seconds: float
    processor: float


def product(base_url: str, seeds: int, in_flight: int) -> Measured:
    """Run the suite in a folder of its own: cache, ledger and records on, MLflow and pictures off."""
    before = processor_seconds()
    with tempfile.TemporaryDirectory() as home:
        invocation = Invocation(home=Path(home), quiet=True, track=False)
        done: RunOutcome = run_suite(noise_suite(base_url, seeds, in_flight), invocation, limits=Limits(samples=0))
        if done.interrupted:
            raise SystemExit("stopped before the run was whole: no figure")
        (system,) = done.systems
        assert system.finished == system.planned == seeds * CALLS_A_SEED, done.notices  # noqa: S101 - else no figure
    return Measured(calls=system.finished, seconds=done.running_seconds, processor=processor_seconds() - before)
