"""Equation 2: kernels against the definition, noise against its moments, the frame against black."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from scipy import ndimage, stats

from medtest.core.files.paths import conf_folder
from medtest.relations.clinical.motion import Blur, add_noise, frame_filled, nearest_odd, noise_table
from medtest.testing import synthetic_seed


def blur(**changes: object) -> Blur:
    content = yaml.safe_load((conf_folder() / "relations" / "blur.yaml").read_text(encoding="utf-8"))
    defaults = {key: value for key, value in content.items() if key not in ("class", "summary")}
    return Blur(Blur.Settings(**{**defaults, **changes}))


def test_nearest_odd_is_the_nearest_odd_of_three_or_more() -> None:
    odds = np.arange(3, 31, 2)
    for value in np.linspace(0.01, 25.0, 1733):
        distance = np.abs(odds - value)
        assert abs(nearest_odd(float(value)) - value) == pytest.approx(distance.min())
    assert [nearest_odd(x) for x in (0.1, 2.9, 3.99, 4.01, 5.0, 7.5)] == [3, 3, 3, 5, 5, 7]


def test_two_fifths_of_the_drawing_range_hold_no_odd_integer_from_three_on() -> None:
    """The claim behind the rule, over sigma in (0, 15]."""
    sigma = np.linspace(15 / 20000, 15, 20000)
    empty = [not any(s / 3 <= odd <= s / 2 for odd in (1, 3, 5, 7)) for s in sigma]
    assert np.mean(empty) == pytest.approx(0.4, abs=0.01)


def test_published_draws_cover_the_reports_ranges() -> None:
    relation = blur(mode="published")
    seed = synthetic_seed(0)
    rng = np.random.default_rng(2)
    drawn = [relation.sample(seed, 0, rng) for _ in range(1500)]
    sigma = np.array([params["sigma"] for params in drawn])
    noise = np.array([params["noise"] for params in drawn])
    assert sigma.min() > 0.0
    assert sigma.max() <= 15.0
    assert stats.kstest(sigma, stats.uniform(0, 15).cdf).pvalue > 0.001
    assert stats.kstest(noise, stats.uniform(2, 8).cdf).pvalue > 0.001
    assert all(params["scale"] == params["sigma"] for params in drawn)
    sides = {(params["kernel_width"], params["kernel_height"]) for params in drawn}
    assert {side for pair in sides for side in pair} == {3, 5, 7}
    assert any(width != height for width, height in sides)
    for params in drawn:
        for side in (params["kernel_width"], params["kernel_height"]):
            low, high = params["sigma"] / 3, params["sigma"] / 2
            assert side == 3 or low - 1.0 <= side <= high + 1.0
    assert relation.published_status == "report"


@pytest.mark.parametrize("std", [1.0, 2.0, 3.7, 5.0, 10.0, 40.0])
def test_the_noise_table_has_the_moments_of_the_normal(std: float) -> None:
    values = noise_table(std).astype(float) - 128.0
    assert values.shape == (256,)
    assert values.mean() == pytest.approx(0.0, abs=0.01)
    assert values.std() == pytest.approx(std, rel=0.02)
    assert stats.skew(values) == pytest.approx(0.0, abs=0.01)
    if std >= 3.0:
        assert stats.kurtosis(values) == pytest.approx(0.0, abs=0.25)


def test_noise_is_white_gaussian_and_new_for_each_seed() -> None:
    image = np.full((256, 256, 3), 128, np.uint8)
    noise = add_noise(image, std=6.0, noise_seed=3).astype(float) - 128.0
    assert noise.mean() == pytest.approx(0.0, abs=0.06)
    assert noise.std() == pytest.approx(6.0, rel=0.02)
    for shifted in (noise[:, 1:] * noise[:, :-1], noise[1:] * noise[:-1], noise[..., 1:] * noise[..., :-1]):
        assert abs(shifted.mean()) / 36.0 < 0.02
    other = add_noise(image, std=6.0, noise_seed=4).astype(float) - 128.0
    assert abs(np.mean(noise * other)) / 36.0 < 0.02
    assert np.array_equal(add_noise(image, std=6.0, noise_seed=3), noise + 128.0)
    within = np.mean(np.abs(noise) <= 6.5)
    assert within == pytest.approx(2 * stats.norm.cdf(6.5 / 6.0) - 1, abs=0.01)


def test_noise_is_clipped_and_not_wrapped() -> None:
    for level in (0, 255):
        image = np.full((64, 64, 3), level, np.uint8)
        assert np.abs(add_noise(image, std=10.0, noise_seed=1).astype(int) - level).max() <= 29


def test_blur_is_the_truncated_gaussian_of_equation_2() -> None:
    seed = synthetic_seed(0, framed=False)
    params = {"sigma": 9.0, "kernel_width": 5, "kernel_height": 3, "noise": 2.0, "noise_seed": 1, "scale": 9.0}
    blurred = blur().apply(seed, params).image.astype(float)
    clean = seed.image.astype(float)
    for axis, side in ((1, 5), (0, 3)):
        offsets = np.arange(side) - side // 2
        kernel = np.exp(-(offsets**2) / (2 * 81.0))
        clean = ndimage.correlate1d(clean, kernel / kernel.sum(), axis=axis, mode="nearest")
    residue = blurred - clean
    inside = (clean > 12) & (clean < 243)
    assert residue[inside].mean() == pytest.approx(0.0, abs=0.1)
    assert residue[inside].std() == pytest.approx(2.0, rel=0.05)


def test_the_frame_is_not_dragged_into_the_field() -> None:
    seed = synthetic_seed(0)
    flat = seed.image.copy()
    flat[~seed.frame] = (180, 110, 90)
    flat.setflags(write=False)
    object.__setattr__(seed, "image", flat)
    params = {"sigma": 15.0, "kernel_width": 7, "kernel_height": 7, "noise": 2.0, "noise_seed": 1, "scale": 15.0}
    blurred = blur().apply(seed, params).image
    assert np.array_equal(blurred[seed.frame], flat[seed.frame])
    rim = ndimage.binary_dilation(seed.frame, iterations=3) & ~seed.frame
    assert np.abs(blurred[rim].mean(axis=0) - (180, 110, 90)).max() < 0.5
    filled = frame_filled(seed)
    assert np.array_equal(filled[~seed.frame], flat[~seed.frame])


def test_the_reports_range_of_sigma_is_the_limit() -> None:
    with pytest.raises(ValueError, match="less than or equal to 15"):
        blur(levels={1: {"sigma": 15.5, "noise": 2.0}}, severities=[1])
    with pytest.raises(ValueError, match="noise_low is above noise_high"):
        blur(published={"sigma": 15.0, "noise_low": 5.0, "noise_high": 4.0})
