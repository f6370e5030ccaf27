"""The 18 questions of ImageCLEFmed MEDVQA-GI 2023: ids, wordings, types of answer (``questions.yaml``)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from medtest.core.cases import Ask
from medtest.core.files.paths import read_yaml
from medtest.language.questions.answers.parse import parse, parse_all
from medtest.language.questions.answers.values.answer import Answer
from medtest.language.questions.values import Kind

FILE = Path(__file__).with_name("questions.yaml")
MASK = "mask"
"""Answer type of the questions that require a mask (task 3 of the contest)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question.

    Attributes:
        id: Official id, 0 to 17; None for other questions.
        name: Short name, the ``item`` of addresses and tables.
        text: Wording in the prompt.
        kind: Type of its answer.
        slide: Position in the MedTest slides, 1 to 18; None for other questions.
        kept: True for the 14 questions that the slides keep.
        spellings: Other wordings of the question.
    """

    id: int | None
    name: str
    text: str
    kind: Kind
    slide: int | None = None
    kept: bool = False
    spellings: tuple[str, ...] = ()

    def parse(self, answer: str) -> Answer:
        """Return the typed answer in a model's answer to this question."""
        return parse(answer, self.kind, self.id)

    def parse_truth(self, answers: tuple[str, ...]) -> Answer:
        """Return the typed union of a list of true answers."""
        return parse_all(list(answers), self.kind, self.id)


_DOUBT = ("maybe", "possibly", "probably", "perhaps", "unclear", "unsure", "uncertain", "unknown", "n/a", "not sure")
"""Truths in place of yes or no that express doubt."""


@cache
def official() -> tuple[Question, ...]:
    """Return the 18 questions in the order of their ids."""
    return tuple(
        Question(
            id=entry["id"],
            name=entry["name"],
            text=entry["text"],
            kind=Kind(entry["answer"]),
            slide=entry["slide"],
            kept=entry["kept"],
            spellings=tuple(entry["spellings"]),
        )
        for entry in _content()["questions"]
    )


def in_slide_order() -> tuple[Question, ...]:
    """Return the 18 questions in the order of the MedTest slides."""
    return tuple(sorted(official(), key=lambda question: question.slide or 0))


def kept() -> tuple[Question, ...]:
    """Return the 14 questions over which the slides average, in their order."""
    return tuple(question for question in in_slide_order() if question.kept)


def by_name(name: str) -> Question | None:
    """Return the official question with a short name, or None."""
    return next((question for question in official() if question.name == name), None)


def find(text: str) -> Question | None:
    """Return the official question of a wording, or None, ignoring case, punctuation and known misspellings."""
    return _by_wording().get(wording(text))


def asks_for_mask(text: str) -> bool:
    """Return True if a wording is one of the two questions that require a mask."""
    return _others().get(wording(text)) == MASK


@lru_cache(maxsize=512)
def question_of_ask(ask: Ask) -> Question:
    """Return a case's question in the form of the parser."""
    return Question(id=ask.id, name=ask.item, text=ask.text, kind=Kind(ask.kind))


def question_of(text: str, answers: tuple[str, ...] = ()) -> Question:
    """Return the official question of a wording, or a new one for any other text.

    Another question is a yes/no question if its true answers are yes or no (or in doubt: maybe), or if Kvasir-VQA has
    it as one; otherwise its answer is free text. Its name is ``q_`` and eight digits of its wording's SHA-256.

    Args:
        text: The question.
        answers: Its true answers, if known.
    """
    official_question = find(text)
    if official_question is not None:
        return official_question
    normalized = {answer.strip().lower().rstrip(".") for answer in answers}
    closed = bool(normalized & {"yes", "no"}) and normalized <= {"yes", "no", *_DOUBT}
    kind = Kind.YES_NO if closed or _others().get(wording(text)) == Kind.YES_NO.value else Kind.TEXT
    digest = hashlib.sha256(wording(text).encode()).hexdigest()[:8]
    return Question(id=None, name=f"q_{digest}", text=text.strip(), kind=kind)


def wording(text: str) -> str:
    """Return a question's words without case, punctuation and repeated spaces."""
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


@cache
def _by_wording() -> Mapping[str, Question]:
    return {wording(text): question for question in official() for text in (question.text, *question.spellings)}


@cache
def _others() -> Mapping[str, str]:
    return {wording(entry["text"]): str(entry["answer"]) for entry in _content()["others"]}


def _content() -> dict[str, list[dict[str, Any]]]:

    content: dict[str, list[dict[str, Any]]] = read_yaml(FILE)
    return content
