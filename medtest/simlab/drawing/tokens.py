"""Tokenisation of a prompt into things, spatial words between them, and stops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from medtest.phantoms.scenes import COLOURS
from medtest.simlab.drawing.nouns import DrawnNoun, longest, nouns

_WORD = re.compile(r"[a-z0-9][a-z0-9'’-]*|[.,;:!?]")
_MOST_CHARACTERS = 8000


class TokenKind(Enum):
    """Kinds of pieces."""

    THING = auto()
    COLOUR = auto()
    SIDE = auto()
    AND = auto()
    STOP = auto()
    IS = auto()
    WHO = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a prompt.

    Attributes:
        token: Kind of the piece.
        side: Spatial relation, for a spatial word.
        noun: Noun of a thing; None if unknown.
        word: Words of the noun.
        count: Number of things; 0 for a plural without a number.
        colour: Colour of the things.
        known: Whether they have been named before ("the dog").
        which: Index among the things named before, from 0 ("the second dog" is 1); -1 if not given.
    """

    token: TokenKind
    side: str = ""
    noun: DrawnNoun | None = None
    word: str = ""
    count: int = 1
    colour: str | None = None
    known: bool = False
    which: int = -1


def _table(text: str) -> dict[tuple[str, ...], str]:
    """Return phrases by relation, from lines ``side: phrase, phrase``."""
    table = {}
    for line in text.strip().splitlines():
        side, phrases = line.split(": ")
        table.update({tuple(phrase.split()): side.strip() for phrase in phrases.split(", ")})
    return table


_SIDES = _table("""
    left of: left of, to the left of, on the left of, on the left side of, at the left of, left from
    right of: right of, to the right of, on the right of, on the right side of, at the right of, right from
    above: above, over, high above
    under: under, below, beneath, underneath, down below
    on: on, on top of, atop, upon, onto, on the top of, over the top of
    in: in, inside, inside of, within, into, in the middle of
    in front of: in front of, before, ahead of, in the front of
    behind: behind, in back of, at the back of, in the back of
    near: near, near to, next to, beside, by, close to, alongside, along with, with, at, against, besides, around
    near: along, across from, across, to, from, of, for, nearby, toward, towards, adjacent to, attached to, past
""")
_VERBS = {
    **dict.fromkeys(("riding", "rides", "ride", "covering", "mounting"), "on"),
    **dict.fromkeys(("wearing", "wears", "wear", "holding", "holds", "hold", "carrying", "carries"), "near"),
    **dict.fromkeys(("has", "have", "having", "using", "uses", "eating", "eats", "watching", "playing"), "near"),
}
_LONGEST_SIDE = max(map(len, _SIDES))
_OTHERS = frozenset(
    tuple(words.split()) for words in ("teddy bear", "hot dog", "hot dogs", "teddy bears", "fire truck", "dog house")
)
"""Nouns that end with a known noun but have another meaning."""


def _words(text: str) -> list[str]:
    return text.split()


_WALKS = frozenset(_words("walk walks run runs fly flies sleep sleeps look looks play plays"))
_IS = frozenset(_words("is are was were be being been am stand stands sit sits lie lies lay lays hang hangs"))
_THERE = frozenset(("there", "here"))
_WHO = frozenset(("that", "which", "who"))
_NEW = frozenset(("a", "an", "another", "some", "other", "one"))
_OLD = frozenset(("the", "this", "these", "those", "both", "its", "his", "her", "their"))
_NUMBERS = {
    word: number
    for number, word in enumerate(
        _words(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty"
        )
    )
} | {"several": 3, "many": 4, "few": 3, "couple": 2, "pair": 2, "dozen": 12, "group": 3, "bunch": 3, "herd": 4}
_ORDINALS = {
    word: number
    for number, word in enumerate(_words("first second third fourth fifth sixth seventh eighth ninth tenth"))
}
_PREFACE = re.compile(r"^\s*(?:(?:an?|the)\s+)?(?:photo|photograph|picture|image|drawing|painting|view)s?\s+of\s+")


def pieces(prompt: str) -> list[Piece]:
    """Return the pieces of a prompt, in order."""
    text = _PREFACE.sub("", prompt[:_MOST_CHARACTERS].lower().replace("-", " "))
    return list(_cut(_WORD.findall(text)))


