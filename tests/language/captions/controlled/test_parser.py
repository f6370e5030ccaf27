"""Rules of the controlled parser, one caption for each; the captions are written for these tests, none is COCO's."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.language.captions.controlled.lexicon import ed, ing, third
from medtest.language.captions.parsers import parser_of

PARSER = parser_of("controlled")

READ = [
    ("A dog.", ["dog"], []),
    ("Three stop signs and a fire hydrant", ["stop sign", "fire hydrant"], []),
    # a possessive that is part of an entity's name has no owner
    ("A dog and a catcher's mitt.", ["dog", "catcher's mitt"], []),
    ("The elephants trunk near a fence", ["elephant", "trunk", "fence"], ["trunk of elephant", "trunk near fence"]),
    ("A boy's catcher's mitt", ["boy", "catcher's mitt"], ["catcher's mitt of boy"]),
    # phrases of place: after a verb the subject's, without one the noun's before it; on … on … is a stack
    ("A cat sleeping in a kitchen next to a stove.", ["cat", "kitchen", "stove"], ["cat in kitchen", "cat near stove"]),
    ("A cup on a table in a kitchen.", ["cup", "table", "kitchen"], ["cup on table", "table in kitchen"]),
    ("A cat is sitting on a book on a desk.", ["cat", "book", "desk"], ["cat sitting on book", "book on desk"]),
    # coordination distributes and is no relation itself
    ("A boy and a girl holding a kite", ["boy", "girl", "kite"], ["boy holding kite", "girl holding kite"]),
    (
        "A tray with soup, bread and cheese",
        ["tray", "soup", "bread", "cheese"],
        ["tray with soup", "tray with bread"] + ["tray with cheese"],
    ),
    (
        "A man reading a book and a woman riding a bike",
        ["man", "book", "woman", "bike"],
        ["man reading book"] + ["woman riding bike"],
    ),
    ("A man holding a racket and wearing a hat", ["man", "racket", "hat"], ["man holding racket", "man wearing hat"]),
    # collections, regions, pictures and events are no entities; containers are
    ("A herd of goats on the side of a hill", ["goat", "hill"], ["goat on hill"]),
    ("A close up picture of a bowl of rice", ["bowl", "rice"], ["bowl of rice"]),
    ("A girl celebrating her birthday at night", ["girl"], []),
    ("A group in a park", ["park"], []),
    ("A group of children playing a game of tennis in a park", ["child", "park"], ["child in park"]),
    # verbs: trying is doing, posture verbs have predicates of their own, others are their preposition's
    ("A player is about to hit a ball", ["player", "ball"], ["player hitting ball"]),
    ("A goat tries to climb a fence", ["goat", "fence"], ["goat climbing fence"]),
    ("A lamp hangs from the ceiling", ["lamp", "ceiling"], ["lamp hanging from ceiling"]),
    ("A ladder leaning against a wall", ["ladder", "wall"], ["ladder against wall"]),
    ("A man talking on a phone", ["man", "phone"], ["man using phone"]),
    ("A boy takes off his shoes", ["boy", "shoe"], ["boy taking shoe"]),
    ("A basket full of apples", ["basket", "apple"], ["basket with apple"]),
    ("A nurse in a blue uniform", ["nurse", "uniform"], ["nurse wearing uniform"]),
    ("A hill covered in snow", ["hill", "snow"], ["hill covered in snow"]),
    ("A photo of a stapler left of a parrot", ["stapler", "parrot"], ["stapler left of parrot"]),
    ("A photo of a tv remote right of a drum", ["tv remote", "drum"], ["tv remote right of drum"]),
    ("A tent on the left of a river", ["tent", "river"], ["tent left of river"]),
    # clauses and pronouns
    ("A boy who is feeding a duck that is in a pond", ["boy", "duck", "pond"], ["boy feeding duck", "duck in pond"]),
    ("There are two boats near a dock", ["boat", "dock"], ["boat near dock"]),
    ("A shed with tools in it next to a barn", ["shed", "tool", "barn"], ["shed with tool", "shed near barn"]),
    ("The man's dog is under a table", ["man", "dog", "table"], ["dog of man", "dog under table"]),
    ("A dog on a bed. The dog is near a lamp.", ["dog", "bed", "lamp"], ["dog on bed", "dog near lamp"]),
    ("A dog near another dog", ["dog", "dog"], ["dog near dog"]),
    ("A room with no windows", ["room"], []),
    ("A man holding on to it's leash", ["man", "leash"], ["man holding leash"]),
]


@pytest.mark.parametrize(("caption", "names", "triples"), READ, ids=[row[0] for row in READ])
def test_a_caption_is_read_by_the_rules(caption, names, triples):
    pool = PARSER.parse(caption)
    assert [entity.name for entity in pool.entities] == names
    assert [" ".join(triple) for triple in pool.named()] == triples


def test_counts_and_attributes():
    pool = PARSER.parse("Two small wooden boats, a couple of red and white kites, a pair of scissors, snow and dogs")
    rows = [(entity.name, entity.count, entity.attributes) for entity in pool.entities]
    assert rows == [
        ("boat", 2, ("small", "wooden")),
        ("kite", 2, ("red", "white")),
        ("scissors", 1, ()),
        ("snow", None, ()),
        ("dog", None, ()),
    ]
    assert PARSER.parse("The bus is red and dirty.").entities[0].attributes == ("dirty", "red")


@given(st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_text_is_read(text):
    pool = PARSER.parse(text)
    assert all(entity.name and entity.count != 0 for entity in pool.entities)
    assert all(triple.subject != triple.object for triple in pool.triples)


def test_any_order_of_captions_words_is_read():
    words = " ".join(row[0].lower().replace(".", " .") for row in READ).split()
    rng = random.Random(0)
    for _ in range(1_500):
        pool = PARSER.parse(" ".join(rng.choices(words, k=rng.randint(1, 25))))
        assert all(triple.subject != triple.object for triple in pool.triples)
        assert len(set(pool.triples)) == len(pool.triples)


def test_an_endless_caption_is_parsed_in_finite_time():
    assert len(PARSER.parse("a dog and " * 100_000).entities) <= 2_001


def test_forms_of_verbs():
    bases = ("sit", "ride", "lie", "open", "carry", "watch", "stop", "lean", "see")
    assert [ing(verb) for verb in bases] == [
        *("sitting", "riding", "lying", "opening", "carrying", "watching", "stopping", "leaning", "seeing"),
    ]
    assert [ed(verb) for verb in ("park", "carry", "stop", "tie", "play")] == [
        "parked",
        "carried",
        "stopped",
        "tied",
        "played",
    ]
    assert [third(verb) for verb in ("watch", "carry", "have", "go", "sit")] == [
        "watches",
        "carries",
        "has",
        "goes",
        "sits",
    ]
