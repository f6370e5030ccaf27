"""Position of one box relative to another, by GenEval's rule."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from medtest.core.scenes import Box, SeenEntity
from medtest.readers.pictures.spatial import (
    MOST_RELATED,
    PREDICATES,
    relations,
    relative_positions,
    triples_of,
)

SQUARE = (0.4, 0.4, 0.6, 0.6)


def _moved(x: float, y: float) -> Box:
    return (0.4 + x, 0.4 + y, 0.6 + x, 0.6 + y)


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (-0.3, 0.0, {"left of"}),
        (0.3, 0.0, {"right of"}),
        (0.0, -0.3, {"above"}),
        (0.0, 0.3, {"below"}),
        (0.3, 0.3, {"right of", "below"}),
        (0.039, 0.0, set()),  # a tenth of both widths, 0.04, is level
        (0.05, 0.0, set()),  # (0.05 - 0.04) / 0.05 is below one half
        (0.081, 0.0, {"right of"}),  # (0.081 - 0.04) / 0.081 is above it
        (0.079, 0.0, set()),
        (0.3, 0.12, {"right of"}),  # (0.12 - 0.04) / 0.323 is not
        (0.0, 0.0, set()),
    ],
)
def test_positions_take_an_offset_beyond_a_tenth_of_the_sizes_and_most_of_the_direction(
    x: float, y: float, expected: set[str]
) -> None:
    assert relative_positions(_moved(x, y), SQUARE) == expected


def test_directions_are_those_of_pixels() -> None:
    # 0.2 of a width of 1000 is far, 0.2 of a height of 100 is not
    assert relative_positions(_moved(0.3, 0.3), SQUARE, aspect=10.0) == {"right of"}


_PLACE = st.floats(0.0, 0.5)
_SIZE = st.floats(0.05, 0.5)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    x_min, y_min, width, height = draw(_PLACE), draw(_PLACE), draw(_SIZE), draw(_SIZE)
    return x_min, y_min, x_min + width, y_min + height


@given(boxes(), boxes())
def test_positions_of_exchanged_boxes_are_reversed(first: Box, second: Box) -> None:
    reverse = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}
    assert {reverse[name] for name in relative_positions(first, second)} == relative_positions(second, first)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # a cup on a table; one above it; one in the middle of it
        ((0.4, 0.3, 0.5, 0.5), (0.2, 0.5, 0.8, 0.9), {"on", "above", "near"}),
        ((0.4, 0.0, 0.5, 0.2), (0.3, 0.6, 0.7, 0.9), {"above"}),
        ((0.45, 0.6, 0.55, 0.7), (0.2, 0.5, 0.8, 0.9), {"in", "near"}),
        # the table to the cup
        ((0.2, 0.5, 0.8, 0.9), (0.4, 0.3, 0.5, 0.5), {"under", "near"}),
        # a dog whose feet are lower than the house behind it, and the house
        ((0.5, 0.5, 0.9, 0.95), (0.2, 0.1, 0.7, 0.7), {"in front of", "near", "under"}),
        ((0.2, 0.1, 0.7, 0.7), (0.5, 0.5, 0.9, 0.95), {"behind", "near", "above"}),
        # side by side, and far apart
        ((0.1, 0.4, 0.3, 0.6), (0.35, 0.4, 0.55, 0.6), {"left of", "near"}),
        ((0.0, 0.4, 0.2, 0.6), (0.8, 0.4, 1.0, 0.6), {"left of"}),
    ],
)
def test_relations_of_boxes_are_those_that_a_person_would_name(first: Box, second: Box, expected: set[str]) -> None:
    assert relations(first, second) == expected


REVERSE = {"left of": "right of", "above": "under", "in front of": "behind", "near": "near"}


@given(boxes(), boxes(), st.sampled_from([0.5, 1.0, 2.0]))
def test_relations_turn_round_with_the_pair(first: Box, second: Box, aspect: float) -> None:
    forward, back = relations(first, second, aspect), relations(second, first, aspect)
    assert forward <= set(PREDICATES)
    for name, reverse in REVERSE.items():
        assert (name in forward) == (reverse in back)
        assert (reverse in forward) == (name in back)
    for name in ("on", "in"):
        assert not (name in forward and name in back)


@given(boxes(), boxes())
def test_a_mirror_turns_sides_round_and_nothing_else(first: Box, second: Box) -> None:
    def mirrored(box: Box) -> Box:
        return 2.0 - box[2], box[1], 2.0 - box[0], box[3]

    sides = {"left of": "right of", "right of": "left of"}
    # thresholds are not tested: rounding moves a value on a threshold over it
    assume(_steady(first, second) and _steady(mirrored(first), mirrored(second)))
    assert relations(mirrored(first), mirrored(second)) == {sides.get(name, name) for name in relations(first, second)}


@given(boxes(), boxes(), st.sampled_from([0.25, 0.5, 2.0, 8.0]))
def test_the_size_of_a_picture_does_not_matter(first: Box, second: Box, scale: float) -> None:
    assume(_steady(first, second))
    larger = [tuple(scale * edge for edge in box) for box in (first, second)]
    assert relations(*larger) == relations(first, second)


def _steady(first: Box, second: Box) -> bool:
    grown = [tuple(edge + nudge for edge, nudge in zip(first, by, strict=True)) for by in _NUDGES]
    return all(relations(other, second) == relations(first, second) for other in grown)


_NUDGES = [
    (1e-5,) * 4,
    (-1e-5,) * 4,
    (1e-5, 1e-5, -1e-5, -1e-5),
    (-1e-5, 1e-5, 1e-5, -1e-5),
    (-1e-5, -1e-5, 1e-5, 1e-5),
]


def test_triples_are_by_index_and_both_ways_and_what_has_no_box_has_none() -> None:
    entities = [
        SeenEntity(name="dog", box=(0.1, 0.4, 0.3, 0.6)),
        SeenEntity(name="fog"),
        SeenEntity(name="cat", box=(0.6, 0.4, 0.8, 0.6)),
    ]
    assert [(triple.subject, triple.predicate, triple.object) for triple in triples_of(entities)] == [
        (0, "left of", 2),
        (2, "right of", 0),
    ]


def test_of_many_things_the_surest_are_related() -> None:
    entities = [
        SeenEntity(name="bird", box=(0.02 * n, 0.1, 0.02 * n + 0.01, 0.2), score=1.0 if n % 2 else 0.4)
        for n in range(40)
    ]
    related = {triple.subject for triple in triples_of(entities)}
    assert len(related) == MOST_RELATED
    assert set(range(1, 40, 2)) <= related
