"""Defects of the drawing product: each has its effect at its rate, steady or random."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from medtest.simlab.drawing.artist import Artist, Drawing, Drawings
from medtest.simlab.drawing.defects import RATES, DrawingDefects

PROMPT = "A red dog is left of a blue cat. Three birds are above the cat. There is a lamp."
WORDY = "A puppy near a table."
SHARED = Drawings()


def draw_picture(
    prompt: str = PROMPT, *, seed: int = 0, earlier: str = "", product: int = 0, **defects: Any
) -> Drawing:
    return Artist(product, DrawingDefects(**defects), SHARED).draw(prompt, seed=seed, earlier=earlier)


def names(drawing: Drawing) -> Counter[str]:
    return Counter(entity.name for entity in drawing.layout.things)


def relations_of(drawing: Drawing) -> set[tuple[str, str, str]]:
    shown = drawing.truth()
    return {(shown.objects[a][0], side, shown.objects[b][0]) for a, side, b in shown.sides}


SOUND = Counter({"dog": 1, "cat": 1, "bird": 3, "lamp": 1})


def test_without_defects_everything_is_there() -> None:
    sound = draw_picture()
    assert names(sound) == SOUND
    assert {("dog", "left of", "cat"), ("bird", "above", "cat")} <= relations_of(sound)
    assert {entity.name: entity.colour for entity in sound.layout.things}["dog"] == "red"
    assert sound.slips == ((), "")
    assert draw_picture("") == draw_picture("", seed=0)
    assert not draw_picture("").layout.things


@pytest.mark.parametrize(
    ("defects", "prompt", "remaining"),
    [
        ({"entities_dropped": 1.0, "most_entities": 3}, PROMPT, {"dog": 1, "cat": 1, "bird": 3}),
        ({"entities_dropped": 1.0, "most_entities": 0}, PROMPT, {}),
        ({"counts_capped": 1.0, "cap": 2}, PROMPT, {"dog": 1, "cat": 1, "bird": 2, "lamp": 1}),
        ({"unknown_default": 1.0}, WORDY, {"ball": 1, "table": 1}),
        ({"unknown_default": 1.0}, "A sofa near a dog.", {"ball": 1, "dog": 1}),
        ({"added_ignored": 1.0}, PROMPT, {"dog": 1, "cat": 1, "lamp": 1}),
        ({"clutter_dropped": 1.0}, PROMPT, {"dog": 1, "cat": 1, "bird": 3}),
        ({"clutter_dropped": 1.0}, "A dog.", {"dog": 1}),
        ({"prompts_rewritten": 1.0}, WORDY, {"dog": 1, "table": 1, "flower": 1}),
        ({"prompts_rewritten": 1.0}, "A flower.", {"flower": 1, "bird": 1}),
        ({"one_picture": 1.0}, WORDY, {"house": 1, "tree": 1}),
        ({"blank_pictures": 1.0}, WORDY, {}),
        ({"refusals": 1.0}, WORDY, {}),
    ],
)
def test_a_defect_has_its_effect(defects: dict[str, Any], prompt: str, remaining: dict[str, int]) -> None:
    assert names(draw_picture(prompt, **defects)) == Counter(remaining)


def test_sides_are_swapped_and_colours_leak() -> None:
    swapped = relations_of(draw_picture(sides_swapped=1.0))
    assert {("dog", "right of", "cat"), ("bird", "under", "cat")} <= swapped
    assert ("dog", "left of", "cat") not in swapped
    assert {entity.colour for entity in draw_picture(colours_leaked=1.0).layout.things} == {"red"}


def test_removed_entities_are_kept_in_their_place() -> None:
    earlier = "A dog on a table and near a cat. There is a bus."
    drawing = draw_picture("A dog near a cat.", earlier=earlier, removed_kept=1.0)
    assert names(drawing) == Counter({"dog": 1, "cat": 1, "table": 1, "bus": 1})
    assert ("dog", "on", "table") in relations_of(drawing)
    assert names(draw_picture("A dog near a cat.", removed_kept=1.0)) == Counter({"dog": 1, "cat": 1})
    assert draw_picture("A dog.", earlier="A dog.", removed_kept=1.0).layout == draw_picture("A dog.").layout


def test_a_rewritten_prompt_and_a_refusal_are_reported() -> None:
    assert "flower" in draw_picture(prompts_rewritten=1.0).revised
    assert draw_picture().revised == ""
    ways = {draw_picture(refusals=1.0, product=number).refused for number in range(40)}
    assert ways == {"policy", "empty_list", "empty_base64"}
    assert draw_picture(refusals=1.0, refused_as=("policy",)).refused == "policy"
    assert draw_picture(blank_pictures=1.0).blank
    with pytest.raises(ValueError, match="nothing"):
        Artist().paint(draw_picture(refusals=1.0), 64)


@pytest.mark.parametrize("name", RATES)
def test_a_steady_defect_stays_and_a_random_one_does_not(name: str) -> None:
    for anew in (False, True):
        defects = {name: 0.3, "anew": (name,) if anew else ()}
        by_product = [
            [bool(draw_picture(product=product, seed=seed, **defects).slips.names) for seed in range(4)]
            for product in range(150)
        ]
        assert any(len(set(slips)) > 1 for slips in by_product) == anew
        rate = 0.9 if name == "clutter_dropped" else 0.3  # three things beyond the first
        share = np.mean([slips[0] for slips in by_product])
        assert abs(share - rate) < 4 * (rate * (1 - rate) / 150) ** 0.5


def test_other_words_have_independent_draws() -> None:
    pairs = [
        tuple(
            "sides_swapped" in draw_picture(text, product=number, sides_swapped=0.5).slips.names
            for text in (PROMPT, WORDY)
        )
        for number in range(200)
    ]
    assert 60 < sum(plain_slip != wordy_slip for plain_slip, wordy_slip in pairs) < 140
