"""Paraphrase: the same order in other words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from medtest.core.cases import Params
from medtest.core.errors import NotApplicable
from medtest.language.orders import Order, OrderReading, vocabulary
from medtest.language.orders.lexicon import OrderKind
from medtest.language.orders.writing import size_words
from medtest.relations.base import RelationSettings
from medtest.relations.prompts.base import PromptRelationSettings
from medtest.relations.prompts.orders.base import Edit, OrderRelation, like
from medtest.relations.prompts.orders.nouns import other_nouns, worded

How = Literal["synonym", "abbreviation", "picture", "unit", "order"]


class ParaphraseSettings(PromptRelationSettings):
    """Settings of ``paraphrase``.

    Attributes:
        among: Ways: ``synonym`` and ``abbreviation`` (of a finding), ``picture`` (another phrase for the kind of
            picture), ``unit`` (mm for cm and the reverse), ``order`` (two neighbouring findings change places).
    """

    among: list[How] = Field(default=["synonym", "abbreviation", "picture", "unit", "order"], min_length=1)


class Paraphrase(OrderRelation):
    """Other words for the same order: one of the possible ways, all equally likely. The pool stays."""

    Settings: ClassVar[type[RelationSettings]] = ParaphraseSettings

    def draw(self, reading: OrderReading, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the way, and what it needs: ``{"how": …, "start": …, "text": …}`` or ``{"how": "order", "finding": …}``.

        Raises:
            NotApplicable: No way is possible.
        """
        by_way = {way: options for way in self.settings.among if (options := _OPTIONS[way](reading))}
        if not by_way:
            raise NotApplicable("no word of the prompt has a synonym or an abbreviation, and nothing can be exchanged")
        way = list(by_way)[int(rng.integers(len(by_way)))]
        options = by_way[way]
        return {"how": way, **options[int(rng.integers(len(options)))]}

    def changed(self, order: Order, params: Params) -> Order:
        """Return the same order, with two findings exchanged if those change places."""
        if params["how"] != "order":
            return order
        at, findings = int(params["finding"]), list(order.findings)  # type: ignore[arg-type]
        findings[at : at + 2] = findings[at : at + 2][::-1]
        return replace(order, findings=tuple(findings))

    def edits(self, reading: OrderReading, params: Params) -> Sequence[Edit]:
        """Return the replacement of one phrase, or of two findings by each other."""
        if params["how"] == "order":
            first, second = reading.items[int(params["finding"]) :][:2]  # type: ignore[arg-type]
            words = [reading.text[item.start : item.end] for item in (first, second)]
            return [
                Edit(first.start, first.end, like(words[1], words[0], first.start)),
                Edit(second.start, second.end, words[0][:1].lower() + words[0][1:] if first.start == 0 else words[0]),
            ]
        start, text = int(params["start"]), str(params["text"])  # type: ignore[arg-type]
        phrases = [*reading.heads, *(phrase for item in reading.items for phrase in item.phrases)]
        phrase = next(phrase for phrase in phrases if phrase.start == start)
        return [Edit(start, phrase.end, text)]


def _nouns(reading: OrderReading, *, short: bool) -> list[dict[str, Any]]:
    """Return other nouns for findings: abbreviations, or words in full."""
    findings = vocabulary().findings
    return [
        {"start": phrase.start, "text": worded(noun, phrase)}
        for name, options in other_nouns(reading).items()
        for noun, phrase in options
        if (noun in findings[name].abbreviations) is short
    ]


def _pictures(reading: OrderReading) -> list[dict[str, Any]]:
    """Return other phrases for the kind of picture."""
    picture = reading.head(OrderKind.MODALITY)
    if picture is None:
        return []
    return [
        {"start": picture.start, "text": like(phrase, picture.text, picture.start)}
        for phrase in vocabulary().modalities[reading.order.modality].phrases(reading.order.region)
        if phrase.lower() != picture.text.lower()
    ]


def _units(reading: OrderReading) -> list[dict[str, Any]]:
    sizes = [phrase for item in reading.items for phrase in item.phrases if phrase.kind is OrderKind.SIZE]
    return [
        {"start": phrase.start, "text": size_words(phrase.value, "mm" if phrase.text.lower().endswith("cm") else "cm")}
        for phrase in sizes
    ]


def _neighbours(reading: OrderReading) -> list[dict[str, Any]]:
    """Return the findings that can change places with the next one: both ordered, with words of their own."""
    pairs = zip(reading.items, reading.items[1:], reading.order.findings, reading.order.findings[1:], strict=False)
    return [
        {"finding": at}
        for at, (item, other, finding, following) in enumerate(pairs)
        if item.alone and other.alone and finding != following
        if finding.presence == following.presence == "ordered" and item.end < other.start
    ]


_OPTIONS = {
    "synonym": lambda reading: _nouns(reading, short=False),
    "abbreviation": lambda reading: _nouns(reading, short=True),
    "picture": _pictures,
    "unit": _units,
    "order": _neighbours,
}
