"""Phrasing of plain answers: terse, as sentences, hedged, chatty, Markdown, JSON; also refusals."""

from __future__ import annotations

import json
from collections.abc import Sequence

from medtest.simlab.answering.draws import Draws
from medtest.simlab.answering.topics import CLOSED, COLOURS, COUNTS, LISTS, PLACES, WORDS, Topic
from medtest.simlab.defects import Utterance, number_of
from medtest.simlab.seeing.sight import NONE, NOT_RELEVANT

STYLES: tuple[str, ...] = ("terse", "sentence", "hedged", "chatty", "markdown", "json")
"""Styles of an answer, drawn for each request."""

REFUSALS: tuple[str, ...] = tuple(WORDS["refusals"])
UNSURE = "I do not understand what is asked."

_YES: dict[Topic, str] = WORDS["affirmed"]
_NO: dict[Topic, str] = WORDS["denied"]
_THING: dict[Topic, str] = WORDS["things"]
_LONG: dict[str, str] = WORDS["whole"]


def phrase(utterance: Utterance, topic: Topic | None, draws: Draws, styles: Sequence[str] = STYLES) -> str:
    """Return the text of an answer.

    Args:
        utterance: The answer to phrase.
        topic: Topic of the question; None if the product did not understand it.
        draws: Draws of the request, which choose the style.
        styles: The styles to choose from.
    """
    if topic is None:
        return UNSURE
    if utterance.refused:
        return draws.one_of("refusal words", REFUSALS)
    style = draws.one_of("style", styles)
    plain = ", ".join(utterance.words)
    if style == "terse":
        return plain
    if style == "json":
        return json.dumps({"answer": list(utterance.words) if len(utterance.words) > 1 else plain})
    if style == "markdown":
        if len(utterance.words) > 1:
            return "**Answer:**\n\n" + "\n".join(f"- {word}" for word in utterance.words)
        return f"**Answer:** {plain}"
    whole = sentence(utterance.words, topic)
    if style == "sentence" or _nothing(utterance.words, topic):
        return whole
    if style == "hedged":
        return f"It appears so, as far as I can tell: {_inside(whole)}" if topic not in CLOSED else f"{whole} Probably."
    return f"Thanks for the picture! {whole} Let me know if you want to hear more."


def filled(utterance: Utterance, topic: Topic | None, draws: Draws) -> str:
    """Return an answer for a field of structured output, without sentences around it."""
    if topic is None:
        return UNSURE
    return draws.one_of("refusal words", REFUSALS) if utterance.refused else ", ".join(utterance.words)


def sentence(words: tuple[str, ...], topic: Topic) -> str:
    """Return a sentence with the given words."""
    even = tuple(word.strip().lower() for word in words)
    if _nothing(words, topic) and topic not in LISTS:
        return "This question is not relevant for the image." if NOT_RELEVANT.lower() in even else "None."
    if topic in CLOSED:
        return _YES[topic] if even == ("yes",) else _NO[topic] if even == ("no",) else f"{words[0]}."
    if topic in COUNTS:
        return _counted(words, _THING[topic])
    if topic in PLACES:
        return f"The {_THING[topic]} is in the {_and(even)} of the image."
    if topic in COLOURS:
        return f"The {_THING[topic]} is {_and(even)}."
    if topic in LISTS:
        return (
            f"There are no {_THING[topic]} in the image."
            if _nothing(words, topic)
            else f"The image shows {_and(even)}."
        )
    if topic == Topic.PROCEDURE:
        return f"The image was taken during a {_and(even)}."
    return f"The polyp is {_and(tuple(_LONG.get(word, word) for word in even))}."


def _nothing(words: tuple[str, ...], topic: Topic) -> bool:
    """Return True if the words name nothing; for a list "No" does so, elsewhere it is an answer."""
    empty = {NONE.lower(), NOT_RELEVANT.lower(), *(["no"] if topic in LISTS else [])}
    return all(word.strip().lower() in empty for word in words)


def _counted(words: tuple[str, ...], noun: str) -> str:
    number = number_of(words[0]) if len(words) == 1 else None
    if number is None:
        return f"{', '.join(words)}."
    if number == 0:
        return f"There are no {noun}s in the image."
    return f"There is one {noun} in the image." if number == 1 else f"There are {number} {noun}s in the image."


def _inside(whole: str) -> str:
    return whole[:1].lower() + whole[1:] if not whole.startswith("I ") else whole


def _and(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