def _cut(words: Sequence[str]) -> Iterator[Piece]:
    at = 0
    while at < len(words):
        word = words[at]
        if word in ".;:!?":
            yield Piece(token=TokenKind.STOP)
            at += 1
        elif word in (",", "and", "plus", "while", "as"):
            yield Piece(token=TokenKind.AND)
            at += 1
        elif word in _THERE:
            at += 1
        elif word in _IS:
            yield Piece(token=TokenKind.IS)
            at += 1
        elif word in _WHO:
            yield Piece(token=TokenKind.WHO)
            at += 1
        elif (length := _side(words, at)) > 0:
            yield Piece(token=TokenKind.SIDE, side=_SIDES[tuple(words[at : at + length])])
            at += length
        elif word in _VERBS:
            if not _side(words, at + 1):  # for "riding on", the next word gives the relation
                yield Piece(token=TokenKind.SIDE, side=_VERBS[word])
            at += 1
        else:
            thing, at = _thing(words, at)
            if thing is not None:
                yield thing


def _side(words: Sequence[str], at: int) -> int:
    """Return the number of words of a spatial phrase at a position, 0 for none."""
    for length in range(min(_LONGEST_SIDE, len(words) - at), 0, -1):
        if tuple(words[at : at + length]) in _SIDES:
            return length
    return 0


def _noun(words: Sequence[str], at: int) -> tuple[DrawnNoun, int] | None:
    """Return the longest noun at a position, and its number of words."""
    for length in range(min(longest(), len(words) - at), 0, -1):
        noun = nouns().get(tuple(words[at : at + length]))
        if noun is not None:
            return noun, length
    return None


def _between(words: Sequence[str], at: int) -> bool:
    """Return True if a word separates things."""
    word = words[at]
    return (
        word in ".,;:!?"
        or word in ("and", "plus", "while", "as")
        or word in _IS
        or word in _WHO
        or word in _THERE
        or word in _VERBS
        or _side(words, at) > 0
    )


def _thing(words: Sequence[str], start: int) -> tuple[Piece | None, int]:
    """Parse a thing with its attributes; return it (or None) and the position after it."""
    at, count, number, definite, which, colour = start, 1, False, False, -1, None
    noun: DrawnNoun | None = None
    named, tail = "", ""
    while at < len(words):
        word = words[at]
        if word == "of" and number and not named and words[at - 1] in _NUMBERS:  # a pair of, a couple of
            at += 1
            continue
        if _between(words, at) or (word in _NEW | _OLD and (named or tail)):
            break
        if tuple(words[at : at + 2]) in _OTHERS:
            noun, named, tail = None, " ".join(words[at : at + 2]), ""
            at += 2
            continue
        if (read := _noun(words, at)) is not None:
            noun, length = read
            named, tail = " ".join(words[at : at + length]), ""
            at += length
            continue
        at += 1
        if word in _WALKS or (named and word.endswith(("ing", "ed", "ly"))):
            break  # an activity; the relation follows
        if word in _OLD:
            definite = True
        elif word in _NEW:
            definite = False
        elif not named and (word in _NUMBERS or word.isdigit()):
            count, number = (int(word) if word.isdigit() else _NUMBERS[word]), True
        elif definite and word in _ORDINALS:
            which = _ORDINALS[word]
        elif word in COLOURS and not named:
            colour = word
        else:
            tail = word
    if tail and not tail.endswith(("ing", "ed", "ly")):  # the last word of a phrase is its head
        noun, named = None, tail
    if not named:  # "the dog is red" has a colour and no noun
        alone = None if colour is None else Piece(token=TokenKind.COLOUR, colour=colour)
        return alone, max(at, start + 1)
    if not number and _plural(noun, named):
        count = 0
    return (
        Piece(token=TokenKind.THING, noun=noun, word=named, count=count, colour=colour, known=definite, which=which),
        max(at, start + 1),
    )


def _plural(noun: DrawnNoun | None, word: str) -> bool:
    return noun.many if noun is not None else word.endswith("s") and not word.endswith(("ss", "us", "is"))
