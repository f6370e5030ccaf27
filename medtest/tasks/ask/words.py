"""Texts next to a picture with a question: answers, parsed values, expected answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.core.records import text_in
from medtest.language.questions.wording import plain_value

COLUMNS: tuple[str, ...] = (
    "question",
    "answer",
    "said",
    "truth",
    "wanted",
    "state",
    "source_state",
    "why",
    "rule",
    "kind",
)
"""Text columns of the oracle of answers from which the texts are built."""

READ_TABLE = "answers_judged.csv"
"""Table of a judge's readings."""

Words = tuple[tuple[str, str], ...]
"""Headings and texts, in order."""

_STATES = {"not_relevant": "not relevant", "refusal": "refused", "unparsed": "could not be read"}
_WHY = {
    "may change": "the relation may rightly change this answer: not judged",
    "skip": "the relation takes away what is asked about: not judged",
    "source refused": "the source was refused: not judged",
    "source unparsed": "the answer to the source could not be read: not judged",
    "length": "the answer was cut off: not judged",
    "malformed": "the reply was malformed: not judged",
    "unparsed": "the answer could not be read: not judged",
}


def words_of(record: Mapping[str, Any], source: Mapping[str, Any] | None) -> Words:
    """Return the texts of a follow-up's case, with those of its source.

    Args:
        record: Record of the follow-up, with :data:`COLUMNS`.
        source: Record of the source; None if unknown.
    """
    pairs = [("question", text_in(record, "question"))]
    if source is not None:
        pairs.append(("source", _answer(source)))
    pairs.append(("follow-up", _answer(record)))
    expected, truth, kind = text_in(record, "wanted"), record.get("truth"), text_in(record, "kind")
    if text_in(record, "rule").startswith("must become") and expected:
        pairs.append(("must become", plain_value(expected, kind)))
    if truth is not None:
        pairs.append(("truth of the source", plain_value(str(truth), kind) or "could not be read"))
    why = _WHY.get(text_in(record, "why"))
    if why:
        pairs.append(("judgement", why))
    return tuple((name, text) for name, text in pairs if text)


def reading_of(record: Mapping[str, Any]) -> str:
    """Return the value parsed from an answer, or the reason why there is none."""
    state = text_in(record, "state")
    return _STATES.get(state) or plain_value(text_in(record, "said"), text_in(record, "kind"))


def _answer(record: Mapping[str, Any]) -> str:
    """Return an answer's text with the value parsed from it."""
    words, reading = text_in(record, "answer"), reading_of(record)
    quoted = f"\N{LEFT DOUBLE QUOTATION MARK}{words}\N{RIGHT DOUBLE QUOTATION MARK}" if words else "no words"
    return f"{quoted} (read as: {reading})" if reading else quoted
