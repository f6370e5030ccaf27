"""Defects of the product, each with a configurable rate.

A defect that depends on the picture (``saturation_flips``, ``blur_not_relevant``, ``blood_instruments``,
``counts_capped``) is drawn from product seed, picture and question, so that repeating the question repeats it. The
other two (``nondeterminism``, ``refusals``) also depend on the request's seed and vary between requests. A request
without a seed counts as seed 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtest.simlab.answering.draws import Draws
from medtest.simlab.answering.topics import ABOUT_TOOLS, CLOSED, COLOURS, COUNTS, LISTS, PLACES, Topic
from medtest.simlab.seeing.sight import GRID, NO, NONE, NOT_RELEVANT, YES, PictureTraits

_COLOURS = ("Red", "Pink", "White", "Yellow", "Brown", "Orange")
_SIZES = ("<5mm", "5-10mm", "11-20mm", ">20mm")
_TYPES = ("Paris Ip", "Paris Is", "Paris IIa")
_PROCEDURES = ("Colonoscopy", "Gastroscopy", "Capsule endoscopy")
_NAMES: dict[Topic, tuple[str, ...]] = {
    Topic.ABNORMALITIES: ("Polyp", "Ulcerative colitis", "Oesophagitis", "Hemorrhoids"),
    Topic.LANDMARKS: ("Z-line", "Pylorus", "Cecum", "Ileum"),
    Topic.TOOLS: ("Biopsy forceps", "Polyp snare", "Injection needle", "Metal clip", "Tube"),
}


_NOTHING = frozenset({NONE.lower(), NO.lower(), NOT_RELEVANT.lower()})
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def number_of(word: str) -> int | None:
    """Return the number that a word stands for, or None."""
    plain = word.strip().lower()
    if plain.isdigit() and len(plain) < 9:
        return int(plain)
    return _NUMBERS.index(plain) if plain in _NUMBERS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Defects:
    """Rates, each in [0, 1]; 0 switches a defect off.

    Attributes:
        saturation_flips: On a saturated picture, the answer is changed.
        blur_not_relevant: On a blurred picture the answer is "not relevant".
        blood_instruments: On a bloody picture, an instrument is invented: the count rises by one, or one is named in a
            place that has none.
        counts_capped: A count above ``cap`` is given as ``cap``.
        cap: The highest count that a capped answer gives.
        nondeterminism: The answer is changed, drawn for each request.
        refusals: The product declines to answer.
    """

    saturation_flips: float = 0.0
    blur_not_relevant: float = 0.0
    blood_instruments: float = 0.0
    counts_capped: float = 0.0
    cap: int = 1
    nondeterminism: float = 0.0
    refusals: float = 0.0


@dataclass(frozen=True, slots=True)
class Utterance:
    """The content of an answer, before it is phrased.

    Attributes:
        words: The plain answers.
        refused: Whether the product declines instead.
    """

    words: tuple[str, ...]
    refused: bool = False


def with_defects(
    words: tuple[str, ...], topic: Topic, traits: PictureTraits, defects: Defects, *, steady: Draws, fresh: Draws
) -> Utterance:
    """Apply the defects to an answer.

    Args:
        words: Answer of a product without defects.
        topic: Topic of the question.
        traits: Traits of the picture.
        defects: The rates.
        steady: Draws of product seed, picture and question.
        fresh: Draws that also depend on the request's seed.
    """
    if defects.refusals and fresh.share("refusals") < defects.refusals:
        return Utterance(words, refused=True)
    if traits.bloody and topic in ABOUT_TOOLS and steady.share("blood") < defects.blood_instruments:
        words = _with_tool(words, topic, steady)
    if topic in COUNTS and steady.share("cap") < defects.counts_capped:
        words = tuple(
            word if (n := number_of(word)) is None or n <= defects.cap else str(defects.cap) for word in words
        )
    if traits.saturated and steady.share("saturation") < defects.saturation_flips:
        words = another(words, topic, steady, "saturation")
    if traits.blurred and steady.share("blur") < defects.blur_not_relevant:
        words = (NOT_RELEVANT,)
    if defects.nondeterminism and fresh.share("nondeterminism") < defects.nondeterminism:
        words = another(words, topic, fresh, "nondeterminism")
    return Utterance(words)


def _with_tool(words: tuple[str, ...], topic: Topic, draws: Draws) -> tuple[str, ...]:
    if topic == Topic.TOOL_COUNT:
        return tuple(word if (n := number_of(word)) is None else str(n + 1) for word in words)
    choices = GRID if topic == Topic.TOOL_PLACE else _NAMES[Topic.TOOLS]
    named = [word for word in words if word.strip().lower() not in _NOTHING]
    free = [choice for choice in choices if choice not in named] or list(choices)
    return (*named, draws.one_of("blood which", free))


def another(words: tuple[str, ...], topic: Topic, draws: Draws, use: str) -> tuple[str, ...]:
    """Return an answer that agrees with none of the words: yes for no, another count, another place."""
    return (draws.one_of(f"{use} which", others(words, topic)),)


def others(words: tuple[str, ...], topic: Topic) -> Sequence[str]:
    """Return the equally likely answers from which :func:`another` draws; never empty."""
    even = {word.strip().lower() for word in words}
    if topic in CLOSED:
        return (NO,) if "yes" in even else (YES,)
    if topic in COUNTS:
        number = number_of(words[0]) if len(words) == 1 else None
        return (
            ("1", "2") if number is None else (str(number + 1),) if number == 0 else (str(number - 1), str(number + 1))
        )
    if topic in LISTS and not even & _NOTHING:
        return (NONE,)
    choices = (
        _NAMES[topic] if topic in LISTS
        else GRID if topic in PLACES
        else _COLOURS if topic in COLOURS
        else {Topic.SIZE: _SIZES, Topic.POLYP_TYPE: _TYPES, Topic.PROCEDURE: _PROCEDURES}[topic]
    )  # fmt: skip
    return [choice for choice in choices if choice.lower() not in even] or [NOT_RELEVANT]
