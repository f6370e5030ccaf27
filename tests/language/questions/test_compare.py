"""Comparison of two typed answers: examples of the slides, and laws that hold for all values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.language.questions.answers import Change, compare, king_distance, parse
from medtest.language.questions.answers.extract.place import CELLS
from medtest.language.questions.questions import official
from medtest.language.questions.values import Kind

QUESTIONS = {question.name: question for question in official()}


def describe_change(name: str, answer: str, other: str, **settings: int) -> str:
    question = QUESTIONS[name]
    difference = compare(question.parse(answer), question.parse(other), **settings)
    return "-" if difference is None else f"{difference.change.value} {'hit' if difference.any_hit else 'miss'}"


@pytest.mark.parametrize(
    ("name", "answer", "other", "expected"),
    [
        ("size", ">10mm", ">20mm", "weaker hit"),
        ("size", ">20mm", ">10mm", "stronger hit"),
        ("size", "12 mm", "11-20mm", "stronger hit"),
        ("size", "10.5 mm", "11-20mm", "stronger hit"),
        ("size", "10 mm", "11-20mm", "flip miss"),
        ("size", "10 mm", "5-10mm", "stronger hit"),
        ("size", "5-10mm", "11-20mm", "flip miss"),
        ("size", "10-20mm", "5-10mm", "flip miss"),
        ("size", "<5mm", "5-10mm", "flip miss"),
        ("size", "5 mm", "<5mm", "flip miss"),
        ("size", "about 10 mm", "5-10mm", "overlap hit"),
        ("size", "about 1 cm", "10 mm", "weaker hit"),
        ("size", "1 cm", "10 mm", "same hit"),
        ("size", "not relevant", "10 mm", "flip miss"),
        ("size", "none", "Not relevant", "same hit"),
        ("size", "I cannot determine it", "10 mm", "-"),
        ("polyps", "2", "2-3", "stronger hit"),
        ("polyps", "at least 2", "1", "flip miss"),
        ("polyps", "several", "3", "weaker hit"),
        ("polyps", "1-2", "2-3", "overlap hit"),
        ("abnormality_colour", "Red", "Red, Pink, Grey", "flip hit"),
        ("abnormality_colour", "Pink and red", "red;pink", "same hit"),
        ("abnormality_colour", "Brown", "Red", "flip miss"),
        ("abnormalities", "Yes", "Polyp", "weaker hit"),
        ("abnormalities", "Polyp", "Yes", "stronger hit"),
        ("abnormalities", "Bleeding", "Polyp", "flip miss"),
        ("abnormalities", "No", "Yes", "flip miss"),
        ("abnormality_place", "Center-Left", "Center, Upper-right, Center-right, Upper-center", "flip miss"),
        ("procedure", "EGD", "gastroscopy", "same hit"),
    ],
)
def test_answers_of_the_slides_and_similar_answers(name: str, answer: str, other: str, expected: str) -> None:
    assert describe_change(name, answer, other) == expected


def test_places_may_be_near() -> None:
    question = QUESTIONS["abnormality_place"]
    difference = compare(question.parse("center-left"), question.parse("upper-right"))
    assert difference is not None
    assert (difference.distance, difference.any_hit) == (2, False)
    assert describe_change("abnormality_place", "center-left", "upper-left", tolerance=1) == "same hit"
    assert describe_change("abnormality_place", "center-left", "upper-left") == "flip miss"


def test_a_king_walks_the_grid() -> None:
    for a, cell in enumerate(CELLS):
        for b, other in enumerate(CELLS):
            assert king_distance(cell, other) == max(abs(a // 3 - b // 3), abs(a % 3 - b % 3))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_counts_flip_where_no_whole_number_is_common(low: int, more: int, low_2: int, more_2: int) -> None:
    answer, other = f"{low}-{low + more}" if more else str(low), f"{low_2}-{low_2 + more_2}" if more_2 else str(low_2)
    first, second = set(range(low, low + more + 1)), set(range(low_2, low_2 + more_2 + 1))
    difference = compare(QUESTIONS["polyps"].parse(answer), QUESTIONS["polyps"].parse(other))
    assert difference is not None
    expected = Change.OVERLAP
    if first == second:
        expected = Change.SAME
    elif not first & second:
        expected = Change.FLIP
    elif first < second:
        expected = Change.STRONGER
    elif second < first:
        expected = Change.WEAKER
    assert difference.change == expected
    assert difference.any_hit == bool(first & second)


@given(st.sets(st.sampled_from(CELLS), min_size=1), st.sets(st.sampled_from(CELLS), min_size=1))
def test_sets_are_compared_as_sets(cells: set[str], other: set[str]) -> None:
    question = QUESTIONS["landmark_place"]
    difference = compare(question.parse(", ".join(cells)), question.parse(", ".join(other)))
    assert difference is not None
    assert (difference.any_hit, difference.exact) == (bool(cells & other), cells == other)
    assert difference.jaccard == pytest.approx(len(cells & other) / len(cells | other))
    assert (difference.distance == 0) == difference.any_hit


@pytest.mark.parametrize(
    ("answer", "true", "hit"),
    [
        ("The image shows an opacity in the right lung.", "in the liver", False),
        ("It is in the left lobe.", "left lobe", True),
        ("in the", "in the", True),
    ],
)
def test_free_answers_match_by_meaningful_words(answer: str, true: str, hit: bool) -> None:
    difference = compare(parse(answer, Kind.TEXT), parse(true, Kind.TEXT))
    assert difference is not None
    assert difference.any_hit is hit
