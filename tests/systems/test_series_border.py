"""Answers of algorithms in a series: accepted forms, conversions and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from medtest.core.cases import ImageSpec
from medtest.core.errors import BadOutput
from medtest.core.tasks.series_border import check_image, check_region

GREY = np.arange(12, dtype=np.uint8).reshape(3, 4)
FLOAT = GREY.astype(np.float32)
SPEC = ImageSpec(axes="yx")


def test_images_come_in_the_dtype_of_their_input() -> None:
    checked = check_image(GREY.astype(np.float64) + 0.4, GREY)
    assert checked.image.dtype == np.uint8
    assert np.array_equal(checked.image, GREY)
    assert checked.given is GREY
    assert check_image(np.full((3, 4), 300.0), GREY).image.max() == 255
    assert check_image(np.full((3, 4), -7), GREY).image.max() == 0
    free = check_image(np.full((3, 4), 300.5), FLOAT)
    assert free.image.dtype == np.float32
    assert free.image.max() == 300.5
    assert check_image(GREY[None, ..., None], GREY).image.shape == (3, 4)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (None, "None where an image"),
        ("text", "str where an image"),
        ({"a": 1}, "dict where"),
        (GREY[:2], "shape (2, 4); (3, 4) is expected"),
        (np.zeros((3, 4, 3)), "shape (3, 4, 3)"),
        (np.full((3, 4), np.nan), "NaN"),
        (np.full((3, 4), np.inf), "infinite"),
        (np.zeros((3, 4), bool), "bool"),
        (np.zeros((3, 4), complex), "complex"),
        (np.array([["a"] * 4] * 3), "dtype"),
        (np.zeros((0,)), "shape (0,)"),
    ],
)
def test_invalid_images_are_refused(raw: Any, words: str) -> None:
    for input_image in (GREY, FLOAT):
        with pytest.raises(BadOutput) as caught:
            check_image(raw, input_image)
        assert words in str(caught.value)


def test_a_double_beyond_float32_is_refused() -> None:
    with np.errstate(over="ignore"), pytest.raises(BadOutput, match="infinite"):
        check_image(np.full((3, 4), 1e300), FLOAT)


def test_regions_of_every_form() -> None:
    inside = GREY > 5
    for raw in (inside, inside.astype(np.int64) * 7, inside.astype(np.float32), inside * 0.9, inside[None]):
        assert np.array_equal(check_region(raw, GREY, SPEC).region, inside)
    colour = np.zeros((5, 3, 4, 3), np.uint8)
    film = np.ones((5, 3, 4), bool)
    assert check_region(film, colour, ImageSpec(axes="tyxc")).region.all()


@pytest.mark.parametrize(
    ("raw", "words"),
    [(FLOAT, "0 to 11"), (np.full((3, 4), np.nan), "NaN"), (GREY[:, :2], "shape"), (None, "a region")],
)
def test_invalid_regions_are_refused(raw: Any, words: str) -> None:
    with pytest.raises(BadOutput, match=words):
        check_region(raw, GREY, SPEC)
