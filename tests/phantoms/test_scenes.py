"""Drawn scenes: objects fill their boxes, in their colours, later ones over earlier ones."""

from __future__ import annotations

import colorsys
import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.language.captions.vocabulary import vg150
from medtest.phantoms.scenes import ASPECTS, CLASSES, COLOURS, Placed, draw_scene
from medtest.phantoms.scenes.paint import RANGES, tones

HUES = {"red": 0.0, "orange": 0.078, "yellow": 0.15, "green": 0.345, "blue": 0.605, "purple": 0.77, "pink": 0.925}
"""Middles of the colours' hues, as colour wheels have them roughly."""


def _rng(*numbers: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(list(numbers)))


def _box(name: str, side: float = 0.6) -> tuple[float, float, float, float]:
    width, height = side * min(1.0, ASPECTS[name]), side / max(1.0, ASPECTS[name])
    return 0.5 - width / 2, 0.5 - height / 2, 0.5 + width / 2, 0.5 + height / 2


def _changed(name: str, colour: str, box: tuple[float, float, float, float]) -> np.ndarray:
    """Return a mask of the difference between a picture with an object and the same background without it."""
    with_it = draw_scene([Placed(name=name, colour=colour, box=box)], rng=_rng(5), clutter=3)
    without = draw_scene([], rng=_rng(5), clutter=3)
    return np.abs(with_it.astype(int) - without).max(axis=2) > 24


def test_names_are_enough_and_of_visual_genome() -> None:
    assert len(CLASSES) >= 30
    assert len(COLOURS) == 10
    assert [name for name in CLASSES if name not in vg150().classes] == ["ball"]


@pytest.mark.parametrize("name", CLASSES)
def test_an_object_fills_its_box_and_nothing_beyond(name: str) -> None:
    box = _box(name)
    rows, columns = np.nonzero(_changed(name, "red", box))
    reached = (columns.min() / 256, rows.min() / 256, (columns.max() + 1) / 256, (rows.max() + 1) / 256)
    # Two pixels: thin parts at an edge may differ little from the background.
    assert reached == pytest.approx(box, abs=2.5 / 256)
    assert len(rows) > 0.2 * (box[2] - box[0]) * (box[3] - box[1]) * 256 * 256 * 0.5


@pytest.mark.parametrize("colour", COLOURS)
def test_shades_fit_the_name_of_the_colour(colour: str) -> None:
    for number in range(20):
        red, green, blue = (level / 255 for level in tones(colour, _rng(number))["main"])
        hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
        if colour in HUES:
            assert min(abs(hue - HUES[colour]), 1 - abs(hue - HUES[colour])) < 1 / 16
            assert saturation > 0.25
            assert value > 0.4
        elif colour == "brown":  # a dark orange
            assert abs(hue - 0.07) < 0.03
            assert value < 0.55
        elif colour == "black":
            assert value < 0.2
        else:
            assert saturation < 0.08
            assert value > 0.9


def test_colours_lie_apart() -> None:
    corners = {
        colour: [
            colorsys.hsv_to_rgb(hue % 1.0, saturation, value)
            for hue in (a, b)
            for saturation in (c, d)
            for value in (e, f)
        ]
        for colour, (a, b, c, d, e, f) in RANGES.items()
        if colour not in ("black", "white")
    }
    for colour, points in corners.items():
        for other, others in corners.items():
            if colour < other:
                least = min(np.abs(np.subtract(point, other_point)).max() for point in points for other_point in others)
                assert least > 0.1, (colour, other)


@pytest.mark.parametrize("colour", ["red", "green", "blue", "white", "black"])
def test_an_object_has_its_colour(colour: str) -> None:
    picture = draw_scene([Placed(name="ball", colour=colour, box=(0.1, 0.1, 0.9, 0.9))], rng=_rng(3), clutter=0)
    inside = picture[round(0.42 * 256), round(0.46 * 256)].astype(float)  # the middle of the ball has one tone
    expected = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "white": (1, 1, 1), "black": (0, 0, 0)}[colour]
    nearest = min(((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (0, 0, 0)), key=lambda c: _distance(inside / 255, c))
    assert nearest == expected


def _distance(pixel: np.ndarray, colour: tuple[int, int, int]) -> float:
    return float(((pixel - np.array(colour)) ** 2).sum())


def test_later_objects_cover_earlier_ones() -> None:
    ball = Placed(name="ball", colour="red", box=(0.2, 0.2, 0.8, 0.8))
    house = Placed(name="house", colour="blue", box=(0.3, 0.3, 0.7, 0.9))
    house_last, ball_last = (draw_scene(order, rng=_rng(4), clutter=0) for order in ([ball, house], [house, ball]))
    assert house_last[128, 128, 2] > house_last[128, 128, 0]
    assert ball_last[110, 120, 0] > ball_last[110, 120, 2]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(16, 300), count=st.integers(0, 6))
def test_any_scene_can_be_drawn_and_follows_from_its_seed(seed: int, size: int, count: int) -> None:
    rng = _rng(seed)
    placed = []
    for _ in range(count):
        x_min, y_min, width, height = (float(value) for value in rng.uniform(-0.3, 1.2, 4))
        name, colour = CLASSES[int(rng.integers(len(CLASSES)))], COLOURS[int(rng.integers(10))]
        placed.append(
            Placed(name=name, colour=colour, box=(x_min, y_min, x_min + abs(width) + 0.01, y_min + abs(height) + 0.01))
        )
    first, second = (draw_scene(placed, size=size, rng=_rng(seed, 1)) for _ in range(2))
    assert first.shape == (size, size, 3)
    assert first.dtype == np.uint8
    assert np.array_equal(first, second)


def test_bytes_are_the_same_on_every_processor() -> None:
    objects = [Placed(name=name, colour=COLOURS[k % 10], box=_box(name, 0.3)) for k, name in enumerate(CLASSES)]
    picture = draw_scene(objects, rng=_rng(11))
    assert (
        hashlib.sha256(picture.tobytes()).hexdigest()
        == "aa5cb62bb266737cacd7ff046f27402186a0cabd22c6233cd7b95e3c1f2c08a1"
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Placed(name="unicorn", colour="red", box=(0, 0, 1, 1)), "'unicorn' is not a class"),
        (Placed(name="dog", colour="teal", box=(0, 0, 1, 1)), "'teal' is not a colour"),
        (Placed(name="dog", colour="red", box=(0.5, 0, 0.5, 1)), "is not a box"),
        (Placed(name="dog", colour="red", box=(0, 0, float("nan"), 1)), "is not a box"),
    ],
)
def test_impossible_objects_are_refused(wrong: Placed, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw_scene([wrong], rng=_rng(0))
