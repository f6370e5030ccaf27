"""Answers, truths and inserted objects as texts of records, and back."""

from __future__ import annotations

from functools import lru_cache

from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.expectations import Inserted
from medtest.language.questions.values import Kind, read_value
from medtest.language.questions.wording import NOT_RELEVANT


def inserted_text(inserted: Inserted | None) -> str:
    """Return the inserted objects in the form of records, ``count@cells@names``; "" for none."""
    if inserted is None:
        return ""
    return f"{inserted.count}@{';'.join(sorted(inserted.cells))}@{';'.join(sorted(inserted.names))}"


def inserted_of_text(text: str) -> Inserted | None:
    """Return the inserted objects from their text in a record; None for none."""
    if not text:
        return None
    count, cells, names = text.split("@", 2)
    parts = [frozenset(part for part in text_part.split(";") if part) for text_part in (cells, names)]
    return Inserted(count=int(count), cells=parts[0], names=parts[1])


@lru_cache(maxsize=8192)
def recorded_answer(kind: str, state: str | None, text: str | None) -> Answer | None:
    """Return the answer, or truth, of a record's canonical columns; None if there is none."""
    if state is None:
        return None
    value = read_value(Kind(kind), text or "") if state == State.VALUE else None
    return Answer(kind=Kind(kind), state=State(state), value=value)


def recorded_truth(kind: str, text: str | None) -> Answer | None:
    """Return the truth from its text in a record; None if there is none."""
    if text is None:
        return None
    state = State.NOT_RELEVANT if text == NOT_RELEVANT else State.VALUE if text else State.UNPARSED
    return recorded_answer(kind, state.value, text)
