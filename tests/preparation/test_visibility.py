"""Visibility of lesions: published formulas on plain colours, and its promises on any seed."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.core.cases import Effect, Image, PreparedSeed, Seed, SeedRef
from medtest.preparation.prepare import prepare
from medtest.preparation.visibility import (
    ABSOLUTE_FLOOR,
    LESION_CLIPPED,
    RELATIVE_FLOOR,
    burns_lesion_out,
    keeps_lesion_visible,
    keeps_recoloured_lesion_visible,
    lesion_diameter,
    source_visibility,
    visibility,
)
from medtest.relations.clinical.lighting import exposure_matrix, mean_luma
from medtest.testing import synthetic_seed


def discs(inside: int, outside: int, centres: tuple[tuple[int, int], ...] = ((100, 100),)) -> PreparedSeed:
    """Return a seed with grey discs of radius 40 on another grey."""
    mask = np.zeros((240, 320), np.uint8)
    for row, column in centres:
        cv2.circle(mask, (column, row), 40, 1, -1)
    image = np.where(mask[:, :, None] == 1, inside, outside).repeat(3, axis=2).astype(np.uint8)
    ref = SeedRef(dataset="discs", seed_id="0")
    return prepare(Seed(ref=ref, image=image, expected=mask == 1), size=None)


def lightness(grey: int) -> float:
    """Return CIE L* of an sRGB grey (IEC 61966-2-1, CIE 15)."""
    share = grey / 255
    linear = share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
    return 116 * np.cbrt(linear) - 16 if linear > (6 / 29) ** 3 else linear * (29 / 3) ** 3


def grey_difference(first: int, second: int) -> float:
    """Return CIEDE2000 of two greys, which differ only in lightness (Sharma, Wu, Dalal 2005, equations 15 and 22)."""
    low, high = lightness(first), lightness(second)
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


@settings(max_examples=10)
@given(number=st.integers(0, 1000))
def test_a_twentieth_of_the_contrast_lowers_it_by_four_fifths(number: int) -> None:
    seed = synthetic_seed(number, height=160, width=200)
    matrix = exposure_matrix(brightness=1.0, contrast=0.05, saturation=1.0, mean_luma=mean_luma(seed))
    before, after = source_visibility(seed), visibility(seed, cv2.transform(seed.image, matrix))
    assert before is not None
    assert after is not None
    assert after <= 0.2 * before


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


def turned(seed: PreparedSeed, matrix: list[list[float]], *, background: int = 100) -> float | None:
    """Return the visibility in the seed's image, warped together with its mask."""
    image = cv2.warpAffine(
        seed.image,
        np.array(matrix),
        (seed.width, seed.height),
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=[background] * 3,
    )
    return visibility(seed, image, Effect(kind="move", data={"matrix": matrix}))


def test_it_moves_with_the_expected_mask() -> None:
    seed = discs(140, 100)
    before = source_visibility(seed)
    centre = cv2.getRotationMatrix2D((100, 100), 30, 1.3).tolist()
    for matrix in ([[1.0, 0.0, 60.0], [0.0, 1.0, 33.0]], centre):
        assert turned(seed, matrix) == pytest.approx(before, rel=0.15)
    assert visibility(seed, np.roll(seed.image, 60, axis=1)) == 0.0  # the mask did not move, the lesion did


def test_of_a_lesion_that_leaves_the_image_the_part_in_it_counts() -> None:
    seed = discs(140, 100)
    assert turned(seed, [[1.0, 0.0, -100.0], [0.0, 1.0, 0.0]]) == pytest.approx(source_visibility(seed), rel=0.1)
    assert turned(seed, [[1.0, 0.0, -150.0], [0.0, 1.0, 0.0]]) is None


def test_a_change_of_colours_is_judged_as_its_image_is() -> None:
    for number in range(6):
        seed = synthetic_seed(number, height=160, width=200)
        for gain in (1.0, 0.5, 0.05, 0.02):
            matrix = np.hstack([gain * np.eye(3), np.zeros((3, 1))])
            whole = keeps_lesion_visible(seed, cv2.transform(seed.image, matrix))
            assert keeps_recoloured_lesion_visible(seed, lambda colours, m=matrix: cv2.transform(colours, m)) == whole
            assert whole == (gain > 0.1), gain


def test_a_third_of_a_lesion_burnt_out_is_too_much() -> None:
    seed = discs(140, 100)
    image = seed.image.copy()
    image[:80][seed.mask[:80]] = 255  # clipped in the source
    image[80:90][seed.mask[80:90]] = 200
    seed = replace(seed, image=image, _memo={})
    assert seed.mask is not None
    share = seed.mask[80:90].sum() / seed.mask.sum()
    assert 0.1 < share < LESION_CLIPPED
    assert not burns_lesion_out(seed, lambda colours: cv2.add(colours, (60.0,) * 4))
    assert burns_lesion_out(seed, lambda colours: cv2.add(colours, (120.0,) * 4))
    assert not burns_lesion_out(seed, lambda colours: cv2.add(colours, (120.0, 120.0, 0.0, 0.0)))


def flattened_step(seed: PreparedSeed, share: float) -> Image:
    """Paint the discs in the grey whose colour difference is a share of the source's."""
    outside, inside = int(seed.image[0, 0, 0]), int(seed.image[100, 100, 0])
    whole = grey_difference(inside, outside)
    grey = min(range(outside, inside + 1), key=lambda value: abs(grey_difference(value, outside) - share * whole))
    return np.where(seed.mask[:, :, None], grey, outside).repeat(3, axis=2).astype(np.uint8)


def test_one_picture_after_another_keeps_its_own_value() -> None:
    seed = discs(140, 100)
    faint = np.where(seed.image == 140, 110, seed.image).astype(np.uint8)
    alone = visibility(discs(140, 100), faint)
    values = [visibility(seed, image) for image in (seed.image, faint, faint, seed.image)]
    assert values == [source_visibility(seed), alone, alone, source_visibility(seed)]
    assert values[0] != values[1]
