"""Visual Genome's split as data: lists, merged classes, synonyms, plurals, attested triples."""

from __future__ import annotations

import pytest

from medtest.language.captions.inflection import article, plural, singular
from medtest.language.captions.vocabulary import vg150

SHARED = vg150()


def test_the_split_has_150_classes_and_50_predicates_each_once():
    assert len(SHARED.classes) == len(set(SHARED.classes)) == 150
    assert len(SHARED.predicates) == len(set(SHARED.predicates)) == 50
    assert all(isinstance(name, str) for name in (*SHARED.classes, *SHARED.predicates)), (
        "YAML reads a bare `on` as true"
    )
    assert {"on", "has", "near", "wearing", "lying on", "laying on", "wears", "and"} < set(SHARED.predicates)


def test_every_class_of_the_split_is_one_that_pools_name_or_is_merged_into_one():
    for name in SHARED.classes:
        assert SHARED.class_of(name) == SHARED.merged_classes.get(name, name)
    assert set(SHARED.merged_classes) <= set(SHARED.classes)
    assert set(SHARED.merged_classes.values()) <= set(SHARED.names)
    assert not set(SHARED.names) & set(SHARED.merged_classes)
    assert set(SHARED.merged_predicates) <= set(SHARED.predicates)
    for name in SHARED.predicates:
        assert SHARED.predicate_of(name) == SHARED.merged_predicates.get(name, name)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("men", "man"),
        ("guys", "man"),
        ("people", "person"),
        ("ladies", "woman"),
        ("kids", "child"),
        ("Planes", "airplane"),
    ]
    + [("sofa", "couch"), ("bicycles", "bike"), ("jean", "jeans"), ("sneakers", "sneaker"), ("shelves", "shelf")]
    + [("glasses", "glass"), ("knives", "knife"), ("sheep", "sheep"), ("tennis racquets", "tennis racket")]
    + [("unicorn", None), ("", None), ("seat belt", None)],
)
def test_words_lead_to_their_class(word, name):
    assert SHARED.class_of(word) == name


def test_every_word_for_a_class_and_its_plural_lead_back_to_it():
    for name in SHARED.names:
        assert SHARED.synonyms(name)[0] == name
        for word in SHARED.synonyms(name):
            assert SHARED.class_of(word) == name, word
            assert SHARED.class_of(plural(word)) == name, word
        assert SHARED.class_of(SHARED.plural(name)) == name


def test_every_word_has_one_class_and_no_hypernym_is_a_synonym():
    synonyms = [word for name in SHARED.names for word in SHARED.synonyms(name)]
    assert sorted({word for word in synonyms if synonyms.count(word) > 1}) == []
    for name in SHARED.names:
        assert not set(SHARED.synonyms(name)) & set(SHARED.hypernyms(name))


def test_hypernyms_lead_up():
    assert SHARED.hypernyms("sofa") == ("seat", "furniture")
    assert SHARED.is_a("jeans", "clothing") and SHARED.is_a("boy", "person") and not SHARED.is_a("person", "boy")


def test_phrases_lead_to_predicates():
    expected = {"beside": "near", "next to": "near", "below": "under", "on top of": "on", "wears": "wearing"}
    expected |= {"laying on": "lying on", "to the left of": "left of", "full of": "with", "inside": "in"}
    assert {phrase: SHARED.predicate_of(phrase) for phrase in expected} == expected
    assert SHARED.predicate_of("juggling") is None
    assert "left of" in SHARED.relations and "left of" not in SHARED.predicates
    assert not {"wears", "laying on"} & set(SHARED.relations)


def test_attested_triples_name_classes_and_predicates_of_pools():
    triples = SHARED.attested_triples
    assert len(triples) > 150
    for subject, predicate, object_ in triples:
        assert subject in SHARED.names and object_ in SHARED.names and predicate in SHARED.relations
    assert SHARED.attested("man", "riding", "horse") and SHARED.attested("guy", "rides", "horses")
    assert not SHARED.attested("horse", "riding", "man") and not SHARED.attested("car", "eating", "pizza")
    assert not SHARED.attested("unicorn", "on", "table")


PAIRS = """box boxes|bus buses|glass glasses|watch watches|knife knives|woman women|policeman policemen|lens lenses|
horse horses|tomato tomatoes|cookie cookies|berry berries|vase vases|fire hydrant fire hydrants|sheep sheep|jeans jeans|
axe axes|prize prizes|human humans|suitcase suitcases|dress dresses|brush brushes|monkey monkeys|person people|
toothbrush toothbrushes|church churches|headache headaches|shoe shoes|photo photos|piano pianos|mouse mice|
abdomen abdomens|specimen specimens"""


@pytest.mark.parametrize("pair", PAIRS.split("|"))
def test_plurals_lead_there_and_back(pair):
    words = pair.split()
    word, words_ = " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])
    assert plural(word) == words_ and singular(words_) == word and singular(word) == word


def test_articles_follow_the_sound():
    articles = [
        article(word) for word in ("apple", "unicycle", "hour glass", "uniform", "umbrella", "dog", "European", "eye")
    ]
    assert articles == ["an", "a", "an", "a", "an", "a", "a", "an"]
