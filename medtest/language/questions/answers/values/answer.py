"""A typed answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from medtest.language.questions.values import Kind, Value


class State(StrEnum):
    """What became of an answer."""

    VALUE = "value"
    NOT_RELEVANT = "not_relevant"
    REFUSAL = "refusal"
    UNPARSED = "unparsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an answer's text says.

    Attributes:
        kind: Type of answer that the question asks for.
        state: ``value`` where there is one; ``not_relevant`` where the model says that the question does not apply to
            the image; ``refusal`` where it does not answer; ``unparsed`` where no value was found: never a guess.
        value: The value; None in the other three states.
        span: First character and end of what the state rests on, in the text; (0, 0) where there is nothing.
        hedged: Whether the text says it with a reservation ("probably"); it changes no verdict.
    """

    kind: Kind
    state: State
    value: Value | None = None
    span: tuple[int, int] = (0, 0)
    hedged: bool = False

    def __str__(self) -> str:
        return str(self.value) if self.value is not None else f"!{self.state.value}"
