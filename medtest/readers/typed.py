"""The words of an answer as stored in a record, and which reader read what from them."""

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
"""States of a reply that count as a refusal regardless of its words."""
CUT = "…"
MOST_EVIDENCE = 160
"""Maximum number of characters of the evidence for a value in records."""


def clean(text: str, most: int) -> str:
    """Return a text that is safe for any file, at most ``most`` characters: no lone surrogates or control characters.

    Args:
        text: Untrusted text of any length.
        most: Maximum number of characters.
    """
    cleaned = text[: most + 1].encode("utf-8", "replace").decode("utf-8")
    cleaned = "".join(char if char.isprintable() or char == "\n" else " " for char in cleaned).strip()
    return cleaned if len(text) <= most else f"{cleaned[: most - 1].rstrip()}{CUT}"


def stage_of(answer: AnswerOutput) -> str:
    """Return the stage in which an answer was read, for its record.

    Returns:
        ``schema`` if it has the requested structure, ``rules`` if its words were parsed, "" if there was nothing to
        read because the server refused, broke off, or sent something else. A judge's readings belong to views.
    """
    return ("schema" if answer.shaped else "rules") if answer.state == ANSWERED else ""


@lru_cache(maxsize=4096)
def _parsed(text: str, kind: str, item: int | None) -> Answer:
    return parse(text, Kind(kind), item)


@lru_cache(maxsize=4096)
def _parsed_all(texts: tuple[str, ...], kind: str, item: int | None) -> Answer:
    return parse_all(list(texts), Kind(kind), item)


def read_answer(ask: Ask, answer: AnswerOutput) -> Answer:
    """Return the parsed answer of a system."""
    return reading(answer.text, answer.state, ask.kind, ask.id)


def reading(words: str, reply: str, kind: str, item: int | None) -> Answer:
    """Return the parsed answer; if the server itself refused or broke off, the words are ignored."""
    if reply in REFUSALS:
        return Answer(kind=Kind(kind), state=State.REFUSAL)
    if reply != ANSWERED:
        return Answer(kind=Kind(kind), state=State.UNPARSED)
    return _parsed(words, kind, item)


def truth_of(ask: Ask) -> Answer | None:
    """Return the parsed true answers to a question; None if there are none."""
    return _parsed_all(ask.truth, ask.kind, ask.id) if ask.truth else None


@dataclass(frozen=True, slots=True)
class AnswerText:
    """The content of an answer to read.

    Attributes:
        text: The words.
        reply: State of the server's reply.
        kind: Type of the answer.
        item: Number of the question, None for the user's own questions.
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
        """Return a record's words; None if they were truncated for the record."""
        kind, words = row["kind"], row["answer"]
        if not kind or row["state"] is None or words is None or (len(words) >= MOST_WORDS and words.endswith(CUT)):
            return None
        question = by_name(str(row["item"]))
        return AnswerText(words, str(row["reply"]), str(kind), None if question is None else question.id)

    def read(self, contents: Sequence[AnswerText]) -> list[Answer]:
        """Return the parsed answer for each content."""
        return [reading(content.text, content.reply, content.kind, content.item) for content in contents]

    def texts(self, content: AnswerText, facts: Answer) -> dict[str, str | None]:
        """Return state, canonical value, and the words the value was read from."""
        start, end = facts.span
        return {
            "state": facts.state.value,
            "said": said(facts),
            "evidence": clean(content.text[start:end], MOST_EVIDENCE),
        }

    def unknown(self, content: AnswerText, facts: Answer) -> frozenset[str]:
        """Return the columns for which no value could be read."""
        return frozenset({"said"} if facts.state == State.UNPARSED else ())
