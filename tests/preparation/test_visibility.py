"""Visibility of lesions: published formulas on plain colours, and its promises on any seed."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.core.cases import Image, PreparedSeed, Seed, SeedRef
from medtest.preparation.prepare import prepare
from medtest.preparation.visibility import (
    ABSOLUTE_FLOOR,
    RELATIVE_FLOOR,
    keeps_lesion_visible,
    lesion_diameter,
    source_visibility,
    visibility,
)
from medtest.testing import synthetic_seed


def discs(inside: int, outside: int, centres: tuple[tuple[int, int], ...] = ((100, 100),)) -> PreparedSeed:
    """A seed with grey discs of radius 40 on another grey."""
    mask = np.zeros((240, 320), np.uint8)
    for row, column in centres:
        cv2.circle(mask, (column, row), 40, 1, -1)
    image = np.where(mask[:, :, None] == 1, inside, outside).repeat(3, axis=2).astype(np.uint8)
    ref = SeedRef(dataset="discs", seed_id="0")
    return prepare(Seed(ref=ref, image=image, expected=mask == 1), size=None)


def lightness(grey: int) -> float:
    """CIE L* of an sRGB grey (IEC 61966-2-1, CIE 15)."""
    share = grey / 255
    linear = share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
    return 116 * np.cbrt(linear) - 16 if linear > (6 / 29) ** 3 else linear * (29 / 3) ** 3


def grey_difference(one: int, other: int) -> float:
    """CIEDE2000 of two greys, where only lightness differs (Sharma, Wu, Dalal 2005, equations 15 and 22)."""
    low, high = lightness(one), lightness(other)
    middle = ((low + high) / 2 - 50) ** 2
    return abs(high - low) / (1 + 0.015 * middle / np.sqrt(20 + middle))


@pytest.mark.parametrize(("inside", "outside"), [(120, 100), (100, 120), (60, 200), (31, 30)])
def test_it_is_the_colour_difference_across_the_outline(inside: int, outside: int) -> None:
    assert source_visibility(discs(inside, outside)) == pytest.approx(grey_difference(inside, outside), abs=2e-3)


def test_noise_divides_it() -> None:
    plain = discs(140, 100)
    rng = np.random.default_rng(1)
    noisy = replace(
        plain, image=np.clip(plain.image + rng.normal(0, 12, plain.image.shape), 0, 255).astype(np.uint8), _memo={}
    )
    noise_free, with_noise = source_visibility(plain), source_visibility(noisy)
    assert noise_free is not None
    assert with_noise is not None
    assert with_noise < noise_free / 4


def test_the_least_visible_lesion_counts() -> None:
    seed = discs(140, 100, ((100, 80), (100, 220)))
    image = seed.image.copy()
    image[:, 160:][seed.mask[:, 160:]] = 104
    assert visibility(seed, image) == pytest.approx(grey_difference(104, 100), abs=2e-3)
    assert not keeps_lesion_visible(seed, image)


def test_diameter_is_that_of_the_smallest_lesion() -> None:
    assert lesion_diameter(discs(140, 100)) == pytest.approx(80, abs=1.5)


@pytest.mark.parametrize(
    "seed", [synthetic_seed(0, labelled=False), replace(discs(9, 8), mask=np.zeros((240, 320), bool))]
)
def test_without_lesion_there_is_none(seed: PreparedSeed) -> None:
    seed = replace(seed, _memo={})
    assert source_visibility(seed) is None
    assert visibility(seed, seed.image) is None
    assert keeps_lesion_visible(seed, np.zeros_like(seed.image))


def test_a_lesion_that_fills_the_field_has_none() -> None:
    seed = discs(140, 100)
    assert source_visibility(replace(seed, mask=np.ones((240, 320), bool), _memo={})) is None


def flattened(image: Image, factor: float) -> Image:
    """The image with its distance from the mean colour multiplied."""
    mean = image.reshape(-1, 3).mean(axis=0)
    return np.rint(mean + factor * (image - mean)).astype(np.uint8)


@settings(max_examples=10)
@given(number=st.integers(0, 1000))
def test_flattened_contrast_lowers_it_by_four_fifths(number: int) -> None:
    seed = synthetic_seed(number, height=160, width=200)
    before, after = source_visibility(seed), visibility(seed, flattened(seed.image, 0.05))
    assert before is not None
    assert after is not None
    assert after <= 0.2 * before + 0.2  # 0.2: rounding to grey levels


@settings(max_examples=10)
@given(number=st.integers(0, 1000), sigma=st.floats(0.5, 12))
def test_blur_never_raises_it(number: int, sigma: float) -> None:
    seed = synthetic_seed(number, height=160, width=200)
    before, after = source_visibility(seed), visibility(seed, cv2.GaussianBlur(seed.image, (0, 0), sigma))
    assert before is not None
    assert after is not None
    assert after <= before


def test_floors_are_relative_and_absolute() -> None:
    strong, faint = discs(180, 100), discs(102, 100)
    before = source_visibility(strong)
    assert before is not None
    assert keeps_lesion_visible(strong, flattened_step(strong, (RELATIVE_FLOOR + 0.05)))
    assert not keeps_lesion_visible(strong, flattened_step(strong, (RELATIVE_FLOOR - 0.05)))
    weak = source_visibility(faint)
    assert weak is not None
    assert weak < ABSOLUTE_FLOOR
    assert keeps_lesion_visible(faint, faint.image)


def flattened_step(seed: PreparedSeed, share: float) -> Image:
    """The discs' grey at which the colour difference is a share of the source's."""
    outside, inside = int(seed.image[0, 0, 0]), int(seed.image[100, 100, 0])
    whole = grey_difference(inside, outside)
    grey = min(range(outside, inside + 1), key=lambda value: abs(grey_difference(value, outside) - share * whole))
    return np.where(seed.mask[:, :, None], grey, outside).repeat(3, axis=2).astype(np.uint8)
