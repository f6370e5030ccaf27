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
from medtest.relations.prompts import fitting, own
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


def follow_up_of(name: str, text: str, draws: int = 6) -> set[str]:
    seed = prepare(Seed(ref=SeedRef(dataset="d", seed_id="s"), kind="depiction", prompt=prompt_of(text)), size=None)
    info = part("relations", name)
    operator = info.load()(info.load().Settings(**info.defaults))
    texts = set()
    for number in range(draws):
        try:
            params = operator.sample(seed, 0, np.random.default_rng(number))
        except NotApplicable:
            continue
        changed = operator.apply(seed, params).prompt
        assert changed is not None
        texts.add(changed.text)
    return texts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("ec", "A guy rides his skate board on the city sidewalks.", "surfboard"),
        ("ec", "A frozen pizza in the oven already cooked", "orange"),
        ("ec", "A group of black and white spotted cows in green grass.", "spotted zebras"),
        ("ec", "A red train pulling into the station under a steel framed roof.", "airplane"),
        ("ec", "A small train is traveling on the railroad.", "boat"),
        ("ec", "a guy jumping over a cone on a skate board.", "surfboard"),
        ("ec", "A couple of giraffe standing in a grassy field.", "elephant"),
        ("ec_er_r", "A woman is taking a photo of herself in the mirror of a bathroom.", "herself"),
        ("ec_er_r", "A train is rounding the train tracks next to the trees.", "car"),
        ("ec_er_r", "A boy riding waves on his surf board in the ocean.", "skateboard"),
        ("ec_er_a", "A bird that is flying over the sand.", "flying"),
        ("ec_er_a", "Several bunches of green bananas are resting on bricks.", "pizzas"),
        ("er_a", "A guy rides his skate board on the city sidewalks.", "is riding the"),
        ("er_a", "A brown elephant is walking along the grass.", "on back of"),
        ("er_a", "Three remotes sitting on top of a mattress.", "is holding the remotes"),
        ("er_a", "A plate topped with bread, greens and pasta and a bird.", "in a tree"),
        ("er_r", "A woman pinning a flower onto a man's blazer.", "woman onto"),
        ("er_r", "Two pictures of a fire hydrant with two pictures of people.", "with two pictures."),
        ("ec_er_r", "A woman throws a frisbee while at the park.", "while."),
        ("ec_er_r", "A man on skis riding through a snowy trail.", "skis riding."),
        ("ec_er_r", "there are three vases made of clay on a table", "made on"),
        ("er_r", "A woman and two men walking with their tennis rackets.", "woman walking"),
        ("er_r", "A little boy dipping his hand into water.", "hand."),
        ("er_r", "A pair of people sitting on a motorcycle, in the grass.", "people, in"),
    ],
)
def test_changes_that_a_reader_called_wrong_are_not_made(name: str, text: str, wrong: str) -> None:
    assert not [changed for changed in follow_up_of(name, text) if wrong in changed]


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        ("ec", "A red bus is driving on the road.", {"A red car is driving on the road."}),
        (
            "er_r",
            "A man walking on tracks next to a train.",
            {"A man walking on tracks.", "A man walking next to a train."},
        ),
    ],
)
def test_changes_within_a_tight_group_and_of_whole_phrases_are_made(name: str, text: str, changed: set[str]) -> None:
    assert follow_up_of(name, text, draws=12) == changed


def test_a_word_that_depends_on_the_noun_is_the_reason_of_a_refusal() -> None:
    with pytest.raises(NotApplicable, match="'herself'"):
        fitting.check_exchange("A woman sees herself", "woman")
