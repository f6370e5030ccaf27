"""The door: an answer's text and its question in, a typed :class:`Answer` out.

The order is the same for all kinds. What says that the question does not apply comes first, a value next, then a "none"
(which for a colour, place, size or type says that there is nothing to describe), then a refusal. A clause in which the
model refuses gives no name; numbers are taken even there ("cannot be measured, about 10 mm").
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
from medtest.language.questions.answers.whole.passage import left_over_of_nothing, part_around
from medtest.language.questions.answers.whole.words import unknown
from medtest.language.questions.values import NO, YES, Kind, Names, Ranges, Value, ranges, words

_OF_ABNORMALITIES = frozenset({5, 10, 16, 17})
"""Questions that describe an abnormality or a polyp (official ids): they do not apply to what is called normal."""
_VALUELESS = frozenset((State.REFUSAL.value,))
_STATES = _VALUELESS | {State.NOT_RELEVANT.value}
_EMPTY = frozenset(("no", "0"))
"""What a "no" is that has no exception after all: "no text, and nothing besides the mucosa"."""
_NOT_THERE = re.compile(r"\A\W*not (?:visible|present|seen|detected)\b")
_THING = r"(?:polyps?|abnormalit(?:y|ies)|lesions?|findings?|(?:anatomical )?landmarks?|instruments?|object)"
_NONE_SHOWN = re.compile(rf"\b(?:no|not any|n't any|kein\w*|aucune?)\s+(?:[^\W\d]+\s+){{0,2}}?{_THING}\b")
_NO_THING = re.compile(
    rf"(?:\b(?:no|not|without|kein\w*|ning\u00fan|aucune?)|n't)\b[^.;\n]{{0,40}}?\b{_THING}\b"
    rf"|\b{_THING}\b[^.;\n]{{0,20}}(?:\b(?:not|absent)|n't)\b"
)


def parse(text: str, kind: Kind, item: int | None = None) -> Answer:
    """Return what an answer says.

    Args:
        text: The answer as the model gave it; any text at all.
        kind: Type of answer that the question asks for.
        item: Official id of the question (0-17), which yes/no, findings and counts have words of their own for; None
            for any other question.
    """
    reader = KINDS[kind]
    whole = plain(text, reader.fields)
    kept = whole.strip()
    offset = len(whole) - len(whole.lstrip())
    low = lowered(kept)
    if not low:
        return Answer(kind=kind, state=State.UNPARSED)
    hedged = states.hedged(low)
    kept, low, places = mended(kept, low)
    found = _meant(kept, low, reader, item) or _found(kept, low, reader, item)
    if found is None:
        return Answer(kind=kind, state=State.UNPARSED, hedged=hedged)
    what, start, end = found
    if what is State.UNPARSED:
        return Answer(kind=kind, state=State.UNPARSED, hedged=hedged)
    if places is not None:
        start, end = places[start], places[end - 1] + 1 if end else 0
    span = (offset + start, offset + end)
    if isinstance(what, State):
        return Answer(kind=kind, state=what, span=span, hedged=hedged)
    return Answer(kind=kind, state=State.VALUE, value=what, span=span, hedged=hedged)


def parse_all(texts: list[str], kind: Kind, item: int | None = None) -> Answer:
    """Return one answer for a list of answers, as official truths are: their names or ranges together.

    Args:
        texts: Answers that are all true; at least one.
        kind: Type of answer.
        item: Official id of the question.

    Returns:
        The parsed union; ``not_relevant`` where all say so. Span is that of the list joined by line breaks.
    """
    joined = "\n".join(texts)
    parsed = [parse(text, kind, item) for text in texts]
    values = [one.value for one in parsed if one.value is not None]
    if not values:
        same = {one.state for one in parsed}
        return Answer(kind=kind, state=same.pop() if len(same) == 1 else State.UNPARSED, span=(0, len(joined)))
    return Answer(kind=kind, state=State.VALUE, value=_union(values), span=(0, len(joined)))


def _union(values: list[Value]) -> Value:
    first = values[0]
    if isinstance(first, Names):
        found = {name for one in values if isinstance(one, Names) for name in one.names}
        named_ones = found - {YES, NO}
        return Names(frozenset(named_ones or found))
    if isinstance(first, Ranges):
        return ranges(*(part for one in values if isinstance(one, Ranges) for part in one.ranges))
    return words(" ".join(str(one) for one in values))


def _meant(text: str, low: str, kind: AnswerKind, item: int | None) -> Found | None:
    """Return what stands behind a conclusion, a second thought or an "except", where that gives a value of its own."""
    starts = [(revised(low), _VALUELESS)]
    if kind.conclusive:
        starts = [(verdict(low), _STATES), (hence(low), _STATES | _EMPTY), *starts, (excepted(low), _STATES | _EMPTY)]
    for start, left_out in starts:
        found = _found(blanked(text, 0, start), blanked(low, 0, start), kind, item) if start else None
        if found is not None and str(found[0]) not in left_out:
            return found
    return None


def _found(text: str, low: str, kind: AnswerKind, item: int | None) -> Found | None:
    irrelevant = states.not_relevant(low)
    if irrelevant is not None and states.leading(low) is None:
        first, last = irrelevant[0]
        if not irrelevant[1] and unknown(part_around(low, first, last)):
            return State.UNPARSED, 0, 0
        return State.REFUSAL if irrelevant[1] else State.NOT_RELEVANT, first, last
    places, _ = unsaid(low)
    said, shown = _without(text, places), _without(low, places)
    start = opening(shown)
    value = _understood(blanked(said, 0, start), blanked(shown, 0, start), kind, item) if start else None
    value = value or _understood(said, shown, kind, item)
    if value is not None:
        return value
    refused = states.refusals(low)
    if kind.describes:
        none = states.nothing(shown) or _lead_no(shown) or _place_of(_NOT_THERE, shown)
        none = None if refused and none is not None and none[0] > refused[0][0] else none
        none = none or _place_of(_NO_THING, shown)
        none = none or (_place_of(NORMAL, shown) if item in _OF_ABNORMALITIES else None)
        if none is not None:
            over = left_over_of_nothing(shown, _THING, *none)
            return (State.UNPARSED, 0, 0) if over else (State.NOT_RELEVANT, *none)
    return (State.REFUSAL, *refused[0]) if refused else None


def _understood(text: str, low: str, kind: AnswerKind, item: int | None) -> Found | None:
    """Return the value of a text, ``unparsed`` in its place where something of the text is left over."""
    found = kind.read(text, low, item) if low.strip() else None
    return (State.UNPARSED, 0, 0) if found is not None and kind.left_over(low, item, found) else found


def _without(text: str, places: tuple[tuple[int, int], ...]) -> str:
    for first, last in places:
        text = blanked(text, first, last)
    return text


def _lead_no(low: str) -> tuple[int, int] | None:
    lead = states.leading(low)
    return lead[1] if lead is not None and not lead[0] else None


def _place_of(pattern: re.Pattern[str], low: str) -> tuple[int, int] | None:
    found = pattern.search(low)
    return found.span() if found else None
