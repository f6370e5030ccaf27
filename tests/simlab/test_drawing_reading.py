"""Reading of prompts by the drawing product: entities, counts, and relations."""

from __future__ import annotations

from random import Random

import pytest

from medtest.core.scenes import Entity, pool_of
from medtest.language.captions.render import render
from medtest.language.captions.vocabulary import vg150
from medtest.phantoms.scenes import CLASSES, COLOURS
from medtest.simlab.drawing.nouns import nouns
from medtest.simlab.drawing.reading import MOST_WISHES, understood
from medtest.simlab.drawing.sides import SIDES
from medtest.simlab.drawing.wishes import WishList

Asked = tuple[list[tuple[str | None, int, str | None]], list[tuple[int, str, int]]]


def plain_wishes(wish_list: WishList) -> Asked:
    entities = [(wish.name, wish.count, wish.colour) for wish in wish_list.wishes]
    return entities, list(wish_list.links)


@pytest.mark.parametrize(
    ("prompt", "entities", "links"),
    [
        ("a photo of two clocks", [("clock", 2, None)], []),
        ("A red dog and a blue cat", [("dog", 1, "red"), ("cat", 1, "blue")], []),
        ("a photo of a dog right of a bench", [("dog", 1, None), ("bench", 1, None)], [(0, "right of", 1)]),
        (
            "A cat sits on a wooden bench next to a parked bicycle.",
            [("cat", 1, None), ("bench", 1, None), ("bike", 1, None)],
            [(0, "on", 1), (1, "near", 2)],
        ),
        (
            "A dog on a table and a cat under a chair",
            [("dog", 1, None), ("table", 1, None), ("cat", 1, None), ("chair", 1, None)],
            [(0, "on", 1), (2, "under", 3)],
        ),
        (
            "A dog is near a table, a chair and a bed, and in front of a lamp.",
            [("dog", 1, None), ("table", 1, None), ("chair", 1, None), ("bed", 1, None), ("lamp", 1, None)],
            [(0, "near", 1), (0, "near", 2), (0, "near", 3), (0, "in front of", 4)],
        ),
        (
            "A man riding a horse and wearing a red hat. The horse is near two trees.",
            [("person", 1, None), ("horse", 1, None), ("hat", 1, "red"), ("tree", 2, None)],
            [(0, "on", 1), (0, "near", 2), (1, "near", 3)],
        ),
        (
            "A dog and another dog. The second dog is in front of the first dog.",
            [("dog", 1, None), ("dog", 1, None)],
            [(1, "in front of", 0)],
        ),
        (
            "There is a ball, a house and a tree. The ball is blue. The tree is orange. The house is behind the tree.",
            [("ball", 1, "blue"), ("house", 1, None), ("tree", 1, "orange")],
            [(1, "behind", 2)],
        ),
        ("A dog that is on a table which is red", [("dog", 1, None), ("table", 1, "red")], [(0, "on", 1)]),
        ("a white truck beside a sofa", [("truck", 1, "white"), (None, 1, None)], [(0, "near", 1)]),
        ("a teddy bear and a hot dog", [(None, 1, None), (None, 1, None)], []),
        ("A pair of sheep in a boat.", [("sheep", 2, None), ("boat", 1, None)], [(0, "in", 1)]),
    ],
)
def test_english_is_understood(prompt: str, entities: list[object], links: list[object]) -> None:
    assert plain_wishes(understood(prompt)) == (entities, links)


@pytest.mark.parametrize("prompt", ["", "!!!", "on in under", "the the the", "zero", "red", "a" * 9000, "🙂, and, and"])
def test_other_texts_ask_for_nothing_that_can_be_drawn(prompt: str) -> None:
    assert all(wish.name is None for wish in understood(prompt).wishes)


def test_a_prompt_without_end_is_bounded() -> None:
    wish_list = understood(" and ".join(f"a {name}" for name in CLASSES))
    assert len(wish_list.wishes) == MOST_WISHES
    assert understood("99999999 dogs").wishes[0].count == 9


def test_templates_are_understood_in_full() -> None:
    draw = Random(5)
    for _ in range(300):
        names = draw.sample(CLASSES, draw.randint(1, 6))
        entities = [
            Entity(
                name=name,
                count=draw.choice((1, 1, 2, 3)),
                attributes=(draw.choice(COLOURS),) if draw.random() < 0.6 else (),
            )
            for name in names
        ]
        triples = {
            (*draw.choice(((new, old), (old, new))), draw.choice(SIDES))
            for new in range(1, len(names))
            for old in [draw.randrange(new)]
        }
        pool = pool_of(entities, sorted((a, predicate, b) for a, b, predicate in triples))
        text = render(pool)
        wish_list = understood(text)
        expected = [
            (entity.name, entity.count, entity.attributes[0] if entity.attributes else None) for entity in entities
        ]
        assert plain_wishes(wish_list)[0] == expected, text
        assert sorted(plain_wishes(wish_list)[1]) == sorted((a, predicate, b) for a, b, predicate in triples), text
        assert all(wish.plain for wish in wish_list.wishes)


def test_every_synonym_of_an_operator_is_known_and_not_plain() -> None:
    vocabulary = vg150()
    for name in CLASSES:
        for word in vocabulary.synonyms(name):
            noun = nouns()[tuple(word.lower().split())]
            assert noun.name == name, word
            assert noun.plain == (word == name)
            assert understood(f"two {vocabulary.plural(word)}").wishes[0].name == name, word
