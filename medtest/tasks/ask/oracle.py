"""Oracle of answers in text form: whether the model's own answer flipped, and whether it was right.

An answer's text is parsed into a typed answer (:mod:`medtest.language.questions.answers`): a value with the span of
text that supports it, "not relevant", a refusal, or unparsed. The matrix question × relation
(:mod:`medtest.language.questions.matrix`), which a suite may override, defines how a relation may change it. A refusal
or content filter of the server is a refusal for any text; a cut-off or malformed answer counts as unparsed.

Scores of a case, each against the truth and, as ``self_…``, against the model's own answer to the source:

- ``agreement``: against the truth 1 if the answer shares a value with it (any-hit; the primary accuracy). Against the
  source 1 if the answer did not flip: the same set of names, intervals that do not exclude one another, or the required
  value; 0 if it flipped.
- ``exact``, ``jaccard``: equality, and Jaccard's index; ``self_any_hit``: a value shared with the source's answer.

A refusal scores 0 throughout if the source was answered. Answers that the relation may change or makes irrelevant,
unparsed answers on either side, and answers to a refused source are not judged (SKIP). The criterion ``answer`` is a
loss of agreement and has no threshold: against ``source`` the answer flipped, against ``truth`` it is wrong although it
was right on the source image.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from pydantic import Field, field_validator

from medtest.core.cases import (
    SOURCE,
    AnswerOutput,
    Ask,
    Effect,
    Json,
    Output,
    PreparedSeed,
    Reason,
    ReasonCode,
    Verdict,
)
from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.core.oracles import criteria
from medtest.core.oracles.base import Oracle
from medtest.core.plugins import PartSettings
from medtest.core.records import ANSWER_FACTORS
from medtest.language.questions.answers.values.answer import Answer
from medtest.language.questions.expectations import inserted_of
from medtest.language.questions.judging import Judged, judge, said, wanted_text
from medtest.language.questions.matrix import Expectation, Matrix, Rule, expectation, overridden, own_questions, stated
from medtest.language.questions.questions import Question, by_name, question_of_ask
from medtest.language.questions.values import Kind
from medtest.language.questions.wording import MOST_WORDS
from medtest.readers.typed import (
    ANSWERED,
    MOST_EVIDENCE,
    REFUSALS,
    clean,
    read_answer,
    stage_of,
    truth_of,
)
from medtest.tasks.ask.controls import kept_answer
from medtest.tasks.ask.recorded import inserted_of_text, inserted_text, recorded_answer, recorded_truth

_MOST_KEPT = 50_000
_PAIR = (None, None)
_DECIDE = (
    *("relation", "item", "kind", "state", "said", "reply", "truth", "source_state", "source_said", "inserted"),
    *("rule", "verdict", "reason_code", "agreement", "self_agreement"),
)
"""Columns of a record that determine its judgement, including those that decide whether it was judged."""

WHY: dict[str, Reason] = {
    "may change": Reason(ReasonCode.ANSWER_MAY_CHANGE, "the relation may change this answer"),
    "skip": Reason(ReasonCode.QUESTION_VOID, "the relation removes what the question asks about"),
    "unparsed": Reason(ReasonCode.ANSWER_UNPARSED, "the answer has no value that can be parsed"),
    "length": Reason(ReasonCode.ANSWER_TRUNCATED, "the answer was cut off"),
    "malformed": Reason(ReasonCode.ANSWER_MALFORMED, "the reply is malformed"),
    "source unparsed": Reason(ReasonCode.SOURCE_UNPARSED, "the answer to the source has no value that can be parsed"),
    "source refused": Reason(ReasonCode.SOURCE_REFUSED, "the system refused to answer on the source"),
    "nothing inserted": Reason(ReasonCode.INSERTION_UNKNOWN, "the inserted object or its place is unknown"),
    "no truth": Reason(ReasonCode.NO_TRUTH, criteria.REASONS[ReasonCode.NO_TRUTH]),
    "source wrong": Reason(ReasonCode.SOURCE_WRONG, criteria.REASONS[ReasonCode.SOURCE_WRONG]),
}
"""Reasons of a SKIP by their value in ``why``."""


class AnswersSettings(PartSettings):
    """Settings of ``answers``.

    Attributes:
        expectations: Relation (its id in the suite, or the name of its part), then question (its name, ``all`` or
            ``all_<type>``), then the expectation that replaces the one in medtest's matrix.
        tolerance: King moves on the 3 × 3 grid within which places count as equal.
    """

    expectations: dict[str, dict[str, str]] = Field(default_factory=dict)
    tolerance: int = Field(default=0, ge=0, le=2)

    @field_validator("expectations")
    @classmethod
    def _check_expectations(cls, expectations: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        try:
            overridden(expectations)
        except UserMistakes as error:
            lines = [
                f"{mistake.key.removeprefix('expectations.')}: {mistake.found!r}"
                + (f" (did you mean {mistake.nearest}?)" if mistake.nearest else "")
                + f" is not one of: {mistake.allowed}"
                for mistake in error.mistakes
            ]
            raise ValueError("; ".join(lines)) from None
        return expectations


class Answers(Oracle):
    """Oracle of answers in text form; the module's docstring defines the scores."""

    Settings = AnswersSettings
    task: ClassVar[str] = "answer"
    reads: ClassVar[str] = "typed_answers"
    scores: ClassVar[tuple[str, ...]] = ("agreement", "exact", "jaccard")
    self_scores: ClassVar[tuple[str, ...]] = ("agreement", "any_hit", "exact", "jaccard")
    criteria: ClassVar[tuple[str, ...]] = ("answer", "exact", "jaccard")
    texts: ClassVar[tuple[str, ...]] = (
        "question",
        "kind",
        "answer",
        "evidence",
        "said",
        "source_said",
        "truth",
        "wanted",
        "state",
        "source_state",
        "reply",
        "mode",
        "stage",
        "rule",
        "change",
        "distance",
        "why",
        "inserted",
    )
    measures: ClassVar[tuple[str, ...]] = ("prompt_tokens", "completion_tokens", "cost_usd", "seconds", "attempts")
    seed_factors: ClassVar[tuple[str, ...]] = ANSWER_FACTORS
    revision: ClassVar[int] = 4

    def __init__(self, settings: AnswersSettings, *, primary: Any) -> None:
        super().__init__(settings, primary=primary)
        self._matrix: Matrix = overridden(settings.expectations)
        self._again: dict[tuple[Any, ...], dict[str, Any]] = {}

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        """Return the score columns of one case; None without truth, source answer or judgement."""
        if not isinstance(answer, AnswerOutput) or not isinstance(source, AnswerOutput | None):
            raise TypeError(f"answers judges answers, not an answer of kind {answer.kind}")
        ask = _ask(seed, answer)
        judged = self._judged(ask, answer, source, effect)
        return _against_truth(judged) | {f"self_{name}": value for name, value in _against_source(judged).items()}

    def describe(
        self, *, answer: Output | None, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, str | None]:
        """Return the texts, the values parsed from them, and the judgement."""
        columns: dict[str, str | None] = dict.fromkeys(self.texts)
        if not isinstance(answer, AnswerOutput):
            return columns
        ask = _ask(seed, answer)
        source_answer = source if isinstance(source, AnswerOutput) and not answer.address.is_source else None
        facts, truth = _facts(ask, answer), truth_of(ask)
        of_source = None if source_answer is None else _facts(ask, source_answer)
        expected = self._expected(ask, answer)
        judged = self._judged(ask, answer, source_answer, effect)
        comparison = None if judged.by_source is None else judged.by_source.comparison
        start, end = facts.span
        return {
            "question": clean(ask.text, MOST_WORDS),
            "kind": ask.kind,
            "answer": clean(answer.text, MOST_WORDS),
            "evidence": clean(answer.text[start:end], MOST_EVIDENCE),
            "said": said(facts),
            "source_said": None if of_source is None else said(of_source),
            "truth": None if truth is None else said(truth),
            "wanted": wanted_text(expected, facts, of_source, inserted_of(effect)),
            "state": facts.state.value,
            "source_state": None if of_source is None else of_source.state.value,
            "reply": answer.state,
            "mode": answer.mode,
            "stage": stage_of(answer),
            "rule": str(expected),
            "change": comparison.change.value if comparison is not None else "",
            "distance": "" if comparison is None or comparison.distance is None else str(comparison.distance),
            "why": _why(judged, answer.state),
            "inserted": inserted_text(inserted_of(effect)),
        }

    def kept(self, *, answer: Output, source: Output, seed: PreparedSeed, effect: Effect) -> float | Reason:
        """Return 1 if the answer is kept, 0 if not (:mod:`medtest.tasks.ask.controls`)."""
        if not isinstance(answer, AnswerOutput) or not isinstance(source, AnswerOutput):
            raise TypeError(f"answers judges answers, not an answer of kind {answer.kind}")
        ask = _ask(seed, answer)
        facts = (_facts(ask, answer), _facts(ask, source))
        return kept_answer(self._expected(ask, answer).rule, *facts, tolerance=self.settings.tolerance)

    def kept_by_chance(self, *, item: str, seed: PreparedSeed, effect: Effect) -> float | None:
        """Return 1 if the true answer to the other picture agrees with the case's own, else 0."""
        pair = [next((ask for ask in case.asks if ask.item == item), None) for case in (effect.other, seed) if case]
        truths = [truth_of(ask) for ask in pair if ask is not None]
        other, own = truths if len(truths) == len(_PAIR) else _PAIR
        if other is None or own is None:
            return None
        share = kept_answer(Rule.MUST_CHANGE, other, own, tolerance=self.settings.tolerance)
        return None if isinstance(share, Reason) else share

    def kept_again(self, row: Mapping[str, Any]) -> float | Reason | None:
        """Return the same from a record's canonical values."""
        kind, item = row["kind"], str(row["item"])
        answer = None if not kind else recorded_answer(kind, row["state"], row["said"])
        source = None if not kind else recorded_answer(kind, row["source_state"], row["source_said"])
        if answer is None or source is None:
            return None
        question = Question(id=None, name=item, text="", kind=Kind(kind))
        rule = self._expectation(str(row["relation"]), question, str(row["rule"] or "")).rule
        return kept_answer(rule, answer, source, tolerance=self.settings.tolerance)

    def measure(self, answer: Output) -> dict[str, float | None]:
        """Return tokens, cost in US dollars, seconds and number of calls."""
        if not isinstance(answer, AnswerOutput):
            return dict.fromkeys(self.measures)
        return {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "cost_usd": answer.cost_usd,
            "seconds": answer.seconds,
            "attempts": float(answer.attempts),
        }

    def verdict(self, row: Mapping[str, Any]) -> tuple[Verdict, Reason]:
        """Return the verdict under the suite's primary criterion, with the reason of a SKIP."""
        score, against = self.primary.score, self.primary.against
        verdict, reason = criteria.verdict(row, score=score, threshold=self.primary.threshold, against=against)
        if verdict != Verdict.SKIP:
            return verdict, Reason()
        why = str(row.get("why") or "")
        if against == "truth":
            is_judged = row.get(criteria.components(score)[0]) is not None
            closed = why in ("may change", "skip", "unparsed", "length", "malformed", "nothing inserted")
            why = why if closed else "source wrong" if is_judged else "no truth"
        return verdict, WHY.get(why, reason)

    def judging(self) -> dict[str, Json]:
        """Return tolerance, revision, and a digest of the complete matrix, including medtest's defaults."""
        digest = hashlib.sha256(json.dumps(sorted(self._matrix.cells())).encode()).hexdigest()[:16]
        return {"revision": self.revision, "tolerance": self.settings.tolerance, "matrix": digest}

    def unknown_items(self, items: Collection[str]) -> list[Mistake]:
        """Return a mistake for each expectation of a user-defined question that the seeds do not ask."""
        available = set(items)
        custom = sorted(name for name in available if by_name(name) is None)
        return [
            Mistake(
                where="suite",
                key=f"oracles.expectations.{relation}.{name}",
                found=f"{name}, a question that no image asks",
                allowed=", ".join(custom[:20]) or "names of the 18 questions; these seeds ask no others",
                nearest=nearest_name(name, custom),
            )
            for relation, name in own_questions(self._matrix)
            if name not in available
        ]

    def notices(self) -> list[str]:
        """Return a line for each relation whose effects on answers are unknown."""
        lines = []
        for relation, effects in self.effects.items():
            covered = {relation, self.relations.get(relation, relation)} & set(self._matrix.stated)
            unknown = sorted(set(effects or ()) - set(self._matrix.shipped))
            if covered or not (unknown or effects is None):
                continue
            lines.append(
                f"Relation {relation} does not declare its effect on the picture (`effects` of its class): all answers "
                "are expected to stay the same."
                if effects is None
                else f"Relation {relation} has the effect {', '.join(unknown)}, for which there is no expectation: "
                f"its answers are not judged. Set oracles.expectations.{relation} to judge them."
            )
        return lines

    def of_source(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the source's reading in the columns of its follow-ups."""
        return {} if row["state"] is None else {"source_state": row["state"], "source_said": row["said"]}

    def rejudged(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record's scores and texts under this matrix and tolerance, from its canonical values."""
        kind, relation = row["kind"], str(row["relation"])
        reading = None if not kind else recorded_answer(kind, row["state"], row["said"])
        if reading is None:
            return {}
        truth = recorded_truth(kind, row["truth"])
        source = recorded_answer(kind, row["source_state"], row["source_said"])
        inserted = inserted_of_text(str(row["inserted"] or ""))
        question = Question(id=None, name=str(row["item"]), text="", kind=Kind(kind))
        invariant = Expectation(rule=Rule.INVARIANT)
        expected = invariant if relation == SOURCE else self._expectation(relation, question, str(row["rule"] or ""))
        tolerance = self.settings.tolerance
        judged = judge(expected, reading, source=source, truth=truth, inserted=inserted, tolerance=tolerance)
        at_source = judged
        if relation != SOURCE and source is not None:
            at_source = judge(invariant, source, source=None, truth=truth, tolerance=tolerance)
        comparison = None if judged.by_source is None else judged.by_source.comparison
        has_source = relation == SOURCE or source is not None
        return {
            **_against_truth(judged),
            **{f"source_{name}": value if has_source else None for name, value in _against_truth(at_source).items()},
            **{f"self_{name}": value for name, value in _against_source(judged).items()},
            "wanted": wanted_text(expected, reading, source, inserted),
            "rule": str(expected),
            "change": comparison.change.value if comparison is not None else "",
            "distance": "" if comparison is None or comparison.distance is None else str(comparison.distance),
            "why": _why(judged, str(row["reply"])),
        }

    def judged_again(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record's columns under these settings; equal records are judged once."""
        key = tuple(row[name] for name in _DECIDE)
        if key not in self._again:
            if len(self._again) >= _MOST_KEPT:
                self._again.clear()
            self._again[key] = super().judged_again(row)
        return dict(self._again[key])

    def _expected(self, ask: Ask, answer: AnswerOutput) -> Expectation:
        if answer.address.is_source:
            return Expectation(rule=Rule.INVARIANT)
        return self._expectation(answer.address.relation, question_of_ask(ask))

    def _expectation(self, relation: str, question: Question, recorded: str = "") -> Expectation:
        """Return the expectation; for a relation that is not installed, the stated or else the ``recorded`` one."""
        if recorded and relation not in self.effects:
            explicit = stated(self._matrix, relation, question, relations=self.relations)
            return explicit or Expectation.read(recorded)
        effects = self.effects.get(relation) or frozenset()
        return expectation(self._matrix, relation, question, effects=effects, relations=self.relations)

    def _judged(self, ask: Ask, answer: AnswerOutput, source: AnswerOutput | None, effect: Effect) -> Judged:
        return judge(
            self._expected(ask, answer),
            _facts(ask, answer),
            source=None if source is None or answer.address.is_source else _facts(ask, source),
            truth=truth_of(ask),
            inserted=inserted_of(effect),
            tolerance=self.settings.tolerance,
        )


def _ask(seed: PreparedSeed, answer: AnswerOutput) -> Ask:
    item = answer.address.item
    matching = next((ask for ask in seed.asks if ask.item == item), None)
    if matching is None:
        raise ValueError(f"the seed does not ask {item!r}")
    return matching


def _facts(ask: Ask, answer: AnswerOutput) -> Answer:
    """Return the reader's facts about an answer; if none has read it, those of the rules."""
    return answer.facts if isinstance(answer.facts, Answer) else read_answer(ask, answer)


def _against_truth(judged: Judged) -> dict[str, float | None]:
    return {"agreement": judged.right, "exact": judged.exact, "jaccard": judged.jaccard}


def _against_source(verdicts: Judged) -> dict[str, float | None]:
    same, metamorphic = verdicts.same, verdicts.by_source
    if same is None or metamorphic is None:
        return dict.fromkeys(Answers.self_scores)
    comparison = metamorphic.comparison
    if comparison is None or verdicts.expected.rule == Rule.MUST_BECOME:
        return dict.fromkeys(Answers.self_scores, same)
    return {
        "agreement": same,
        "any_hit": float(comparison.any_hit),
        "exact": float(comparison.exact),
        "jaccard": comparison.jaccard,
    }


def _why(judged: Judged, reply: str) -> str:
    """Return the reason code of the metamorphic judgement; for a source, of that against the truth."""
    reason = (judged.by_source or judged.by_truth).reason
    broken = reply not in (ANSWERED, *REFUSALS)
    return reply if reason == "unparsed" and broken else reason
