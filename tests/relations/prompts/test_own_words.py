"""Changes of prompts in their author's words: one phrase differs, and the text reads as the changed pool."""

from __future__ import annotations

import numpy as np
import pytest

from medtest.core.cases import Seed, SeedRef
from medtest.core.errors import NotApplicable
from medtest.core.plugins import part
from medtest.core.scenes import Entity, Prompt, pool_of
from medtest.language.captions.reading.reader import read_prompt
from medtest.language.captions.vocabulary import vg150
from medtest.preparation.prepare import prepare
from medtest.relations.prompts import own
from medtest.relations.prompts.pools import renamed, with_one_more, without
from medtest.seeds.captions.classed import in_classes


def prompt_of(text: str) -> Prompt:
    return Prompt(text=text, pool=in_classes(read_prompt(text).content, "any", vg150()), own=True)


@pytest.mark.parametrize(
    ("text", "index", "name", "changed"),
    [
        ("Draw a dog under an umbrella, 8k", 1, "table", "Draw a dog under a table, 8k"),
        ("Two dogs on a couch", 0, "sheep", "Two sheep on a couch"),
        ("A boy rideing a horse", 1, "elephant", "A boy rideing an elephant"),
        ("A man wearing a hat", 1, "jeans", "A man wearing a pair of jeans"),
        ("The cup is kicked by a boy", 1, "girl", "The cup is kicked by a girl"),
        ("A hrose in a field", 0, "cow", "A cow in a field"),
    ],
)
def test_one_noun_is_exchanged(text: str, index: int, name: str, changed: str) -> None:
    prompt = prompt_of(text)
    assert own.exchanged(prompt, renamed(prompt.pool, index, name), index, name) == changed


@pytest.mark.parametrize(
    ("text", "triple", "changed"),
    [
        (
            "Paint a cat sleeping on a sofa next to a lamp, oil painting",
            1,
            "Paint a cat sleeping on a sofa, oil painting",
        ),
        ("A man riding a horse and holding a flag.", 1, "A man riding a horse."),
        ("A dog and a cat on a bed.", 1, "A dog on a bed."),
        ("A dog sitting on a couch and wearing a hat.", 0, "A dog wearing a hat."),
    ],
)
def test_one_phrase_is_taken_out(text: str, triple: int, changed: str) -> None:
    prompt = prompt_of(text)
    assert own.shortened(prompt, without(prompt.pool, triple)) == changed


def test_one_phrase_is_put_in_before_style_tags() -> None:
    prompt = prompt_of("A dog on a bed, 8k, bokeh")
    pool = with_one_more(prompt.pool, 0, "wearing", Entity(name="hat"), is_subject=False)
    assert own.extended(prompt, pool) == "A dog wearing a hat on a bed, 8k, bokeh"
    pool = with_one_more(prompt.pool, 1, "near", Entity(name="lamp"), is_subject=True)
    assert own.extended(prompt, pool) == "A dog on a bed. A lamp is near the bed, 8k, bokeh"


def test_words_that_do_not_name_the_entity_are_left_alone() -> None:
    prompt = Prompt(
        text="A puppy on a bed", pool=pool_of([Entity(name="cow"), Entity(name="bed")], [(0, "on", 1)]), own=True
    )
    with pytest.raises(NotApplicable, match="cannot be exchanged"):
        own.exchanged(prompt, renamed(prompt.pool, 0, "horse"), 0, "horse")


def test_no_everyday_thing_is_put_into_a_medical_prompt() -> None:
    prompt = prompt_of("CT showing a stone in the left kidney")
    pool = with_one_more(prompt.pool, 0, "on", Entity(name="bear"), is_subject=True)
    with pytest.raises(NotApplicable, match="medicine"):
        own.extended(prompt, pool)


@pytest.mark.parametrize("name", ["ec", "er_r", "er_a", "ec_er_r", "ec_er_a"])
def test_operators_change_own_words_and_keep_command_tags_and_denials(name: str) -> None:
    text = "Draw a brown dog sitting on a couch and wearing a hat, no cats, 8k"
    seed = prepare(Seed(ref=SeedRef(dataset="d", seed_id="s"), kind="depiction", prompt=prompt_of(text)), size=None)
    info = part("relations", name)
    operator = info.load()(info.load().Settings(**info.defaults))
    followup = operator.apply(seed, operator.sample(seed, 0, np.random.default_rng(1)))
    assert followup.prompt is not None
    assert followup.prompt.text.startswith("Draw a")
    assert followup.prompt.text.endswith("no cats, 8k")
    assert "cat" in followup.prompt.pool.absent
