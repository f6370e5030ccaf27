"""Where one box lies relative to another, by GenEval's rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.readers.pictures.spatial import relative_positions

SQUARE = (0.4, 0.4, 0.6, 0.6)


def _moved(x: float, y: float) -> tuple[float, float, float, float]:
    return (0.4 + x, 0.4 + y, 0.6 + x, 0.6 + y)


@pytest.mark.parametrize(
    ("x", "y", "said"),
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
    x: float, y: float, said: set[str]
) -> None:
    assert relative_positions(_moved(x, y), SQUARE) == said


def test_directions_are_those_of_pixels() -> None:
    # 0.2 of a width of 1000 is far, 0.2 of a height of 100 is not
    assert relative_positions(_moved(0.3, 0.3), SQUARE, aspect=10.0) == {"right of"}


_PLACE = st.floats(0.0, 0.5)
_SIZE = st.floats(0.05, 0.5)


@st.composite
def boxes(draw: st.DrawFn) -> tuple[float, float, float, float]:
    left, top, width, height = draw(_PLACE), draw(_PLACE), draw(_SIZE), draw(_SIZE)
    return left, top, left + width, top + height


@given(boxes(), boxes())
def test_what_one_is_to_the_other_the_other_is_in_reverse(
    one: tuple[float, float, float, float], two: tuple[float, float, float, float]
) -> None:
    reverse = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}
    assert {reverse[name] for name in relative_positions(one, two)} == relative_positions(two, one)
