"""Parts of suites that ask questions: seeds with questions, a system that looks at pixels, an oracle."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from runner_parts import Blobs, BlobSettings, Dim, make_suite, plan_of

from medtest.core.cases import (
    AnswerOutput,
    Ask,
    Effect,
    Json,
    Output,
    PreparedSeed,
    Reason,
    ReasonCode,
    Seed,
    SeedRef,
    Verdict,
)
from medtest.core.errors import ExitCode, MedtestError
from medtest.core.oracles.base import Oracle
from medtest.core.plugins import PartSettings
from medtest.relations.base import Relation
from medtest.suite.model import Criterion, OraclePlan, Suite
from medtest.systems.answering.asking import Asked, Asking, AskingSystem, BudgetLimits
from medtest.systems.base import SystemSettings

QUESTIONS = {"bright": "Is it bright?", "level": "How bright is it?", "red": "How red is it?"}


class QuestionSettings(BlobSettings):
    """Whether all questions are one call, and whether seeds ask different ones."""

    together: bool = False
    ragged: bool = False
    gone: bool = False


class Questions(Blobs):
    """Blobs with three questions; every second one has only two if ``ragged``."""

    Settings = QuestionSettings
    task = "answer"

    def refs(self) -> Sequence[SeedRef]:
        blobs = super().refs()
        items = tuple(QUESTIONS)
        return tuple(
            SeedRef(
                dataset=ref.dataset,
                seed_id=ref.seed_id,
                cluster=ref.cluster,
                strata=ref.strata,
                items=items[1:] if self.settings.ragged and number % 2 else items,
                locator=ref.locator,
            )
            for number, ref in enumerate(blobs)
        )

    def load(self, ref: SeedRef) -> Seed:
        if self.settings.gone and ref.seed_id.endswith("1"):
            raise OSError("the file has gone")
        seed = super().load(ref)
        asks = tuple(Ask(item=item, text=QUESTIONS[item], kind="count") for item in ref.items)
        return Seed(ref=ref, image=seed.image, kind="answer", expected=None, asks=asks, together=self.settings.together)


class MeterSettings(SystemSettings):
    """Faults of the system.

    Attributes:
        calls: Calls after which its budget is reached; 0 for none.
        fault: raise, exit, error, source, quit, drop, late, counters, leak, hang; "" for none.
        log: File that gets a line per call.
        once: A file made at the first fault; later calls have none.
        mix: Number of calls that it holds back and answers in another order.
        pause: Seconds per answer.
        silent: Its ``silent_seconds``.
    """

    calls: int = 0
    fault: str = ""
    log: str = ""
    once: str = ""
    mix: int = 5
    pause: float = 0.0
    silent: float = 600.0


class Meter(AskingSystem):
    """Answers how bright an image is; answers calls in another order than they came."""

    Settings = MeterSettings
    own_limits: ClassVar[bool] = True
    folder: Path
    budget: BudgetLimits

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self.hoard: list[Any] = []
        self.told = 0

    @property
    def silent_seconds(self) -> float:  # type: ignore[override]
        return self.settings.silent

    def fingerprint(self) -> dict[str, Json]:
        return {}

    def keep_in(self, folder: Path, shared: Path, *, budget: BudgetLimits, cache: str) -> None:
        self.folder, self.budget = folder, budget

    def open(self, *, device: str, threads: int) -> None:
        (self.folder / "ledger.sqlite").touch()

    def ask(self, calls: Iterable[Asking | None]) -> Iterator[Asked]:
        draw, held, sent, late = random.Random(3), [], 0, []
        most = self.budget.max_calls or self.settings.calls
        for call in calls:
            if call is not None:
                if most and sent == most:
                    yield from (self._answer(call) for call in held)
                    raise Spent("the budget is reached")
                if self.settings.fault == "quit" and sent == 5:
                    return
                sent += 1
                dropped = self.settings.fault in ("drop", "late") and "patient-0001/dim_s3" in call.label
                (late if dropped else held).append(call)
            while held and (call is None or len(held) > self.settings.mix):
                yield self._answer(held.pop(draw.randrange(len(held))))
        yield from (self._answer(call) for call in held)
        if self.settings.fault == "late":
            yield from (self._answer(call) for call in late)

    def counters(self) -> str:
        self.told += 1
        if self.settings.fault == "counters" and self.told == 1:
            raise RuntimeError("they changed while they were read")
        return "in flight 1"

    def _answer(self, call: Asking) -> Asked:
        if self.settings.log:
            with Path(self.settings.log).open("a") as file:
                file.write(f"{call.label} {call.seed} {call.repeat} {call.sha256[:8]} {os.getpid()}\n")
        time.sleep(self.settings.pause)
        self._misbehave(call)
        case = call.addresses[0]
        if self.settings.fault == "error" and case.severity == 3:
            return Asked(number=call.number, outputs=("retries are exhausted",) * len(call.asks), seconds=0.1)
        if self.settings.fault == "source" and case.is_source:
            return Asked(number=call.number, outputs=("retries are exhausted",) * len(call.asks), seconds=0.1)
        means = call.image.mean(axis=(0, 1))
        values = {"bright": float(means.mean() > 80), "level": float(means.mean()), "red": float(means[0])}
        outputs = tuple(
            AnswerOutput(
                address=address, text=f"{values[ask.item]:.3f}", prompt_tokens=10.0, completion_tokens=2.0, attempts=1
            )
            for address, ask in zip(call.addresses, call.asks, strict=True)
        )
        return Asked(number=call.number, outputs=outputs, seconds=0.01)

    def _misbehave(self, call: Asking) -> None:
        if self.settings.fault == "leak" and call.label[: len("blobs/patient-0003")] >= "blobs/patient-0003":
            self.hoard.append(np.ones(6_000_000, np.uint8))
        if "patient-0001" not in call.label or (self.settings.once and Path(self.settings.once).exists()):
            return
        if self.settings.once:
            Path(self.settings.once).touch()
        if self.settings.fault == "raise":
            raise ValueError("cannot do this one")
        if self.settings.fault == "exit":
            time.sleep(0.05)
            os._exit(3)
        if self.settings.fault == "hang":
            time.sleep(3600)


class Spent(MedtestError):
    """End of a budget, raised by the test's system."""

    exit_code = ExitCode.BUDGET


