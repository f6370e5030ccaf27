"""Pools in English and back: what is rendered is read as the same pool, in the same order."""

from __future__ import annotations

import random

import pytest

from medtest.core.scenes import Entity, Pool, pool_of
from medtest.language.captions.parsers import parser_of
from medtest.language.captions.render import Unsayable, render
from tests.language.captions.drawn_pools import drawn

PARSER = parser_of("controlled")


def entity(name: str, count: int | None = 1, *attributes: str) -> Entity:
    return Entity(name=name, count=count, attributes=attributes)


def round_trips(numbers: range) -> None:
    refused = 0
    for number in numbers:
        pool = drawn(random.Random(number))
        try:
            text = render(pool)
        except Unsayable:
            refused += 1
            continue
        assert PARSER.parse(text) == pool, text
    assert refused <= len(numbers) / 1000


@pytest.mark.slow
def test_rendered_texts_are_read_as_the_same_pool():
    round_trips(range(1_500))


@pytest.mark.slow
def test_10000_drawn_pools_are_read_as_they_were_drawn():
    round_trips(range(10_000))


SAID = [
    ([entity("dog", 1, "red")], [], "A red dog."),
    ([entity("umbrella")], [], "An umbrella."),
    ([entity("dog", None)], [], "Dogs."),
    ([entity("snow", None)], [], "Snow."),
    ([entity("child", 3)], [], "Three children."),
    ([entity("scissors")], [], "A pair of scissors."),
    ([entity("dog"), entity("cat", 2)], [], "A dog and two cats."),
    ([entity("man"), entity("horse")], [(0, "riding", 1)], "A man riding a horse."),
    ([entity("bottle"), entity("cup")], [(0, "left of", 1)], "A bottle to the left of a cup."),
    ([entity("man"), entity("hat", 1, "red")], [(0, "has", 1)], "A man has a red hat."),
    ([entity("man", None), entity("hat")], [(0, "has", 1)], "Men have a hat."),
    ([entity("man"), entity("coat")], [(0, "in", 1)], "A man inside a coat."),
    (
        [entity("dog"), entity("dog", 1, "red"), entity("bed")],
        [(0, "near", 1), (1, "on", 2)],
        "A dog near another red dog. The second dog is on a bed.",
    ),
    (
        [entity("man"), entity("horse"), entity("tree", 2), entity("lamp")],
        [(0, "riding", 1), (1, "near", 2)],
        "A man riding a horse. The horse is near two trees. There is a lamp.",
    ),
    (
        [entity("cup"), entity("plate"), entity("table")],
        [(2, "under", 0), (2, "under", 1)],
        "There is a cup, a plate and a table. The table is under the cup and the plate.",
    ),
]


@pytest.mark.parametrize(("entities", "triples", "text"), SAID, ids=[text for *_, text in SAID])
def test_templates_have_articles_agreement_and_counts(entities, triples, text):
    pool = pool_of(entities, triples)
    assert render(pool) == text
    assert PARSER.parse(text) == pool


def test_words_for_classes_change_the_words_and_nothing_else():
    pool = pool_of([entity("man"), entity("couch", 2)], [(0, "near", 1)])
    assert render(pool, words={"couch": "sofa"}) == "A man near two sofas."
    assert render(pool, words={"man": "guy"}) == "A guy near two couches."


def test_an_empty_pool_has_no_words():
    assert render(Pool()) == ""
    assert PARSER.parse("") == Pool()


@pytest.mark.parametrize(
    ("entities", "triples", "why"),
    [
        ([entity("dog", 0)], [], "at least 1"),
        ([entity("dog"), entity("cat")], [(0, "and", 1)], "coordination"),
        ([entity("dog"), entity("cat")], [(0, "wears", 1)], "wearing"),
        ([entity("dog"), entity("cat")], [(0, "utterly unlike", 1)], "predicate of the vocabulary"),
        ([entity("dog")], [(0, "near", 0)], "itself"),
        ([entity("bag", 1, "sleeping")], [], "another reading"),
        ([entity("birthday")], [], "another reading"),
    ],
)
def test_what_cannot_be_said_is_refused_with_the_reason(entities, triples, why):
    with pytest.raises(Unsayable, match=why):
        render(pool_of(entities, triples))


def test_uncounted_objects_have_no_plural() -> None:
    pool = pool_of([Entity(name="man"), Entity(name="milk", count=None), Entity(name="abdomen")], [(0, "holding", 1)])
    assert render(pool) == "A man holding milk. There is an abdomen."
