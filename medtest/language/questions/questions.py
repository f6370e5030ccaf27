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
from medtest.language.questions.answers.parse import parse, parse_all
from medtest.language.questions.answers.values.answer import Answer
from medtest.language.questions.values import Kind

FILE = Path(__file__).with_name("questions.yaml")
MASK = "mask"
"""Type of answer of the questions that ask for a mask (task 3 of the contest)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question.

    Attributes:
        id: Official id, 0 to 17; None for a question that is none of the 18.
        name: Short name, the ``item`` of addresses and tables.
        text: Wording that is put to a model.
        kind: Type of its answer.
        slide: Its place in the MedTest slides, 1 to 18; None for other questions.
        kept: Whether it is among the 14 that the slides keep.
        spellings: Other wordings that mean it.
    """

    id: int | None
    name: str
    text: str
    kind: Kind
    slide: int | None = None
    kept: bool = False
    spellings: tuple[str, ...] = ()

    def parse(self, answer: str) -> Answer:
        """Return what a model's answer to this question says."""
        return parse(answer, self.kind, self.id)

    def parse_truth(self, answers: tuple[str, ...]) -> Answer:
        """Return what a list of true answers says together."""
        return parse_all(list(answers), self.kind, self.id)


_DOUBT = ("maybe", "possibly", "probably", "perhaps", "unclear", "unsure", "uncertain", "unknown", "n/a", "not sure")
"""What some truths say in place of yes or no."""


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
    return tuple(sorted(official(), key=lambda one: one.slide or 0))


def kept() -> tuple[Question, ...]:
    """Return the 14 questions over which the slides average, in their order."""
    return tuple(one for one in in_slide_order() if one.kept)


def by_name(name: str) -> Question | None:
    """Return the official question of a short name, or None."""
    return next((one for one in official() if one.name == name), None)


def find(text: str) -> Question | None:
    """Return the official question that a wording means, or None; case, punctuation and known misspellings are even."""
    return _by_wording().get(wording(text))


def asks_for_mask(text: str) -> bool:
    """Say whether a wording is one of the two questions that are answered with a mask."""
    return _others().get(wording(text)) == MASK


@lru_cache(maxsize=512)
def question_of_ask(ask: Ask) -> Question:
    """Return a question that a case asks, as the parser knows it."""
    return Question(id=ask.id, name=ask.item, text=ask.text, kind=Kind(ask.kind))


def question_of(text: str, answers: tuple[str, ...] = ()) -> Question:
    """Return the official question of a wording, or one made for any other text.

    Another question is answered by yes or no where its true answers are yes or no (or in doubt: maybe), or where
    Kvasir-VQA asks it so; by free text otherwise. Its name is ``q_`` and eight digits of its wording's SHA-256.

    Args:
        text: The question.
        answers: Its true answers, where known.
    """
    known = find(text)
    if known is not None:
        return known
    said = {answer.strip().lower().rstrip(".") for answer in answers}
    closed = bool(said & {"yes", "no"}) and said <= {"yes", "no", *_DOUBT}
    kind = Kind.YES_NO if closed or _others().get(wording(text)) == Kind.YES_NO.value else Kind.TEXT
    digest = hashlib.sha256(wording(text).encode()).hexdigest()[:8]
    return Question(id=None, name=f"q_{digest}", text=text.strip(), kind=kind)


def wording(text: str) -> str:
    """Return a question's words without case, punctuation and repeated blanks."""
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


@cache
def _by_wording() -> Mapping[str, Question]:
    return {wording(text): one for one in official() for text in (one.text, *one.spellings)}


@cache
def _others() -> Mapping[str, str]:
    return {wording(entry["text"]): str(entry["answer"]) for entry in _content()["others"]}


def _content() -> dict[str, list[dict[str, Any]]]:
    import yaml

    content: dict[str, list[dict[str, Any]]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return content
