"""Orders of medical pictures, for operators on pools: a finding changes, goes, comes, or has another name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from medtest.core.cases import Prompt
from medtest.core.errors import NotApplicable
from medtest.core.scenes import SIDES, Entity, Pool
from medtest.language.captions import inflection
from medtest.language.orders import (
    NotControlled,
    Order,
    OrderedFinding,
    OrderReading,
    order_pool,
    read_order,
    vocabulary,
)
from medtest.language.orders.lexicon import OrderKind
from medtest.language.orders.reading import OrderItem
from medtest.language.orders.vocabulary import FindingWords
from medtest.language.orders.writing import finding_words
from medtest.relations.prompts.orders.base import Edit, edited, like, lowered, words_of
from medtest.relations.prompts.orders.nouns import other_nouns, with_nouns

_SIDES = {"one": ("left", "right"), "pair": ("left", "right", "bilateral"), "both": (), "midline": (), "none": ()}
"""Sides that are stated of a new finding; those that lie always in one place need none."""
_AND = re.compile(r",?\s+and\s+")
_BOTH = re.compile(r"\b(?:left and right|right and left)\b", re.I)
_DETERMINERS = frozenset((OrderKind.ARTICLE, OrderKind.NUMBER, OrderKind.SINGLE, OrderKind.SEVERAL))


class OrderContent:
    """Orders; entities are ordered findings, which have no triples.

    The methods are those of :class:`~medtest.relations.prompts.captions.CaptionContent`.
    """

    def draw_exchange(self, prompt: Prompt, settings: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Draw a finding and another one that can have its side, number, size, colour and Paris type.

        The new one is of the same kind (a tool for a tool), and neither it nor one like it is in the prompt.
        """
        order, items = _plain(prompt)
        options = [
            (at, names)
            for at, (finding, item) in enumerate(items)
            if item.alone and (names := _instead(order, finding, settings.among))
        ]
        if not options:
            raise NotApplicable("no other finding can have the side, number, size and colour of one that is ordered")
        at, names = options[int(rng.integers(len(options)))]
        return {"entity": at, "name": names[int(rng.integers(len(names)))], "attested": "kind"}

    def check_removable(self, pool: Pool) -> None:
        """Check that two findings are ordered."""
        if len(pool.entities) < 2:
            raise NotApplicable("the prompt needs two or more ordered findings to remove one")

    def draw_removal(self, prompt: Prompt, rng: np.random.Generator, *, keep: int | None = None) -> dict[str, Any]:
        """Draw an ordered finding whose removal leaves the others: ``{"entity": index}``."""
        self.check_removable(prompt.pool)
        _, items = _plain(prompt)
        removable = [at for at, (_, item) in enumerate(items) if item.alone and at != keep]
        if not removable:
            raise NotApplicable("no ordered finding has words of its own")
        return {"entity": removable[int(rng.integers(len(removable)))]}

    def draw_addition(
        self, prompt: Prompt, settings: Any, rng: np.random.Generator, *, never: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Draw a finding that may be beside the others: ``{"name": …, "side": …}``, one of a kind, with any side."""
        order, _ = _plain(prompt)
        if not prompt.pool.entities:
            raise NotApplicable("no finding is ordered that another one could be beside")
        names = _new(order, prompt.pool.names(), never, settings.among)
        if not names:
            raise NotApplicable("no other finding may be beside those of the prompt")
        name = names[int(rng.integers(len(names)))]
        sides = [side for side in _SIDES[vocabulary().findings[name].sides] if side != "bilateral"]
        return {"name": name, "side": sides[int(rng.integers(len(sides)))] if sides else ""}

    def exchanged(self, pool: Pool, params: Any) -> Pool:
        """Return the pool with another finding in place of one."""
        entities = list(pool.entities)
        at, name = int(params["entity"]), str(params["name"])
        entities[at] = replace(entities[at], name=name, count=_count_of(name, entities[at]))
        return replace(pool, entities=tuple(entities))

    def reduced(self, pool: Pool, params: Any) -> Pool:
        """Return the pool without a finding."""
        at = int(params["entity"])
        return replace(pool, entities=(*pool.entities[:at], *pool.entities[at + 1 :]))

    def extended(self, pool: Pool, params: Any) -> Pool:
        """Return the pool with a further finding, the last."""
        return replace(pool, entities=(*pool.entities, _entity(_added(params))))

    def keeps_words(self, prompt: Prompt) -> bool:
        """Return True: no template words an order."""
        return True

    def word_exchange(self, prompt: Prompt, params: Any, settings: Any) -> Prompt:
        """Return the prompt with another noun, and with an article where the noun takes one."""
        pool = self.exchanged(prompt.pool, params)
        reading = read_order(prompt.text)
        _, items = _plain(prompt)
        finding, item = items[int(params["entity"])]
        edits = _noun_edits(reading, item, words_of(finding), vocabulary().findings[str(params["name"])])
        return replace(prompt, text=_first(prompt, pool, iter([edited(prompt.text, edits)])), pool=pool)

    def word_removal(self, prompt: Prompt, pool: Pool, params: Any) -> str:
        """Return the prompt's words without those of a finding, and without a separator beside them."""
        _, items = _plain(prompt)
        return _first(prompt, pool, _without(read_order(prompt.text), items[int(params["entity"])][1]))

    def word_addition(self, prompt: Prompt, pool: Pool, params: Any, settings: Any) -> str:
        """Return the prompt's words with a further finding behind the last that is ordered."""
        return _first(prompt, pool, _with(prompt.text, [item for _, item in _plain(prompt)[1]], _added(params)))

    def synonyms(self, prompt: Prompt) -> dict[str, tuple[str, ...]]:
        """Return other words and abbreviations of the findings that the prompt names."""
        nouns = other_nouns(read_order(prompt.text))
        return {name: tuple(dict.fromkeys(noun for noun, _ in options)) for name, options in nouns.items()}

    def reworded(self, prompt: Prompt, words: Mapping[str, str]) -> str:
        """Return the prompt's text with other nouns for some findings."""
        return _first(prompt, prompt.pool, iter([edited(prompt.text, with_nouns(read_order(prompt.text), words))]))


def _plain(prompt: Prompt) -> tuple[Order, list[tuple[OrderedFinding, OrderItem]]]:
    """Return the order of a prompt, and its ordered findings with their words, in the sequence of the pool.

    Raises:
        NotApplicable: The prompt contradicts itself, or orders a picture without any finding.
    """
    reading = read_order(prompt.text)
    order = reading.order
    if order.contradictions:
        raise NotApplicable("the prompt contradicts itself")
    if order.normal:
        raise NotApplicable("the prompt orders a picture without findings")
    pairs = zip(order.findings, reading.items, strict=True)
    return order, [(finding, item) for finding, item in pairs if finding.presence == "ordered"]


def _new(order: Order, present: Mapping[str, int], never: Sequence[str], among: Sequence[str]) -> list[str]:
    """Return the findings that may be put beside those present; none like any that the prompt names."""
    modality = vocabulary().modalities[order.modality]
    named = {*present, *never, *(finding.name for finding in order.findings)}
    return [
        words.name
        for words in modality.beside(present.keys(), order.region)
        if not any(modality.are_alike(words.name, name) for name in named) and (not among or words.name in among)
    ]


def _instead(order: Order, finding: OrderedFinding, among: Sequence[str]) -> list[str]:
    """Return the findings that may replace one."""
    others = {other.name: 1 for other in order.findings if other.presence == "ordered" and other is not finding}
    return [name for name in _new(order, others, (), among) if _can_be(vocabulary().findings[name], finding)]


def _can_be(words: FindingWords, finding: OrderedFinding) -> bool:
    """Return True if a finding can have all that is said of another one."""
    old, size = words_of(finding), finding.size_mm
    several = old.counted and finding.count != 1
    return (
        words.tool == old.tool
        and (finding.side is None or finding.side in _SIDES[words.sides])
        and (size is None or (words.millimetres is not None and words.millimetres[0] <= size <= words.millimetres[1]))
        and (words.typed or not finding.paris)
        and (words.coloured or not finding.colour)
        and (words.counted or not several)
    )


def _count_of(name: str, entity: Entity) -> int | None:
    """Return the number of a finding in place of another one: its own if both are counted, else one."""
    words = vocabulary().findings
    if not words[name].counted:
        return None
    return entity.count if words[entity.name].counted else 1


def _added(params: Any) -> OrderedFinding:
    name = str(params["name"])
    side: Any = str(params["side"]) or None
    return OrderedFinding(name=name, side=side, count=1 if vocabulary().findings[name].counted else None)


def _entity(finding: OrderedFinding) -> Entity:
    attributes = (finding.side,) if finding.side in SIDES else ()
    return Entity(name=finding.name, count=finding.count, attributes=attributes)


def _first(prompt: Prompt, pool: Pool, texts: Iterator[str]) -> str:
    """Return the first text that is read as a pool, and otherwise as the prompt.

    Raises:
        NotApplicable: None is.
    """
    source = read_order(prompt.text).order
    for text in texts:
        if len(_BOTH.findall(text)) > len(_BOTH.findall(prompt.text)):
            continue  # "an effusion on the left and right pneumonia"
        try:
            order = read_order(text).order
        except NotControlled:
            continue
        if order_pool(order) == pool and replace(order, findings=()) == replace(source, findings=()):
            return text
    raise NotApplicable("the prompt's own words cannot say the change alone")


def _noun_edits(reading: OrderReading, item: OrderItem, old: FindingWords, new: FindingWords) -> list[Edit]:
    """Return the replacement of a finding's noun, and of its article where only one of the nouns takes one."""
    edits: list[Edit] = []
    first = min(item.phrases, key=lambda phrase: phrase.start)
    determined = any(phrase.kind in _DETERMINERS for phrase in item.phrases)
    in_full = not reading.text[: item.start].rstrip().endswith((":", ",", ";"))
    for phrase in sorted(item.phrases, key=lambda phrase: phrase.start):
        text = phrase.text
        if phrase.kind is OrderKind.FINDING:
            many = phrase.value.plural and not new.mass
            text = like(new.plural(new.words[0]) if many else new.words[0], text, phrase.start)
        if phrase.kind is OrderKind.ARTICLE and new.mass:
            following = min(other.start for other in item.phrases if other.start > phrase.start)
            edits.append(Edit(phrase.start, following, ""))
        elif phrase is first and old.mass and not new.mass and not determined and in_full:
            small = lowered(text, phrase.start)
            text = like(f"{inflection.article(small)} {small}", phrase.text, phrase.start)
        if text != phrase.text:
            edits.append(Edit(phrase.start, phrase.end, text))
    return edits


def _with(text: str, items: Sequence[OrderItem], finding: OrderedFinding) -> Iterator[str]:
    """Yield texts with a further finding behind the last that is ordered: as the end of their list, then otherwise."""
    last, words = items[-1], finding_words(finding)
    if len(items) > 1 and _AND.fullmatch(text[items[-2].end : last.start]):  # "A and B"
        yield f"{text[: items[-2].end]}, {text[last.start : last.end]} and {words}{text[last.end :]}"
    for joint in (" and", ", and", ","):
        yield f"{text[: last.end]}{joint} {words}{text[last.end :]}"


def _without(reading: OrderReading, item: OrderItem) -> Iterator[str]:
    """Yield texts without a finding's words: with the separator before them, then with the one behind."""
    text = reading.text
    before = sorted((other for other in reading.items if other.end <= item.start), key=lambda other: other.end)
    after = [other.start for other in reading.items if other.start >= item.end]
    if before:
        if len(before) > 1 and _AND.fullmatch(text[before[-1].end : item.start]):  # "A, B and C"
            comma = text[before[-2].end : before[-1].start]
            if comma == ", ":
                yield f"{text[: before[-2].end]} and {text[before[-1].start : before[-1].end]}{text[item.end :]}"
        yield text[: before[-1].end] + text[item.end :]
    if after:
        rest = text[min(after) :]
        yield text[: item.start] + like(rest, text[item.start :], item.start)
