"""Entry point of parsing: an answer's text and its question give a typed :class:`Answer`.

The order is the same for all kinds. A statement that the question does not apply comes first, then a value, then "none"
(which for a colour, place, size or type means that there is nothing to describe), then a refusal. A clause with a
refusal gives no name, but numbers are still read ("cannot be measured, about 10 mm").
"""

from __future__ import annotations

import re

from medtest.language.questions.answers import states
from medtest.language.questions.answers.disclaimers import opening, unsaid
from medtest.language.questions.answers.extract.named import NORMAL
from medtest.language.questions.answers.kinds import KINDS, AnswerKind
from medtest.language.questions.answers.lexicon.spelling import mended
from medtest.language.questions.answers.plain import lowered, plain
from medtest.language.questions.answers.revised import excepted, hence, revised, verdict
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.answers.values.readings import Found, blanked
from medtest.language.questions.answers.whole.denials import unknown_thing
from medtest.language.questions.answers.whole.passage import left_over_of_nothing, part_around
from medtest.language.questions.answers.whole.words import unknown
from medtest.language.questions.values import NO, YES, Kind, Names, Ranges, Value, ranges, words

_OF_ABNORMALITIES = frozenset({5, 10, 16, 17})
"""Questions that describe an abnormality or a polyp (official ids), which do not apply to normal findings."""
_VALUELESS = frozenset((State.REFUSAL.value,))
_STATES = _VALUELESS | {State.NOT_RELEVANT.value}
_EMPTY = frozenset(("no", "0"))
"""Values of a "no" without an actual exception: "no text, and nothing besides the mucosa"."""
_NOT_THERE = re.compile(r"\A\W*not (?:visible|present|seen|detected)\b")
_THING = r"(?:polyps?|abnormalit(?:y|ies)|lesions?|findings?|(?:anatomical )?landmarks?|instruments?|object)"
_NO_THING = re.compile(
    rf"(?:\b(?:no|not|without|kein\w*|ning\u00fan|aucune?)|n't)\b[^.;\n]{{0,40}}?\b{_THING}\b"
    rf"|\b{_THING}\b[^.;\n]{{0,20}}(?:\b(?:not|absent)|n't)\b"
)


def parse(text: str, kind: Kind, item: int | None = None) -> Answer:
    """Return the typed answer in a text.

    Args:
        text: The model's answer; any text.
        kind: Type of answer that the question requires.
        item: Official id of the question (0-17), for which yes/no, findings and counts have specific wordings; None for
            any
            other question.
    """
    reader = KINDS[kind]
    plain_text = plain(text, reader.fields)
    stripped = plain_text.strip()
    offset = len(plain_text) - len(plain_text.lstrip())
    low = lowered(stripped)
    if not low:
        return Answer(kind=kind, state=State.UNPARSED)
    hedged = states.hedged(low)
    stripped, low, places = mended(stripped, low)
    reading = _meant(stripped, low, reader, item) or _found(stripped, low, reader, item)
    if reading is None:
        return Answer(kind=kind, state=State.UNPARSED, hedged=hedged)
    content, start, end = reading
    if content is State.UNPARSED:
        return Answer(kind=kind, state=State.UNPARSED, hedged=hedged)
    if places is not None:
        start, end = places[start], places[end - 1] + 1 if end else 0
    span = (offset + start, offset + end)
    if isinstance(content, State):
        return Answer(kind=kind, state=content, span=span, hedged=hedged)
    return Answer(kind=kind, state=State.VALUE, value=content, span=span, hedged=hedged)


def parse_all(texts: list[str], kind: Kind, item: int | None = None) -> Answer:
    """Return one answer for a list of answers, such as official truths: the union of their names or ranges.

    Args:
        texts: Answers that are all true; at least one.
        kind: Type of answer.
        item: Official id of the question.

    Returns:
        The parsed union; ``not_relevant`` if all say so. The span is that of the list joined by line breaks.
    """
    joined = "\n".join(texts)
    parsed = [parse(text, kind, item) for text in texts]
    values = [answer.value for answer in parsed if answer.value is not None]
    if not values:
        common = {answer.state for answer in parsed}
        return Answer(kind=kind, state=common.pop() if len(common) == 1 else State.UNPARSED, span=(0, len(joined)))
    return Answer(kind=kind, state=State.VALUE, value=_union(values), span=(0, len(joined)))


def _union(values: list[Value]) -> Value:
    first = values[0]
    if isinstance(first, Names):
        union = {name for value in values if isinstance(value, Names) for name in value.names}
        named_ones = union - {YES, NO}
        return Names(frozenset(named_ones or union))
    if isinstance(first, Ranges):
        return ranges(*(part for value in values if isinstance(value, Ranges) for part in value.ranges))
    return words(" ".join(str(value) for value in values))


def _meant(text: str, low: str, kind: AnswerKind, item: int | None) -> Found | None:
    """Return the value after a conclusion, a correction or an "except", if there is one."""
    starts = [(revised(low), _VALUELESS)]
    if kind.conclusive:
        starts = [(verdict(low), _STATES), (hence(low), _STATES | _EMPTY), *starts, (excepted(low), _STATES | _EMPTY)]
    for start, left_out in starts:
        reading = _found(blanked(text, 0, start), blanked(low, 0, start), kind, item) if start else None
        if reading is not None and str(reading[0]) not in left_out:
            return reading
    return None


def _found(text: str, low: str, kind: AnswerKind, item: int | None) -> Found | None:
    irrelevant = states.not_relevant(low)
    if irrelevant is not None and states.leading(low) is None:
        first, last = irrelevant[0]
        if not irrelevant[1] and unknown(part_around(low, first, last)):
            return State.UNPARSED, 0, 0
        return State.REFUSAL if irrelevant[1] else State.NOT_RELEVANT, first, last
    places, _ = unsaid(low)
    answered, masked = _without(text, places), _without(low, places)
    thing = unknown_thing(masked) if kind.describes or kind.counts else None
    if thing is not None:
        return State.NOT_RELEVANT, *thing
    start = opening(masked)
    value = _understood(blanked(answered, 0, start), blanked(masked, 0, start), kind, item) if start else None
    value = value or _understood(answered, masked, kind, item)
    if value is not None:
        return value
    refused = states.refusals(low)
    if kind.describes:
        denial = states.nothing(masked) or _lead_no(masked) or _place_of(_NOT_THERE, masked)
        denial = None if refused and denial is not None and denial[0] > refused[0][0] else denial
        denial = denial or _place_of(_NO_THING, masked)
        denial = denial or (_place_of(NORMAL, masked) if item in _OF_ABNORMALITIES else None)
        if denial is not None:
            over = left_over_of_nothing(masked, _THING, *denial)
            return (State.UNPARSED, 0, 0) if over else (State.NOT_RELEVANT, *denial)
    return (State.REFUSAL, *refused[0]) if refused else None


def _understood(text: str, low: str, kind: AnswerKind, item: int | None) -> Found | None:
    """Return the value of a text, or ``unparsed`` if part of the text is unexplained."""
    reading = kind.read(text, low, item) if low.strip() else None
    return (State.UNPARSED, 0, 0) if reading is not None and kind.left_over(low, item, reading) else reading


def _without(text: str, places: tuple[tuple[int, int], ...]) -> str:
    for first, last in places:
        text = blanked(text, first, last)
    return text


def _lead_no(low: str) -> tuple[int, int] | None:
    lead = states.leading(low)
    return lead[1] if lead is not None and not lead[0] else None


def _place_of(pattern: re.Pattern[str], low: str) -> tuple[int, int] | None:
    match = pattern.search(low)
    return match.span() if match else None
