"""Filters that restore images: properties of their papers, on images whose answer is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from medtest.systems.restoration import grid
from medtest.systems.restoration.coherence_diffusion import coherence_diffusion
from medtest.systems.restoration.libraries import bilateral, median, non_local_means, total_variation
from medtest.systems.restoration.local_histogram import smoothed_median, smoothed_quantile, smoothed_shock
from medtest.systems.restoration.shock import coherence_shock, complex_shock, enhanced_shock, original_shock

Filter = Callable[..., NDArray[Any]]

SHOCKS: dict[str, Filter] = {
    "original_shock": original_shock,
    "original_shock_gradient": lambda u, **k: original_shock(u, detector="gradient", **k),
    "enhanced_shock": enhanced_shock,
    "complex_shock": complex_shock,
    "coherence_shock": coherence_shock,
}
ITERATED: dict[str, Filter] = {**SHOCKS, "coherence_diffusion": coherence_diffusion, "smoothed_shock": smoothed_shock}
OTHERS: dict[str, Filter] = {
    "smoothed_median": smoothed_median,
    "median": median,
    "bilateral": bilateral,
    "non_local_means": non_local_means,
    "total_variation": total_variation,
}
ALL = {**ITERATED, **OTHERS}
SINGLE = ("median", "bilateral")
"""OpenCV computes these in float32 only."""
LIBRARIES = {"non_local_means", "total_variation"}
"""scikit-image takes differences to one side and leaves borders out, so that a turned image gives another result."""


def every(filters: dict[str, Filter]) -> Any:
    return pytest.mark.parametrize("method", filters.values(), ids=filters.keys())


def blobs(side: int = 48, channels: int = 0, *, seed: int = 0, noise: float = 8.0) -> NDArray[np.float64]:
    """Return a smooth random picture with noise, so that nothing is exactly flat."""
    rng = np.random.default_rng(seed)
    shape = (side, side, channels) if channels else (side, side)
    smooth = cv2.GaussianBlur(rng.normal(0, 1, shape), (0, 0), 4)
    return np.asarray(128 + 60 * smooth / smooth.std() + rng.normal(0, noise, shape))


def ramp_edge(side: int = 40, width: float = 3.0) -> NDArray[np.float64]:
    """Return a blurred vertical step from 60 to 190."""
    x = np.arange(side) - (side - 1) / 2
    profile = 60 + 130 / (1 + np.exp(-x / width))
    return np.repeat(profile[None, :], side, axis=0)


@every(ALL)
@pytest.mark.parametrize("channels", [0, 3])
def test_constant_images_are_fixed(method: Filter, channels: int) -> None:
    for level in (0.0, 37.5, 255.0):
        flat = np.full((24, 31, 3) if channels else (24, 31), level, np.float32)
        assert np.abs(method(flat) - flat).max() < 1e-3


@every(ALL)
def test_shape_type_and_input_are_kept(method: Filter) -> None:
    for channels in (0, 3):
        image = blobs(33, channels).astype(np.float32)
        before = image.copy()
        filtered = method(image)
        assert filtered.shape == image.shape
        assert filtered.dtype == np.float32
        assert np.array_equal(image, before)


@pytest.mark.parametrize("method", [original_shock, enhanced_shock, coherence_shock], ids=lambda f: f.__name__)
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), step=st.sampled_from([0.05, 0.1, 0.25]), channels=st.sampled_from([0, 3]))
def test_min_max_principle(method: Filter, seed: int, step: float, channels: int) -> None:
    image = np.random.default_rng(seed).uniform(0, 255, (17, 19, 3) if channels else (17, 19))
    filtered = method(image, iterations=25, step=step)
    assert filtered.min() >= image.min() - 1e-9
    assert filtered.max() <= image.max() + 1e-9


def test_original_shock_holds_its_principle_up_to_the_largest_step() -> None:
    image = np.random.default_rng(3).uniform(0, 255, (40, 40))
    filtered = original_shock(image, iterations=200, step=0.5)
    assert image.min() <= filtered.min()
    assert filtered.max() <= image.max()


def test_original_shock_does_not_add_variation() -> None:
    line = np.random.default_rng(5).uniform(0, 255, 64)
    image = np.repeat(line[None, :], 8, axis=0)
    before = np.abs(np.diff(line)).sum()
    for iterations in (1, 5, 50):
        row = original_shock(image, iterations=iterations, step=0.5)[3]
        assert np.abs(np.diff(row)).sum() <= before + 1e-9


@every(
    {
        **{name: partial(method, iterations=30) for name, method in SHOCKS.items()},
        "complex_shock": lambda u: complex_shock(u, iterations=60),
        "smoothed_shock": lambda u: smoothed_shock(u, iterations=5, sigma=1.0, share=0.9, tonal=6),
    }
)
def test_a_blurred_step_is_sharpened(method: Filter) -> None:
    image = ramp_edge()
    filtered = method(image)
    middle = image.shape[0] // 2
    before, after = np.abs(np.diff(image[middle])).max(), np.abs(np.diff(filtered[middle])).max()
    assert after > 1.5 * before
    # The step stays where it was: the levels on both sides are still there, and so is the crossing.
    assert abs(filtered[middle, 0] - image[middle, 0]) < 2
    assert (filtered[middle] > 125).sum() == (image[middle] > 125).sum()


@every({name: ALL[name] for name in ALL if name not in {*SINGLE, *LIBRARIES}})
@pytest.mark.parametrize("channels", [0, 3])
def test_rotation_by_a_quarter_turn_commutes(method: Filter, channels: int) -> None:
    image = blobs(40, channels, seed=7)
    turned = method(np.ascontiguousarray(np.rot90(image)))
    assert np.abs(turned - np.rot90(method(image))).max() < 1e-4


@every({name: ALL[name] for name in SINGLE})
def test_rotation_commutes_for_filters_in_single_precision(method: Filter) -> None:
    image = blobs(40, seed=7).astype(np.float32)
    turned = method(np.ascontiguousarray(np.rot90(image)))
    assert np.abs(turned - np.rot90(method(image))).max() < 1e-2


@every(ITERATED)
def test_reflection_commutes(method: Filter) -> None:
    image = blobs(40, seed=9)
    assert np.abs(method(np.ascontiguousarray(image[:, ::-1])) - method(image)[:, ::-1]).max() < 1e-4


def lines(side: int = 96, period: float = 9.0, angle: float = 0.5) -> NDArray[np.float64]:
    """Return oblique stripes."""
    y, x = np.mgrid[:side, :side]
    return np.asarray(128 + 70 * np.sin(2 * np.pi * (x * np.cos(angle) + y * np.sin(angle)) / period))


@pytest.mark.parametrize("method", [coherence_shock, coherence_diffusion], ids=lambda f: f.__name__)
def test_coherence_enhances_a_pattern_of_lines(method: Filter) -> None:
    clean = lines()
    noisy = clean + np.random.default_rng(1).normal(0, 35, clean.shape)
    inner = np.s_[8:-8, 8:-8]

    def likeness(image: NDArray[Any]) -> float:
        return float(np.corrcoef(image[inner].ravel(), clean[inner].ravel())[0, 1])

    def contrast(image: NDArray[Any]) -> float:
        """Slope of the image against the clean pattern: 1 where stripes have kept their height."""
        pattern = clean[inner] - clean[inner].mean()
        return float((image[inner] * pattern).sum() / (pattern**2).sum())

    filtered = method(noisy, iterations=40, step=0.2)
    assert likeness(filtered) > likeness(noisy) + 0.05
    assert contrast(filtered) > 0.9


def test_coherence_diffusion_closes_a_gap_that_isotropic_diffusion_blurs() -> None:
    image = np.full((48, 48), 200.0)
    image[22:26] = 40.0
    image[:, 22:26] = 200.0  # a gap of four pixels in a line four pixels wide
    options: dict[str, Any] = {"iterations": 200, "step": 0.2}
    closed = coherence_diffusion(image, sigma=0.7, rho=6.0, **options)
    blurred = cv2.GaussianBlur(image, (0, 0), float(np.sqrt(2 * 40.0)))
    assert closed[24, 24] < 120 < blurred[24, 24]
    assert closed[12].min() > 190 > blurred[12].min() - 200


def test_coherence_diffusion_keeps_the_mean() -> None:
    image = blobs(50, seed=4)
    assert coherence_diffusion(image, iterations=50, step=0.25).mean() == pytest.approx(image.mean(), abs=0.05)


@every(ITERATED)
def test_schemes_are_stable(method: Filter) -> None:
    image = np.random.default_rng(2).uniform(0, 255, (48, 48)).astype(np.float32)
    image[::7, ::5] = 255 * (np.arange(image[::7, ::5].size).reshape(image[::7, ::5].shape) % 2)
    filtered = method(image, iterations=400)
    assert np.isfinite(filtered).all()
    # The complex filter may pass the range a little: its diffusion is a wave as well.
    assert filtered.min() > image.min() - 30
    assert filtered.max() < image.max() + 30


@pytest.mark.parametrize("step", [0.25])
def test_diffusions_are_stable_at_their_largest_step(step: float) -> None:
    image = np.indices((32, 32)).sum(axis=0) % 2 * 255.0
    for method in (coherence_diffusion, enhanced_shock, complex_shock):
        filtered = method(image, iterations=300, step=step)
        assert np.isfinite(filtered).all()
        assert -30 < filtered.min() <= filtered.max() < 285


def test_a_weighted_median_is_the_limit_of_the_smoothed_median() -> None:
    """With a narrow tonal kernel the smoothed median is the Gaussian-weighted median, computed here by sorting."""
    rng = np.random.default_rng(11)
    image = rng.uniform(0, 255, (13, 13))
    sigma = 1.0
    offsets = np.arange(-3, 4)
    weight = np.exp(-0.5 * (offsets[:, None] ** 2 + offsets[None, :] ** 2) / sigma**2).ravel()
    window = image[3:10, 3:10].ravel()
    order = np.argsort(window)
    cumulated = np.cumsum(weight[order]) / weight.sum()
    place = int(np.searchsorted(cumulated, 0.5))
    neighbours = window[order][max(0, place - 1) : place + 2]
    median = smoothed_median(image, sigma=sigma, tonal=1.5)[6, 6]
    assert neighbours.min() - 4 <= median <= neighbours.max() + 4


def test_a_wide_tonal_kernel_gives_the_mean() -> None:
    image = blobs(40, seed=3, noise=20)
    blurred = smoothed_quantile(image, 0.5, sigma=2.0, tonal=400.0)
    assert np.abs(blurred - grid.blur(image, 2.0)).max() < 1.0


@settings(max_examples=10)
@given(share=st.floats(0.05, 0.95), seed=st.integers(0, 1000))
def test_quantiles_grow_with_their_share(share: float, seed: int) -> None:
    image = np.random.default_rng(seed).uniform(0, 255, (20, 20))
    low = smoothed_quantile(image, share * 0.9, sigma=1.5, tonal=8.0)
    high = smoothed_quantile(image, share, sigma=1.5, tonal=8.0)
    # The tonal kernel's own quantile is taken off both, which moves them by at most this.
    spread = 8.0 * np.sqrt(3) / np.pi * (np.log(share / (1 - share)) - np.log(share * 0.9 / (1 - share * 0.9)))
    assert (high - low).min() > -spread - 1e-6


def test_the_smoothed_median_takes_out_salt_and_pepper() -> None:
    image = np.full((60, 60), 120.0, np.float32)
    hit = np.random.default_rng(0).random(image.shape) < 0.08
    image[hit] = 255.0
    inner = np.s_[5:-5, 5:-5]  # the border repeats its outermost pixel, salt or not
    assert np.abs(smoothed_median(image, sigma=1.5, tonal=5.0) - 120)[inner].max() < 12
    assert np.abs(smoothed_shock(image, share=0.5) - 120)[inner].max() < 30


def test_noise_falls_with_every_smoothing_filter() -> None:
    """On a flat noisy image every smoothing filter lowers the spread; the plain shock filter sharpens noise too."""
    image = (128 + np.random.default_rng(8).normal(0, 20, (96, 96))).astype(np.float32)
    spread = {name: float(method(image).std()) for name, method in ALL.items()}
    plain = {"original_shock", "original_shock_gradient", "coherence_shock"}
    assert all(spread[name] < 18 for name in ALL.keys() - plain), spread
    assert spread["original_shock"] > 20


def test_slopes_of_a_plane() -> None:
    y, x = np.mgrid[:9, :9].astype(float)
    plane = 3 * x + 4 * y
    n = grid.around(plane)
    inner = np.s_[1:-1, 1:-1]
    assert np.allclose(grid.minmod_slope(plane, n)[inner], 5)
    for sign in (-1.0, 1.0):
        assert np.allclose(grid.upwind_slope(plane, n, np.full_like(plane, sign))[inner], 5)
    assert np.allclose(grid.laplacian(plane, n)[inner], 0)


def test_second_derivatives_of_a_quadratic_form() -> None:
    y, x = np.mgrid[-4:5, -4:5].astype(float)
    u = 1.5 * x * x + 0.5 * y * y + 2 * x * y
    xx, yy, xy = (plane[1:-1, 1:-1] for plane in grid.second(u, grid.around(u)))
    assert np.allclose(xx, 3)
    assert np.allclose(yy, 1)
    assert np.allclose(xy, 2)


def test_the_structure_tensor_finds_the_direction_of_stripes() -> None:
    for angle in (0.0, 0.4, 1.1, 2.0):
        difference, product = grid.structure_tensor([lines(angle=angle)], 0.7, 5.0)
        direction = 0.5 * np.arctan2(product[48, 48], difference[48, 48])
        assert abs(np.sin(direction - angle)) < 0.03


@every(ITERATED)
@pytest.mark.parametrize("channels", [0, 3])
def test_bands_change_nothing(method: Filter, channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    image = blobs(150, channels, seed=6)
    whole = method(image, iterations=3)
    monkeypatch.setattr(grid, "_BAND_BYTES", 1)  # the narrowest bands there can be
    assert np.abs(method(image, iterations=3) - whole).max() < 1e-9
