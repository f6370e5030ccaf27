"""Parsers by name, and the mapping of dependency graphs that spaCy and Stanza share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from medtest.language.captions.dependencies.graph import Word
from medtest.language.captions.dependencies.pools import pool_of_words
from medtest.language.captions.parsers import PARSERS, NoParser, parser_of

HERE = Path(__file__).parents[2] / "data" / "captions"


def test_every_parser_has_its_name():
    assert parser_of("controlled").name == "controlled"
    assert set(PARSERS) == {"controlled", "spacy", "stanza", "language_model"}


def test_an_unknown_parser_is_one_sentence_with_the_nearest():
    with pytest.raises(NoParser, match="'controled'; there are controlled, .* Did you mean 'controlled'"):
        parser_of("controled")
    with pytest.raises(NoParser, match="parser controlled: .*model"):
        parser_of("controlled", model="x")


# Universal Dependencies of "A group of people holding umbrellas eats a pizza in front of an old clock tower.", by hand
UNIVERSAL = """
a DET det 1|group NOUN nsubj 6|of ADP case 3|people NOUN nmod 1|holding VERB acl 3|umbrellas NOUN obj 4|
eats VERB root 6|a DET det 8|pizza NOUN obj 6|in ADP case 10|front NOUN obl 6|of ADP case 15|an DET det 15|
old ADJ amod 15|clock NOUN compound 15|tower NOUN nmod 10
"""
# the same in CLEAR, as spaCy's English pipelines label it
CLEAR = """
a DET det 1|group NOUN nsubj 6|of ADP prep 1|people NOUN pobj 2|holding VERB acl 1|umbrellas NOUN dobj 4|
eats VERB root 6|a DET det 8|pizza NOUN dobj 6|in ADP prep 6|front NOUN pobj 9|of ADP prep 10|an DET det 15|
old ADJ amod 15|clock NOUN compound 15|tower NOUN pobj 11
"""
LEMMAS = {"eats": "eat", "holding": "hold"}


def words(text: str) -> list[Word]:
    rows = [word.split() for word in text.split("|")]
    return [
        Word(
            text=form,
            lemma=LEMMAS.get(form, form),
            tag=tag,
            relation=relation,
            head=int(head),
            gerund=form[-3:] == "ing",
        )
        for form, tag, relation, head in rows
    ]


@pytest.mark.parametrize("text", [UNIVERSAL, CLEAR], ids=["universal", "clear"])
def test_both_schemes_of_labels_lead_to_one_pool(text):
    pool = pool_of_words(words(text))
    assert [(entity.name, entity.count) for entity in pool.entities] == [
        ("person", None),
        ("umbrella", None),
        ("pizza", 1),
        ("clock tower", 1),
    ]
    assert pool.entities[-1].attributes == ("old",)
    assert set(pool.named()) == {
        ("person", "holding", "umbrella"),
        ("person", "eating", "pizza"),
        ("person", "in front of", "clock tower"),
    }


CONLL = """1\tTwo\ttwo\tNUM\tCD\tNumType=Card\t2\tnummod\t_\t_
2\tdogs\tdog\tNOUN\tNNS\tNumber=Plur\t3\tnsubj\t_\t_
3\tlie\tlie\tVERB\tVBP\t_\t0\troot\t_\t_
4\ton\ton\tADP\tIN\t_\t6\tcase\t_\t_
5\ta\ta\tDET\tDT\t_\t6\tdet\t_\t_
6\tbed\tbed\tNOUN\tNN\tNumber=Sing\t3\tobl\t_\t_
7\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

"""


def test_documents_of_stanza_are_read():
    conll = pytest.importorskip("stanza.utils.conll").CoNLL
    from medtest.language.captions.dependencies.stanza_parser import words_of

    pool = pool_of_words(words_of(conll.conll2doc(input_str=CONLL)))
    assert [(entity.name, entity.count) for entity in pool.entities] == [("dog", 2), ("bed", 1)]
    assert pool.named() == (("dog", "lying on", "bed"),)


def test_stanza_without_models_raises_one_message(tmp_path):
    pytest.importorskip("stanza")
    with pytest.raises(NoParser, match="not a folder"):
        parser_of("stanza", model=str(tmp_path / "none"))
    with pytest.raises(NoParser, match="cannot be loaded"):
        parser_of("stanza", model=str(tmp_path))


def test_an_unknown_spacy_pipeline_lists_the_installed_ones():
    pytest.importorskip("spacy")
    with pytest.raises(NoParser, match="no pipeline 'en_none'; installed English ones"):
        parser_of("spacy", model="en_none")


def test_spacy_reads_the_development_captions_tolerably():
    pytest.importorskip("spacy")
    try:
        parser = parser_of("spacy")
    except NoParser as why:
        pytest.skip(str(why))
    rows = json.loads((HERE / "development.json").read_text(encoding="utf-8"))
    right = total = 0
    for row, pool in zip(rows, parser.parse_all(row["caption"] for row in rows), strict=True):
        named = pool.names()
        right += sum(entity["name"] in named for entity in row["entities"])
        total += len(row["entities"])
    assert right / total > 0.85
