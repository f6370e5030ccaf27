"""Result of reading a prompt, and the closed list of reasons that go with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from medtest.core.scenes import Absence, Pool

Measure: TypeAlias = tuple[int, str]
"""Index of an entity, and the words of its size, grade or score ("5 mm", "Paris Is"), which are no count."""


class ReadingReason(StrEnum):
    """Property of a prompt that its reading rests on, or that keeps it from being sent.

    The first five are handled: the prompt is sent. Each of the others alone keeps a prompt from being sent
    (:data:`REFUSING`).
    """

    COMMAND = "command"
    STYLE_TAGS = "style_tags"
    NEGATION = "negation"
    MEASURES = "measures"
    MISSPELT = "misspelt"
    NOTHING_NAMED = "nothing_named"
    OTHER_LANGUAGE = "other_language"
    UNKNOWN_WORDS = "unknown_words"
    NEGATION_UNCLEAR = "negation_unclear"
    UNCLEAR = "unclear"


MEANINGS: dict[ReadingReason, str] = {
    ReadingReason.COMMAND: "begins with a command, which stays as it is",
    ReadingReason.STYLE_TAGS: "has words on how the picture is made or looks, which stay as they are",
    ReadingReason.NEGATION: "denies something, which is tested as absent",
    ReadingReason.MEASURES: "states a size, grade or score, which is no count",
    ReadingReason.MISSPELT: "has misspelt words, read as the nearest known word",
    ReadingReason.NOTHING_NAMED: "names nothing that could be seen",
    ReadingReason.OTHER_LANGUAGE: "is not English",
    ReadingReason.UNKNOWN_WORDS: "has words that are in no word list",
    ReadingReason.NEGATION_UNCLEAR: "denies something in a way that is not understood",
    ReadingReason.UNCLEAR: "has more than one reading",
}
"""Texts of the reasons, to follow "the prompt" or "each"."""
REFUSING: frozenset[ReadingReason] = frozenset(tuple(ReadingReason)[5:])
"""Reasons for not sending a prompt."""


@dataclass(frozen=True, kw_only=True)
class PromptReading:
    """Reading of a prompt.

    Attributes:
        text: The prompt, as its author wrote it.
        pool: Entities and relations that the prompt asks for, without denied ones.
        command: Words at the beginning that ask for a picture ("Draw", "Generate an image of"), verbatim; "" for none.
        tags: Words on how the picture is made or looks ("8k", "oil painting"), verbatim, in the prompt's order.
        absent: What the prompt denies, by names.
        measures: Sizes, grades and scores of entities.
        reasons: What the reading rests on, and why a prompt is not sent, without repeats.
        details: The words behind a reason, by reason ("brwon: brown").
    """

    text: str
    pool: Pool = Pool()
    command: str = ""
    tags: tuple[str, ...] = ()
    absent: tuple[Absence, ...] = ()
    measures: tuple[Measure, ...] = ()
    reasons: tuple[ReadingReason, ...] = ()
    details: tuple[tuple[ReadingReason, str], ...] = ()

    @property
    def confidence(self) -> str:
        """``high``: plain English; ``medium``: some words needed handling; ``low``: not understood, and not sent."""
        if not REFUSING.isdisjoint(self.reasons):
            return "low"
        return "medium" if self.reasons else "high"

    @property
    def is_understood(self) -> bool:
        """True if the prompt may be sent."""
        return self.confidence != "low"

    @property
    def content(self) -> Pool:
        """The pool with what the prompt denies.

        A thing that something is not "with", "has" not or is not "wearing" is absent if the prompt names it nowhere
        else: a beach without people has none in its picture.
        """
        names = {entity.name for entity in self.pool.entities}
        absent = {absence[-1] for absence in self.absent if _denies_a_thing(absence)} - names
        denied = tuple(absence for absence in self.absent if not (_denies_a_thing(absence) and absence[-1] in absent))
        return replace(
            self.pool,
            absent=tuple(sorted(absent)),
            denied=tuple(absence for absence in denied if len(absence) > 1),
        )


def _denies_a_thing(absence: Absence) -> bool:
    return len(absence) == 1 or (len(absence) == 3 and absence[1] in ("with", "has", "wearing"))
