"""An answer's words as a record keeps them, and who read what from them."""

from __future__ import annotations

from functools import lru_cache

from medtest.cases import AnswerOutput, Ask
from medtest.vqa.answers.answer import Answer, State
from medtest.vqa.answers.parse import parse, parse_all
from medtest.vqa.values import Kind

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
