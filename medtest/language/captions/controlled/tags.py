"""Tags of words in a caption."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tag(StrEnum):
    """Word class."""

    ARTICLE = "a"
    THE = "the"
    HIS = "his"
    QUANTITY = "some"
    NUMBER = "two"
    ORDINAL = "first"
    ADJECTIVE = "adjective"
    MODIFIER = "participle before a noun"
    NOUN = "noun"
    ING = "-ing"
    PARTICIPLE = "participle"
    FINITE = "finite"
    BASE = "base"
    PREPOSITION = "preposition"
    COPULA = "copula"
    AUXILIARY = "auxiliary"
    AND = "and"
    COMMA = "comma"
    STOP = "stop"
    RELATIVE = "relative"
    PRONOUN = "pronoun"
    ADVERB = "adverb"
    POSSESSIVE = "'s"
    TO = "to"
    THERE = "there"
    CONNECTOR = "while"


@dataclass(slots=True)
class Token:
    """Word, or several words that form one preposition.

    Attributes:
        word: In lower case.
        tag: Word class.
        base: Base form of a verb; predicate of a preposition, "" if its noun is not visible ("without").
    """

    word: str
    tag: Tag
    base: str = ""


OPENS_NOUN = frozenset(
    (Tag.ARTICLE, Tag.THE, Tag.HIS, Tag.QUANTITY, Tag.NUMBER, Tag.ORDINAL, Tag.ADJECTIVE, Tag.MODIFIER, Tag.NOUN)
)
"""Tags that can begin a noun phrase."""
