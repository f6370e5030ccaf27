"""From the answers to a case and its source to a record: scores, texts, verdict and reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from medtest.core.cases import Effect, Output, PreparedSeed, Reason, ReasonCode, Verdict
from medtest.core.oracles.base import Oracle
from medtest.core.oracles.controls import control_verdict
from medtest.core.records import CHANCE, KEPT, REMOVED
from medtest.runner.records.rows import FinishedCase
from medtest.runner.units.made_case import MadeCase, SystemAnswer, describe


@dataclass(slots=True)
class SourceAnswer:
    """A system's answer to the source case; ``scores`` is empty until it is judged."""

    output: Output | None = None
    unread: Output | None = None
    verdict: Verdict = Verdict.PASS
    reason: Reason = Reason()
    scores: Mapping[str, float | None] = field(default_factory=dict)
    texts: Mapping[str, str | None] = field(default_factory=dict)
    lost: bool = False
    """True if the system hung or crashed on it, so that it is not asked about this seed again."""

    def take(self, oracle: Oracle, seed: PreparedSeed, answer: SystemAnswer, *, lost: bool = False) -> None:
        """Store and judge the system's answer to the source image."""
        self.output, self.verdict, self.reason, self.lost = answer.output, answer.verdict, answer.reason, lost
        self.texts, self.unread = answer.texts, answer.unread
        if answer.output is None:
            return
        try:
            self.scores = oracle.score(answer=answer.output, source=answer.output, seed=seed, effect=Effect())
        except Exception as error:  # noqa: BLE001 - an oracle may come from a plug-in
            self.output, self.verdict, self.reason = None, Verdict.ERROR, _oracle_failed(error)

    @property
    def answer(self) -> SystemAnswer:
        """The answer, without timing."""
        return SystemAnswer(output=self.output, verdict=self.verdict, reason=self.reason)

    def blame(self) -> Reason:
        """Return the reason why a follow-up of a source without an answer is not judged."""
        if self.verdict is Verdict.SKIP:
            return Reason(ReasonCode.NO_SOURCE_PREDICTION, "no prediction for the source case")
        return source_failed(self.reason)


def source_failed(reason: Reason) -> Reason:
    """Return the reason of the follow-ups of a source case that is an ERROR.

    They are SKIP and not ERROR, because the system is blamed once, at the source. The tables' ``source_failed`` and the
    runner's error percentage count them, and a resumed run repeats them together with their source.
    """
    return Reason(ReasonCode.SOURCE_FAILED, f"the source case failed: {reason.text}")


def _oracle_failed(error: Exception) -> Reason:
    return Reason(ReasonCode.ORACLE_ERROR, f"oracle: {describe(error)}")


def finish(
    oracle: Oracle, seed: PreparedSeed, source: SourceAnswer, case: MadeCase, answer: SystemAnswer
) -> FinishedCase:
    """Return the result of a case for its record.

    Args:
        oracle: The oracle.
        seed: The source case.
        source: The system's answer to the source, stored before.
        case: The case.
        answer: The system's answer to the case.
    """
    is_source = case.address.is_source
    judged: SourceAnswer | SystemAnswer = source if is_source else answer
    effect = Effect() if is_source or case.follow is None else case.follow.effect
    content = judged.output or judged.unread
    texts = _texts(oracle, seed, content, source.output, effect, judged.texts)
    verdict, reason = judged.verdict, judged.reason
    scores = source.scores if is_source else {}
    control: Mapping[str, float | str | None] = {}
    role = oracle.controls.get(case.address.relation, "")
    if role and case.follow is not None:
        control, verdict, reason = _controlled(oracle, seed, source.output, case.address.item, effect, answer, role)
    elif not is_source and answer.output is not None and case.follow is not None:
        try:
            scores = oracle.score(answer=answer.output, source=source.output, seed=seed, effect=effect)
            before = {f"source_{k}": v for k, v in source.scores.items() if not k.startswith("self_")}
            verdict, reason = oracle.verdict({**scores, **before, **texts})
        except Exception as error:  # noqa: BLE001 - an oracle may come from a plug-in
            verdict, reason, scores = Verdict.ERROR, _oracle_failed(error), {}
    if not is_source and case.follow is not None and source.output is None and verdict != Verdict.ERROR:
        verdict, reason = Verdict.SKIP, source.blame()
    return FinishedCase(
        verdict=verdict,
        reason=reason,
        follow=case.follow,
        sha256=case.sha256,
        elapsed_ms=answer.elapsed_ms,
        scores=scores,
        source_scores=source.scores,
        texts=texts,
        measures=_measures(oracle, content) or {name: answer.spent.get(name) for name in oracle.measures},
        crafting=case.crafting,
        control=control,
    )


def _controlled(
    oracle: Oracle,
    seed: PreparedSeed,
    source: Output | None,
    item: str,
    effect: Effect,
    answer: SystemAnswer,
    role: str,
) -> tuple[Mapping[str, float | str | None], Verdict, Reason]:
    """Return the columns of a control, its verdict and the reason of a SKIP or ERROR."""
    columns: dict[str, float | str | None] = {REMOVED: str(effect.data.get("removed") or "")}
    if answer.output is None:
        return columns, answer.verdict, answer.reason
    try:
        columns[CHANCE] = oracle.kept_by_chance(item=item, seed=seed, effect=effect)
        if source is None:
            return columns, Verdict.PASS, Reason()
        answer_kept = oracle.kept(answer=answer.output, source=source, seed=seed, effect=effect)
    except Exception as error:  # noqa: BLE001 - an oracle may come from a plug-in
        return columns, Verdict.ERROR, _oracle_failed(error)
    if isinstance(answer_kept, Reason):
        return columns, Verdict.SKIP, answer_kept
    return {**columns, KEPT: answer_kept}, control_verdict(answer_kept, role), Reason()


def _texts(
    oracle: Oracle,
    seed: PreparedSeed,
    answer: Output | None,
    source: Output | None,
    effect: Effect,
    reader_texts: Mapping[str, str | None],
) -> Mapping[str, str | None]:
    """Return the oracle's texts of an answer, completed by the reader's."""
    try:
        described = oracle.describe(answer=answer, source=source, seed=seed, effect=effect) if oracle.texts else {}
    except Exception:  # noqa: BLE001 - an oracle may come from a plug-in; its texts do not affect the verdict
        described = {}
    return {**described, **{name: text for name, text in reader_texts.items() if described.get(name) is None}}


def _measures(oracle: Oracle, answer: Output | None) -> Mapping[str, float | None]:
    if answer is None or not oracle.measures:
        return {}
    try:
        return oracle.measure(answer)
    except Exception:  # noqa: BLE001 - as above
        return {}
