"""Suites that ask a model over an API: seeds with questions, the product's own system, an oracle that keeps words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from question_parts import question_suite
from runner_parts import plan_of

from medtest.core.cases import AnswerOutput, Effect, Output, PreparedSeed, Reason, ReasonCode, Verdict
from medtest.core.oracles.base import Oracle
from medtest.core.plugins import PartSettings
from medtest.suite.model import Criterion, OraclePlan, Suite
from medtest.systems.answering.openai_compatible import OpenAICompatible


class Words(Oracle):
    """FAIL if the words differ from those about the source; states and costs are recorded."""

    Settings = PartSettings
    task = "answer"
    scores = ("same",)
    self_scores = ("same",)
    texts = ("said", "state")
    measures = ("prompt_tokens", "cost_usd")

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        assert isinstance(answer, AnswerOutput)
        source_text = source.text if isinstance(source, AnswerOutput) else answer.text
        return {"same": 1.0, "self_same": float(answer.text == source_text)}

    def describe(
        self, *, answer: Output | None, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, str | None]:
        answered = answer if isinstance(answer, AnswerOutput) else None
        return {"said": answered and answered.text, "state": answered and answered.state}

    def measure(self, answer: Output) -> dict[str, float | None]:
        assert isinstance(answer, AnswerOutput)
        return {"prompt_tokens": answer.prompt_tokens, "cost_usd": answer.cost_usd}

    def verdict(self, row: Mapping[str, Any]) -> tuple[Verdict, Reason]:
        if row["state"] != "answered":
            return Verdict.SKIP, Reason(ReasonCode.NOT_JUDGED, f"the answer is {row['state']}")
        return (Verdict.FAIL if row["self_same"] == 0.0 else Verdict.PASS), Reason()


def answering_suite(
    base_url: str = "",
    *,
    seeds: int = 3,
    system: type[OpenAICompatible] = OpenAICompatible,
    relations: Any = None,
    questions: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Suite:
    """Return a suite that asks one system.

    Args:
        base_url: URL of its server.
        seeds: Number of images.
        system: Class of the system.
        relations: Relations by id; one that darkens by default.
        questions: Settings of the seeds.
        settings: Settings of the system.
    """
    base = question_suite(seeds=seeds, relations=relations, severities=(1, 3, 5), **dict(questions or {}))
    # Most of these tests look at the words of the request.
    system_settings = {
        "model": "simulated",
        "structured": "together",
        **({"base_url": base_url} if base_url else {}),
        **settings,
    }
    return replace(
        base,
        systems=(plan_of("systems", "model_under_test", system, **system_settings),),
        oracle=OraclePlan(
            part=plan_of("oracles", "words", Words),
            primary=Criterion(score="same", against="source"),
            scores=("same",),
            thresholds=(0.25,),
            against=("source",),
        ),
    )