class SameNumber(Oracle):
    """FAIL if the number differs from the source's by more than 20."""

    Settings = PartSettings
    task = "answer"
    scores = ("number",)
    self_scores = ("number",)
    texts = ("question", "said")
    measures = ("tokens",)

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        assert isinstance(answer, AnswerOutput)
        assert answer.address.item in {ask.item for ask in seed.asks}
        same = None if source is None else float(abs(float(answer.text) - float(source.text)) <= 20)
        return {"number": float(answer.text), "self_number": same}

    def describe(
        self, *, answer: Output | None, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, str | None]:
        item = answer.address.item if isinstance(answer, AnswerOutput) else ""
        return {"question": item, "said": answer.text if isinstance(answer, AnswerOutput) else None}

    def measure(self, answer: Output) -> dict[str, float | None]:
        assert isinstance(answer, AnswerOutput)
        return {"tokens": answer.prompt_tokens}

    def verdict(self, row: Mapping[str, Any]) -> tuple[Verdict, Reason]:
        assert row["question"] in QUESTIONS
        if row["self_number"] is None or np.isnan(row["self_number"]):
            return Verdict.SKIP, Reason(ReasonCode.NOT_JUDGED, "no source")
        return (Verdict.PASS if row["self_number"] else Verdict.FAIL), Reason()


def question_suite(
    *,
    seeds: int = 4,
    systems: dict[str, dict[str, Any]] | None = None,
    relations: dict[str, type[Relation]] | None = None,
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    **settings: Any,
) -> Suite:
    """Return a suite of these parts."""
    base = make_suite(seeds=1, relations=relations or {"dim": Dim}, severities=severities)
    fields = {key: getattr(base, key) for key in ("name", "version", "description", "seed", "privacy", "prepare")}
    return Suite(
        **fields,
        seeds=(plan_of("seeds", "blobs", Questions, count=seeds, size=64, **settings),),
        relations=base.relations,
        systems=tuple(
            plan_of("systems", name, Meter, **options) for name, options in (systems or {"meter": {}}).items()
        ),
        oracle=OraclePlan(
            part=plan_of("oracles", "same", SameNumber),
            primary=Criterion(score="number", against="source"),
            scores=("number",),
            thresholds=(0.25,),
            against=("source",),
        ),
        composed={"name": "runner_suite"},
    )
