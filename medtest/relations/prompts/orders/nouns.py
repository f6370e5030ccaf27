"""Other nouns for the findings of an order."""

from __future__ import annotations

from collections.abc import Mapping

from medtest.language.orders import OrderReading, vocabulary
from medtest.language.orders.lexicon import OrderKind, OrderPhrase
from medtest.relations.prompts.orders.base import Edit, like


def noun_phrases(reading: OrderReading) -> list[OrderPhrase]:
    """Return the nouns of an order's findings as written in its text."""
    return [phrase for item in reading.items for phrase in item.phrases if phrase.kind is OrderKind.FINDING]


def other_nouns(reading: OrderReading) -> dict[str, list[tuple[str, OrderPhrase]]]:
    """Return other words and abbreviations by finding, each with the phrase in whose place it may stand."""
    options: dict[str, list[tuple[str, OrderPhrase]]] = {}
    for phrase in noun_phrases(reading):
        others = [noun for noun in vocabulary().findings[phrase.value.name].nouns if noun != phrase.value.noun]
        options.setdefault(phrase.value.name, []).extend((noun, phrase) for noun in others)
    return options


def worded(noun: str, phrase: OrderPhrase) -> str:
    """Return a noun in the number of the phrase in whose place it stands."""
    words = vocabulary().findings[phrase.value.name]
    return like(words.plural(noun) if phrase.value.plural else noun, phrase.text, phrase.start)


def with_nouns(reading: OrderReading, nouns: Mapping[str, str]) -> list[Edit]:
    """Return the replacements of the nouns of some findings."""
    return [
        Edit(phrase.start, phrase.end, worded(nouns[phrase.value.name], phrase))
        for phrase in noun_phrases(reading)
        if phrase.value.name in nouns
    ]
