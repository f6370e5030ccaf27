"""The oracle of answers in words: did the model's own answer flip, and was it right?

An answer's words are typed (:mod:`medtest.language.questions.answers`): a value with the place in the text that it
rests on, "not relevant", a refusal, or unparsed. What a relation may do to it says the matrix question × relation
(:mod:`medtest.language.questions.matrix`), which a suite may override. A refusal or content filter of the server is a
refusal whatever the words; an answer that was cut off or malformed counts as unparsed.

Scores of a case, each against the truth and, as ``self_…``, against the model's own answer to the source:

- ``agreement``: against the truth 1 where the answer has something in common with it (any-hit; the primary accuracy).
  Against the source 1 where the answer did not flip: the same set of names, intervals that do not exclude one another,
  or what it had to become; 0 where it flipped.
- ``exact``, ``jaccard``: the same, and Jaccard's index; ``self_any_hit``: something in common with the source's.

A refusal where the source was answered is 0 throughout. What the relation may change or takes away, what is unparsed on
either side, and a source that refused is not judged (SKIP). The criterion ``answer`` is a loss of agreement and has no
threshold: against ``source`` the answer flipped, against ``truth`` it is wrong while it was right on the source image.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from pydantic import Field, field_validator

from medtest.core.cases import SOURCE, AnswerOutput, Ask, Effect, Json, Output, PreparedSeed, Verdict
from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.core.oracles import criteria
from medtest.core.oracles.base import Oracle
from medtest.core.plugins import PartSettings
from medtest.core.records import ANSWER_FACTORS
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.expectations import Inserted
from medtest.language.questions.inserted import inserted_of
from medtest.language.questions.judging import Judged, judge, said, wanted_text
from medtest.language.questions.matrix import Expectation, Matrix, Rule, expectation, overridden, own_questions, stated
from medtest.language.questions.questions import Question, by_name, question_of_ask
from medtest.language.questions.values import Kind, read_value
from medtest.language.questions.wording import MOST_WORDS, NOT_RELEVANT
from medtest.readers.typed import (
    ANSWERED,
    MOST_EVIDENCE,
    REFUSALS,
    clean,
    read_answer,
    stage_of,
    truth_of,
)

_MOST_KEPT = 50_000
_DECIDE = (
    *("relation", "item", "kind", "state", "said", "reply", "truth", "source_state", "source_said", "inserted"),
    *("rule", "verdict", "reason", "agreement", "self_agreement"),
)
"""Columns of a record on which its judgement rests, and those that say whether it was judged at all."""

WHY: dict[str, str] = {
    "may change": "the relation may rightly change this answer",
    "skip": "the relation takes away what the question asks about",
    "unparsed": "no value could be read from the answer",
    "length": "the answer was cut off",
    "malformed": "the reply was malformed",
    "source unparsed": "no value could be read from the answer to the source",
    "source refused": "the system refused to answer on the source",
    "nothing inserted": "it is not known what was put where",
    "no truth": "no expected answer to compare with",
    "source wrong": "the answer to the source image is wrong already",
}
"""Reasons of a SKIP by the code that stands in ``why``."""


class AnswersSettings(PartSettings):
    """Settings of ``answers``.

    Attributes:
        expectations: Relation (its id in the suite, or the name of its part), then question (its name, ``all``
            or ``all_<type>``), then what is expected, where it is another than medtest's own matrix says.
        tolerance: King moves on the 3 × 3 grid within which places count as the same.
    """

    expectations: dict[str, dict[str, str]] = Field(default_factory=dict)
    tolerance: int = Field(default=0, ge=0, le=2)

    @field_validator("expectations")
    @classmethod
    def _check_expectations(cls, given: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        try:
            overridden(given)
        except UserMistakes as error:
            lines = [
                f"{one.key.removeprefix('expectations.')}: {one.found!r}"
                + (f" (did you mean {one.nearest}?)" if one.nearest else "")
                + f" is not one of: {one.allowed}"
                for one in error.mistakes
            ]
            raise ValueError("; ".join(lines)) from None
        return given


class Answers(Oracle):
    """Judges answers in words; see the module for what each score means."""

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
        """Return the score columns of one case; None where there is no truth, no source answer, or no judgement."""
        if not isinstance(answer, AnswerOutput) or not isinstance(source, AnswerOutput | None):
            raise TypeError(f"answers judges answers, not an answer of kind {answer.kind}")
        ask = _ask(seed, answer)
        found = self._judged(ask, answer, source, effect)
        return _against_truth(found) | {f"self_{name}": value for name, value in _against_source(found).items()}

    def describe(
        self, *, answer: Output | None, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, str | None]:
        """Return the words, what was read from them, and how it was judged."""
        columns: dict[str, str | None] = dict.fromkeys(self.texts)
        if not isinstance(answer, AnswerOutput):
            return columns
        ask = _ask(seed, answer)
        before = source if isinstance(source, AnswerOutput) and not answer.address.is_source else None
        read, truth = _facts(ask, answer), truth_of(ask)
        of_source = None if before is None else _facts(ask, before)
        expected = self._expected(ask, answer)
        judged = self._judged(ask, answer, before, effect)
        compared = None if judged.by_source is None else judged.by_source.comparison
        start, end = read.span
        return {
            "question": clean(ask.text, MOST_WORDS),
            "kind": ask.kind,
            "answer": clean(answer.text, MOST_WORDS),
            "evidence": clean(answer.text[start:end], MOST_EVIDENCE),
            "said": said(read),
            "source_said": None if of_source is None else said(of_source),
            "truth": None if truth is None else said(truth),
            "wanted": wanted_text(expected, read, of_source, inserted_of(effect)),
            "state": read.state.value,
            "source_state": None if of_source is None else of_source.state.value,
            "reply": answer.state,
            "mode": answer.mode,
            "stage": stage_of(answer),
            "rule": str(expected),
            "change": compared.change.value if compared is not None else "",
            "distance": "" if compared is None or compared.distance is None else str(compared.distance),
            "why": _why(judged, answer.state),
            "inserted": _inserted_text(inserted_of(effect)),
        }

    def measure(self, answer: Output) -> dict[str, float | None]:
        """Return tokens, cost in US dollars, seconds and calls sent."""
        if not isinstance(answer, AnswerOutput):
            return dict.fromkeys(self.measures)
        return {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "cost_usd": answer.cost_usd,
            "seconds": answer.seconds,
            "attempts": float(answer.attempts),
        }

    def verdict(self, row: Mapping[str, Any]) -> tuple[Verdict, str]:
        """Return the verdict under the suite's primary criterion; a SKIP says what the matrix or the answer says."""
        score, against = self.primary.score, self.primary.against
        found, reason = criteria.verdict(row, score=score, threshold=self.primary.threshold, against=against)
        if found != Verdict.SKIP:
            return found, ""
        why = str(row.get("why") or "")
        if against == "truth":
            judged = row.get(criteria.components(score)[0]) is not None
            closed = why in ("may change", "skip", "unparsed", "length", "malformed", "nothing inserted")
            why = why if closed else "source wrong" if judged else "no truth"
        return found, WHY.get(why, reason)

    def judging(self) -> dict[str, Json]:
        """Return tolerance, revision, and a digest of the whole matrix, medtest's own part of it too."""
        digest = hashlib.sha256(json.dumps(sorted(self._matrix.cells())).encode()).hexdigest()[:16]
        return {"revision": self.revision, "tolerance": self.settings.tolerance, "matrix": digest}

    def unknown_items(self, items: Collection[str]) -> list[Mistake]:
        """Return a mistake for every expectation of a question of the user's own that the seeds do not ask."""
        there = set(items)
        own = sorted(name for name in there if by_name(name) is None)
        return [
            Mistake(
                where="suite",
                key=f"oracles.expectations.{relation}.{name}",
                found=f"{name}, which is asked of no image",
                allowed=", ".join(own[:20]) or "names of the 18 questions: these seeds ask no other",
                nearest=nearest_name(name, own),
            )
            for relation, name in own_questions(self._matrix)
            if name not in there
        ]

    def notices(self) -> list[str]:
        """Return a line for every relation whose effects on answers are not known."""
        lines = []
        for relation, effects in self.effects.items():
            own = {relation, self.relations.get(relation, relation)} & set(self._matrix.stated)
            unknown = sorted(set(effects or ()) - set(self._matrix.shipped))
            if own or not (unknown or effects is None):
                continue
            lines.append(
                f"Relation {relation} does not say what it does to the picture (`effects` of its class): "
                "every answer is expected to stay."
                if effects is None
                else f"Relation {relation} has the effect {', '.join(unknown)}, of which no expectation speaks: "
                f"its answers may change and are not judged; oracles.expectations.{relation} says what to expect."
            )
        return lines

    def of_source(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the source's reading as its follow-ups hold it."""
        return {} if row["state"] is None else {"source_state": row["state"], "source_said": row["said"]}

    def rejudged(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record's scores and texts under this matrix and tolerance, from its canonical values."""
        kind, relation = row["kind"], str(row["relation"])
        read = None if not kind else _recorded(kind, row["state"], row["said"])
        if read is None:
            return {}
        truth = _recorded_truth(kind, row["truth"])
        source = _recorded(kind, row["source_state"], row["source_said"])
        inserted = _inserted_of_text(str(row["inserted"] or ""))
        question = Question(id=None, name=str(row["item"]), text="", kind=Kind(kind))
        invariant = Expectation(rule=Rule.INVARIANT)
        expected = invariant if relation == SOURCE else self._expectation(relation, question, str(row["rule"] or ""))
        tolerance = self.settings.tolerance
        found = judge(expected, read, source=source, truth=truth, inserted=inserted, tolerance=tolerance)
        before = found
        if relation != SOURCE and source is not None:
            before = judge(invariant, source, source=None, truth=truth, tolerance=tolerance)
        compared = None if found.by_source is None else found.by_source.comparison
        known = relation == SOURCE or source is not None
        return {
            **_against_truth(found),
            **{f"source_{name}": value if known else None for name, value in _against_truth(before).items()},
            **{f"self_{name}": value for name, value in _against_source(found).items()},
            "wanted": wanted_text(expected, read, source, inserted),
            "rule": str(expected),
            "change": compared.change.value if compared is not None else "",
            "distance": "" if compared is None or compared.distance is None else str(compared.distance),
            "why": _why(found, str(row["reply"])),
        }

    def judged_again(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record's columns under these settings; records that say the same are judged once."""
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
        """Return what is expected; what was ``recorded`` of a relation that is not installed, if nothing is stated."""
        if recorded and relation not in self.effects:
            said = stated(self._matrix, relation, question, relations=self.relations)
            return said or Expectation.read(recorded)
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
    found = next((ask for ask in seed.asks if ask.item == item), None)
    if found is None:
        raise ValueError(f"the seed does not ask {item!r}")
    return found


def _facts(ask: Ask, answer: AnswerOutput) -> Answer:
    """Return what the reader tells of an answer; where none has read it, what the rules do."""
    return answer.facts if isinstance(answer.facts, Answer) else read_answer(ask, answer)


def _against_truth(found: Judged) -> dict[str, float | None]:
    return {"agreement": found.right, "exact": found.exact, "jaccard": found.jaccard}


def _against_source(found: Judged) -> dict[str, float | None]:
    same, judged = found.same, found.by_source
    if same is None or judged is None:
        return dict.fromkeys(Answers.self_scores)
    compared = judged.comparison
    if compared is None or found.expected.rule == Rule.MUST_BECOME:
        return dict.fromkeys(Answers.self_scores, same)
    return {
        "agreement": same,
        "any_hit": float(compared.any_hit),
        "exact": float(compared.exact),
        "jaccard": compared.jaccard,
    }


def _why(judged: Judged, reply: str) -> str:
    """Return the code of the judgement: the metamorphic one, of a source that against the truth."""
    reason = (judged.by_source or judged.by_truth).reason
    broken = reply not in (ANSWERED, *REFUSALS)
    return reply if reason == "unparsed" and broken else reason


def _inserted_text(found: Inserted | None) -> str:
    """Return what was inserted as records hold it, ``count@cells@names``; "" for nothing."""
    if found is None:
        return ""
    return f"{found.count}@{';'.join(sorted(found.cells))}@{';'.join(sorted(found.names))}"


def _inserted_of_text(text: str) -> Inserted | None:
    if not text:
        return None
    count, cells, names = text.split("@", 2)
    parts = [frozenset(part for part in one.split(";") if part) for one in (cells, names)]
    return Inserted(count=int(count), cells=parts[0], names=parts[1])


@lru_cache(maxsize=8192)
def _recorded(kind: str, state: str | None, text: str | None) -> Answer | None:
    """Return the answer, or the truth, that a record's canonical columns stand for; None where there is none."""
    if state is None:
        return None
    value = read_value(Kind(kind), text or "") if state == State.VALUE else None
    return Answer(kind=Kind(kind), state=State(state), value=value)


def _recorded_truth(kind: str, text: str | None) -> Answer | None:
    if text is None:
        return None
    state = State.NOT_RELEVANT if text == NOT_RELEVANT else State.VALUE if text else State.UNPARSED
    return _recorded(kind, state.value, text)
