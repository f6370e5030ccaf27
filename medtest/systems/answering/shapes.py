"""Schemas of structured answers: one Pydantic model per type of answer, and one for all questions of an image.

A schema asks for a value instead of a sentence, but must not reveal true answers: lists of findings, colours and places
are open. Values are converted back to words (:func:`said`), so that structured and plain answers go through the same
parser.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from medtest.core.cases import Ask, Json
from medtest.language.questions.values import Kind

ANSWER = "answer"
"""Field name of the answer to a single question."""
NOT_RELEVANT = "not relevant"

_NULL = "null where the question does not apply to the image"
_FIELDS: dict[str, tuple[Any, str]] = {
    Kind.YES_NO: (Literal["yes", "no", "not relevant"], "yes, no, or not relevant"),
    Kind.FINDINGS: (list[str], "names of everything of this kind that is seen; an empty list where there is nothing"),
    Kind.COUNT: (int | None, f"how many; {_NULL}"),
    Kind.SIZE: (str | None, f"size in millimetres, one number or a range; {_NULL}"),
    Kind.COLOUR: (list[str], "names of colours; an empty list where the question does not apply"),
    Kind.PLACE: (list[str], "upper, center or lower with left, center or right; an empty list where it does not apply"),
    Kind.POLYP_TYPE: (str | None, f"Paris classification; {_NULL}"),
    Kind.PROCEDURE: (str | None, f"name of the procedure; {_NULL}"),
    Kind.TEXT: (str | None, f"a few words; {_NULL}"),
}
CANNOT_TELL, REFUSED = "cannot tell", "refused"
"""Values that a schema with ways out accepts in place of an answer."""
_OUT: Any = Literal["not relevant", "cannot tell", "refused"]
_OUTS = (
    f"or: {NOT_RELEVANT}, where the question does not apply to the image; {CANNOT_TELL}, where it cannot be seen;"
    f" {REFUSED}, where you will not answer"
)
_OPEN: dict[str, tuple[Any, str]] = {
    Kind.YES_NO: (Literal["yes", "no", "not relevant", "cannot tell", "refused"], f"yes or no; {_OUTS}"),
    Kind.FINDINGS: (
        list[str] | _OUT,
        f"names of everything of this kind that is seen; an empty list where there is nothing; {_OUTS}",
    ),
    Kind.COUNT: (int | _OUT, f"how many; {_OUTS}"),
    Kind.SIZE: (str, f"size in millimetres, one number or a range; {_OUTS}"),
    Kind.COLOUR: (list[str] | _OUT, f"names of colours; {_OUTS}"),
    Kind.PLACE: (list[str] | _OUT, f"upper, center or lower with left, center or right; {_OUTS}"),
    Kind.POLYP_TYPE: (str, f"Paris classification; {_OUTS}"),
    Kind.PROCEDURE: (str, f"name of the procedure; {_OUTS}"),
    Kind.TEXT: (str, f"a few words; {_OUTS}"),
}
_SAID = {CANNOT_TELL: "I cannot tell.", REFUSED: "I cannot answer this question."}
_EMPTY_IS_NONE = frozenset({Kind.FINDINGS.value})


def shape_of(ask: Ask, *, outs: bool = False) -> type[BaseModel]:
    """Return the schema of one question's answer; the same class for the same type of answer.

    Args:
        ask: The question.
        outs: Whether "cannot tell" and "refused" are among its values.
    """
    return _single(ask.kind, outs)


def shape_of_all(asks: Sequence[Ask], *, outs: bool = False) -> type[BaseModel]:
    """Return the schema of the answers to several questions, one field each; the same class for the same questions."""
    return _several(tuple((ask.text, ask.kind) for ask in asks), tuple(field_names(asks)), outs)


def field_names(asks: Sequence[Ask]) -> list[str]:
    """Return the field name of each question: its item if that is a valid name, otherwise its number."""
    return [ask.item if _can_be_field(ask.item) else f"question_{number}" for number, ask in enumerate(asks, start=1)]


def _can_be_field(name: str) -> bool:
    plain = name.isidentifier() and not name.startswith(("_", "model_", "question_"))
    return plain and not hasattr(BaseModel, name)


@lru_cache(maxsize=32)
def _single(kind: str, outs: bool) -> type[BaseModel]:
    annotation, description = (_OPEN if outs else _FIELDS)[kind]
    fields: dict[str, Any] = {ANSWER: (annotation, Field(description=description))}
    model: type[BaseModel] = create_model("Answer", **fields)
    return model


@lru_cache(maxsize=64)
def _several(questions: tuple[tuple[str, str], ...], names: tuple[str, ...], outs: bool) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name, (text, kind) in zip(names, questions, strict=True):
        annotation, description = (_OPEN if outs else _FIELDS)[kind]
        fields[name] = (annotation, Field(description=f"{text} ({description})"))
    model: type[BaseModel] = create_model("Answers", **fields)
    return model


def said(value: Json, kind: str) -> str:
    """Return a structured answer in the words of a terse plain one."""
    if value is None:
        return NOT_RELEVANT
    if isinstance(value, list):
        if not value:
            return "none" if kind in _EMPTY_IS_NONE else NOT_RELEVANT
        value = "; ".join(str(item) for item in value)
    return _SAID.get(str(value).strip().lower(), str(value))
