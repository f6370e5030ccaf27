"""Generated prompts: determined by their number, made of classes of drawn scenes, and parsed back."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_sources import source

from medtest.language.captions.parsers import parser_of
from medtest.language.captions.render import render
from medtest.phantoms.prompts import MOST_OF_ONE, RELATIONS, make
from medtest.phantoms.scenes import CLASSES, COLOURS


@given(index=st.integers(0, 10**6), seed=st.integers(0, 9), fewest=st.integers(1, 8), related=st.floats(0, 1))
def test_pools_are_of_drawn_scenes(index: int, seed: int, fewest: int, related: float) -> None:
    pool = make(index, seed, fewest=fewest, most=8, related=related)
    names = [entity.name for entity in pool.entities]
    assert fewest <= len(names) <= 8 and len(set(names)) == len(names) and set(names) <= set(CLASSES)
    assert all(triple.predicate in RELATIONS for triple in pool.triples) and len(pool.triples) < len(names)
    for entity in pool.entities:
        assert set(entity.attributes) <= set(COLOURS) and 1 <= entity.count <= MOST_OF_ONE
    assert pool == make(index, seed, fewest=fewest, most=8, related=related)


@settings(max_examples=200)
@given(index=st.integers(0, 10**6))
def test_the_parser_reads_them_back(index: int) -> None:
    pool = make(index, 3, most=8, related=0.8)
    assert parser_of("controlled").parse(render(pool)) == pool


def test_prompts_are_the_same_however_many_are_made() -> None:
    few, many = source("caption_phantoms", count=5), source("caption_phantoms", count=40)
    assert few.refs() == many.refs()[:5] and few.digest() != many.digest()
    later = source("caption_phantoms", start=3, count=2)
    assert later.refs() == many.refs()[3:5]
    assert few.phantom and few.task == "depiction"
    assert source("caption_phantoms", seed=6, count=5).refs() != few.refs()


def test_every_class_colour_relation_number_and_level_occurs() -> None:
    seeds = source("caption_phantoms", count=600)
    pools = [seeds.load(ref).prompt.pool for ref in seeds.refs()]
    entities = [entity for pool in pools for entity in pool.entities]
    assert {entity.name for entity in entities} == set(CLASSES)
    assert {word for entity in entities for word in entity.attributes} == set(COLOURS)
    assert {entity.count for entity in entities} == set(range(1, MOST_OF_ONE + 1))
    assert {triple.predicate for pool in pools for triple in pool.triples} == set(RELATIONS)
    levels = Counter(dict(ref.strata)["density"] for ref in seeds.refs())
    assert set(levels) == set("12345") and min(levels.values()) > 80


def test_numbers_of_objects() -> None:
    with pytest.raises(ValueError, match="at most 2"):
        source("caption_phantoms", fewest=3, most=2)
    seeds = source("caption_phantoms", count=20, fewest=3, most=3, min_triples=2)
    assert {len(seeds.load(ref).prompt.pool.triples) for ref in seeds.refs()} == {2}
