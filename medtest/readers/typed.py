"""An answer's words as a record keeps them, and who read what from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from medtest.core.cases import AnswerOutput, Ask, PreparedSeed
from medtest.language.questions.answers.parse import parse, parse_all
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.judging import said
from medtest.language.questions.questions import by_name
from medtest.language.questions.values import Kind
from medtest.language.questions.wording import MOST_WORDS
from medtest.readers.base import BatchReader

ANSWERED = "answered"
REFUSALS = frozenset({"refusal", "content_filter"})
"""States of a reply that are a refusal whatever its words."""
CUT = "…"
MOST_EVIDENCE = 160
"""Characters of the words that a value was read from, as records keep them."""


def clean(text: str, most: int) -> str:
    """Return a text that any file takes, at most ``most`` characters long: no lone surrogates, no control characters.

    Args:
        text: From outside, of any length.
        most: Characters that are kept.
    """
    kept = text[: most + 1].encode("utf-8", "replace").decode("utf-8")
    kept = "".join(one if one.isprintable() or one == "\n" else " " for one in kept).strip()
    return kept if len(text) <= most else f"{kept[: most - 1].rstrip()}{CUT}"


def stage_of(answer: AnswerOutput) -> str:
    """Return what a record says of who read an answer.

    Returns:
        ``schema`` where it came in the shape that was asked for, ``rules`` where its words were parsed, "" where there
        was nothing to read: the server refused, broke off, or sent something else. A judge's reading is of a view.
    """
    return ("schema" if answer.shaped else "rules") if answer.state == ANSWERED else ""


@lru_cache(maxsize=4096)
def _parsed(text: str, kind: str, item: int | None) -> Answer:
    return parse(text, Kind(kind), item)


@lru_cache(maxsize=4096)
def _parsed_all(texts: tuple[str, ...], kind: str, item: int | None) -> Answer:
    return parse_all(list(texts), Kind(kind), item)


def read_answer(ask: Ask, answer: AnswerOutput) -> Answer:
    """Return what a system's answer says."""
    return reading(answer.text, answer.state, ask.kind, ask.id)


def reading(words: str, reply: str, kind: str, item: int | None) -> Answer:
    """Return what an answer says, whatever its words where the server itself refused or broke off."""
    if reply in REFUSALS:
        return Answer(kind=Kind(kind), state=State.REFUSAL)
    if reply != ANSWERED:
        return Answer(kind=Kind(kind), state=State.UNPARSED)
    return _parsed(words, kind, item)


def truth_of(ask: Ask) -> Answer | None:
    """Return what the true answers to a question say; None where nobody knows one."""
    return _parsed_all(ask.truth, ask.kind, ask.id) if ask.truth else None


@dataclass(frozen=True, slots=True)
class AnswerText:
    """What is read of an answer.

    Attributes:
        text: Its words.
        reply: State of the server's reply.
        kind: Type of the answer.
        item: Number of the question, None for one of the user's own.
    """

    text: str
    reply: str
    kind: str
    item: int | None


class TypedAnswers(BatchReader[AnswerText, Answer]):
    """Reads values from words by rules (:mod:`medtest.language.questions.answers`)."""

    task: ClassVar[str] = "answer"
    columns: ClassVar[tuple[str, ...]] = ("state", "said", "evidence")
    needs: ClassVar[tuple[str, ...]] = ("item", "kind", "answer", "state", "reply")
    of_oracle: ClassVar[bool] = True
    at_once: ClassVar[int] = 256

    def content(self, answer: Any, seed: PreparedSeed) -> AnswerText | None:
        """Return the words of an answer to one of the seed's questions."""
        asks = (ask for ask in seed.asks if ask.item == answer.address.item)
        return next((AnswerText(answer.text, answer.state, ask.kind, ask.id) for ask in asks), None)

    def recorded(self, row: Mapping[str, Any]) -> AnswerText | None:
        """Return a record's words; None where they were cut to what a record keeps."""
        kind, words = row["kind"], row["answer"]
        if not kind or row["state"] is None or words is None or (len(words) >= MOST_WORDS and words.endswith(CUT)):
            return None
        known = by_name(str(row["item"]))
        return AnswerText(words, str(row["reply"]), str(kind), None if known is None else known.id)

    def read(self, contents: Sequence[AnswerText]) -> list[Answer]:
        """Return what each says."""
        return [reading(one.text, one.reply, one.kind, one.item) for one in contents]

    def texts(self, content: AnswerText, facts: Answer) -> dict[str, str | None]:
        """Return state, canonical value, and the words that it was read from."""
        start, end = facts.span
        return {
            "state": facts.state.value,
            "said": said(facts),
            "evidence": clean(content.text[start:end], MOST_EVIDENCE),
        }

    def unknown(self, content: AnswerText, facts: Answer) -> frozenset[str]:
        """Return what no value could be read of."""
        return frozenset({"said"} if facts.state == State.UNPARSED else ())
