"""Typed answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from medtest.language.questions.values import Kind, Value


class State(StrEnum):
    """State of an answer."""

    VALUE = "value"
    NOT_RELEVANT = "not_relevant"
    REFUSAL = "refusal"
    UNPARSED = "unparsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Parsed content of an answer's text.

    Attributes:
        kind: Type of answer that the question requires.
        state: ``value`` if there is one; ``not_relevant`` if the model says that the question does not apply to the
            image;
            ``refusal`` if it does not answer; ``unparsed`` if no value was found: never a guess.
        value: The value; None in the other three states.
        span: First character and end of the text that determines the state; (0, 0) if there is none.
        hedged: True if the text is hedged ("probably"); this does not affect verdicts.
    """

    kind: Kind
    state: State
    value: Value | None = None
    span: tuple[int, int] = (0, 0)
    hedged: bool = False

    def __str__(self) -> str:
        return str(self.value) if self.value is not None else f"!{self.state.value}"
