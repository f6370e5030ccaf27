"""Resizing of tensors equals Pillow and OpenCV; logits equal those of independently computed probabilities."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow
from scipy.special import expit, logit, logsumexp, softmax

from medtest.core.tasks.border import resize_probability
from medtest.systems.adapters.libraries.lesion import at_half as probabilities_at_half
from medtest.systems.adapters.libraries.lesion import lesion_logits, lesion_map
from medtest.systems.pytorch.pixels import (
    at_half,
    grey,
    logits_of,
    mean_odds,
    merged,
    middle,
    resized,
    resized_map,
    shorter_side,
    ten_crops,
)

SIZES = [((96, 96), (42, 42)), ((96, 96), (48, 48)), ((96, 80), (66, 50)), ((60, 72), (96, 96)), ((60, 72), (70, 40))]
PILLOW = {
    "nearest": Pillow.Resampling.NEAREST,
    "bilinear": Pillow.Resampling.BILINEAR,
    "bicubic": Pillow.Resampling.BICUBIC,
    "lanczos": Pillow.Resampling.LANCZOS,
}


def _noise(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8)


def _pixels(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float().div(255)


def _levels(pixels: torch.Tensor) -> np.ndarray:
    values = pixels[0].permute(1, 2, 0).numpy() * 255
    assert np.abs(values - np.rint(values)).max() < 1e-3, "whole levels"
    return np.rint(values)


@pytest.mark.parametrize("method", [*PILLOW, "linear", "area"])
@pytest.mark.parametrize(("before", "after"), SIZES)
def test_resizing_matches_pillow_and_opencv(method: Any, before: tuple[int, int], after: tuple[int, int]) -> None:
    image = _noise(*before)
    if method in PILLOW:
        expected = np.asarray(Pillow.fromarray(image).resize((after[1], after[0]), PILLOW[method]))
    else:
        shrinks = before[0] >= after[0] and before[1] >= after[1]
        flag = cv2.INTER_AREA if method == "area" and shrinks else cv2.INTER_LINEAR
        expected = cv2.resize(image, (after[1], after[0]), interpolation=flag)
    apart = np.abs(_levels(resized(_pixels(image), after, method)) - expected)
    assert apart.max() <= 1 and (apart > 0).mean() < 0.04, "a level here and there"


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "lanczos", "linear", "area"])
def test_resizing_passes_the_gradient_of_the_filter(method: Any) -> None:
    """The mean over a picture that keeps its mean: every pixel's share of it adds up to one."""
    pixels = _pixels(_noise(60, 72)).double().mul(0.5).add(0.25).requires_grad_()
    resized_pixels = resized(pixels, (42, 50), method)
    (gradient,) = torch.autograd.grad(resized_pixels.sum(), pixels)
    assert float(gradient.sum()) == pytest.approx(resized_pixels.numel(), rel=1e-6)
    inner = gradient[..., 10:-10, 10:-10]
    assert inner.abs().sum() > 0


def test_crops_match_images() -> None:
    from medtest.systems.classification import crops

    image = _noise(75, 91)
    pixels = _pixels(image)
    assert np.array_equal(_levels(middle(pixels, 40)), crops.middle(image, 40))
    assert np.abs(_levels(shorter_side(pixels, 50)) - crops.shorter_side(image, 50)).max() <= 1
    both = ten_crops(torch.cat([pixels, pixels.flip(2)]), 64)
    expected = [*crops.ten_crops(image, 64), *crops.ten_crops(image[::-1], 64)]
    assert all(
        np.array_equal(_levels(crop_pixels[None]), crop) for crop_pixels, crop in zip(both, expected, strict=True)
    )
    assert (
        np.abs(_levels(grey(pixels).mul(255).round().div(255))[..., 0] - cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)).max()
        <= 1
    )


@given(st.lists(st.floats(-60, 60), min_size=4, max_size=4), st.floats(0.05, 0.95))
@settings(max_examples=60, deadline=None)
def test_a_moved_threshold_moves_logits_as_probabilities(values: list[float], threshold: float) -> None:
    logits = torch.tensor(values, dtype=torch.float64)
    moved = at_half(logits, threshold)
    assert torch.isfinite(moved).all()
    expected = probabilities_at_half(expit(values), threshold)
    assert np.allclose(expit(moved.numpy()), expected, atol=1e-6)


def test_a_resized_map_is_what_the_border_makes_of_it() -> None:
    values = np.random.default_rng(2).normal(0, 6, (2, 20, 24)).astype(np.float32)
    for size in ((40, 60), (10, 12), (20, 24), (30, 12)):
        maps = resized_map(torch.from_numpy(values), size)
        for map_, given_map in zip(maps, values, strict=True):
            expected = resize_probability(expit(given_map), size)
            assert np.abs(expit(map_.double().numpy()) - expected).max() < 1e-5
    far = resized_map(torch.full((1, 4, 4), 60.0), (8, 8))
    assert torch.allclose(far, torch.full((1, 8, 8), 60.0), rtol=1e-4), "saturated, and still known"


@pytest.mark.parametrize("activation", ["softmax", "winner", "sigmoid", "none"])
def test_logits_of_a_lesion_match_its_map(activation: Any) -> None:
    scores = torch.randn(2, 4, 5, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    scores = scores.sigmoid() if activation == "none" else scores * 5
    logits, expected = lesion_logits(scores, [1, 3], activation), lesion_map(scores, [1, 3], activation)
    assert torch.allclose(logits.sigmoid(), expected, atol=1e-9)


@given(st.lists(st.floats(-30, 30), min_size=5, max_size=5), st.booleans())
@settings(max_examples=60, deadline=None)
def test_merged_logits_give_merged_probabilities(values: list[float], multi: bool) -> None:
    logits = merged(torch.tensor([values], dtype=torch.float64), [[0, 3], [1], [2, 4]], multi=multi)[0].numpy()
    if multi:
        assert np.allclose(
            expit(logits),
            [max(expit(values[0]), expit(values[3])), expit(values[1]), max(expit(values[2]), expit(values[4]))],
        )
    else:
        shares = softmax(values)
        assert np.allclose(logits[0], logsumexp([values[0], values[3]]))
        assert np.allclose(softmax(logits), [shares[0] + shares[3], shares[1], shares[2] + shares[4]], atol=1e-12)


def test_logits_recovered_from_probabilities_are_finite() -> None:
    values = torch.tensor([[0.0, 1e-30, 0.25, 0.999, 1.0]])
    several = logits_of(values, multi=True)
    assert torch.isfinite(several).all() and (several.diff() > 0).all()
    assert np.allclose(several[0, 2:4].numpy(), logit([0.25, 0.999]), rtol=1e-4)
    single = logits_of(torch.tensor([[0.0, 0.2, 0.8]]), multi=False)
    assert torch.isfinite(single).all() and np.allclose(softmax(single[0].numpy()), [0, 0.2, 0.8], atol=1e-7)


def test_the_mean_of_probabilities_has_a_logit_beyond_saturation() -> None:
    values = np.random.default_rng(3).normal(0, 3, (2, 10, 4))
    expected = logit(expit(values).mean(axis=1))
    assert np.allclose(mean_odds(torch.from_numpy(values)).numpy(), expected, atol=1e-9)
    far = mean_odds(torch.full((1, 10, 1), -300.0, requires_grad=True))
    assert float(far) == pytest.approx(-300, rel=1e-6)
