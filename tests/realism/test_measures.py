"""Statistics of artefacts compared with known numbers or another library."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from realism_parts import MUCOSA, STOOL, disc, picture
from skimage.color import rgb2lab

from medtest.realism.measures import SIDE, STATISTICS, measure, scaled

WHOLE = np.ones((SIDE, SIDE), np.bool_)


def test_every_statistic_has_a_value():
    mask = disc(SIDE, (256, 256), 90)
    values = measure(picture(mask), mask, WHOLE)
    assert values is not None
    assert set(values) == set(STATISTICS)


def test_colours_are_those_of_cielab_and_highlights_are_left_out():
    mask = disc(SIDE, (256, 256), 90)
    image = picture(mask)
    image[250:254, 250:254] = 255
    values = measure(image, mask, WHOLE)
    assert values is not None
    inside, around = (rgb2lab(np.array(colour, np.float64)[None, None] / 255)[0, 0] for colour in (STOOL, MUCOSA))
    measured = [values[f"{name}_offset"] for name in ("lightness", "a", "b")]
    np.testing.assert_allclose(measured, inside - around, atol=0.25)  # OpenCV's CIELAB is an approximation
    assert values["lightness_sd"] == pytest.approx(0, abs=0.1)
    assert values["highlights"] == pytest.approx(1e4 / np.count_nonzero(mask), rel=0.01)


@pytest.mark.parametrize("sigma", [1.2, 2.0])
def test_the_rim_of_a_gaussian_edge_is_as_wide_as_its_quantiles_are_apart(sigma: float):
    mask = disc(SIDE, (256, 256), 90)
    values = measure(picture(mask, blur=sigma, colour=(60, 20, 10)), mask, WHOLE)
    assert values is not None
    assert values["rim_width"] == pytest.approx(2 * 1.2816 * sigma, rel=0.12)


def test_noise_grows_with_the_noise_of_the_picture():
    mask = disc(SIDE, (256, 256), 90)
    noises = []
    for sigma in (2.0, 6.0):
        values = measure(picture(mask, noise=sigma), mask, WHOLE)
        assert values is not None
        noises.append(values["noise"])
    lightness = rgb2lab(picture(mask, noise=6.0) / 255.0)[..., 0][disc(SIDE, (256, 256), 80)]
    assert values["noise_ratio"] == pytest.approx(1, abs=0.1)
    assert values["gradient_ratio"] == pytest.approx(1, abs=0.1)
    assert noises[1] == pytest.approx(3 * noises[0], rel=0.15)
    # A Gaussian of 1.5 pixels leaves 1 - 2·0.07 + 0.035 of the variance of white noise.
    assert noises[1] == pytest.approx(lightness.std() * math.sqrt(1 - 2 * 0.0707 + 0.0354), rel=0.05)


@pytest.mark.parametrize(("hour", "middle"), [(12, (0, 256)), (3, (256, 511)), (4.5, (437, 437)), (9, (256, 0))])
def test_entry_is_read_on_the_clock(hour: float, middle: tuple[int, int]):
    field = disc(SIDE, (256, 256), 256)
    mask = disc(SIDE, middle, 60) & field
    values = measure(picture(mask), mask, field)
    assert values is not None
    assert (values["entry"] - hour + 6) % 12 - 6 == pytest.approx(0, abs=0.1)


def test_an_artefact_off_the_rim_has_no_entry():
    mask = disc(SIDE, (256, 256), 60)
    values = measure(picture(mask), mask, WHOLE)
    assert values is not None
    assert math.isnan(values["entry"])


def test_pieces_their_shares_and_their_solidity():
    mask = disc(SIDE, (150, 150), 60) | disc(SIDE, (400, 400), 30)
    mask[10:14, 500:504] = True  # too small for a piece
    values = measure(picture(mask), mask, WHOLE)
    assert values is not None
    assert values["pieces"] == 2
    assert values["largest"] == pytest.approx(0.8, abs=0.01)
    assert values["solidity"] == pytest.approx(1, abs=0.03)
    assert values["area"] == pytest.approx(np.pi * (60**2 + 30**2) / SIDE**2, rel=0.01)


def test_an_artefact_without_tissue_around_it_is_not_measured():
    assert measure(picture(WHOLE), WHOLE, WHOLE) is None
    assert measure(picture(~WHOLE), ~WHOLE, WHOLE) is None


def test_a_stretched_picture_gets_its_own_shape_back():
    square = np.zeros((SIDE, SIDE, 3), np.uint8)
    image, (mask,) = scaled(square, WHOLE, shape=(300, 400))
    assert image.shape == (384, SIDE, 3)
    assert mask.shape == (384, SIDE)
    small = cv2.resize(square, (64, 32))
    assert scaled(small)[0].shape == (SIDE // 2, SIDE, 3)
