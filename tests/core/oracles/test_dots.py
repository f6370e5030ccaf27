"""The dot test: undeclared movements are found; blur, noise and pasted objects are none."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from medtest.core.cases import Effect, Image
from medtest.core.oracles.dots import dot_pattern, dot_shift
from medtest.core.oracles.warps import warp_effect

HEIGHT, WIDTH = 240, 300
PATTERN = dot_pattern(HEIGHT, WIDTH)
ROWS, COLUMNS = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)


def shifted(right: float, down: float) -> Image:
    return cv2.warpAffine(
        PATTERN, np.array([[1.0, 0, right], [0, 1, down]]), (WIDTH, HEIGHT), borderMode=cv2.BORDER_REFLECT
    )


def grid_distorted(limit: float, seed: int) -> tuple[Image, Any]:
    """Distort a grid of 5 × 5 cells, stretched by random factors from 1 − limit to 1 + limit."""
    rng = np.random.default_rng(seed)
    maps = []
    for size in (WIDTH, HEIGHT):
        steps = 1 + rng.uniform(-limit, limit, 5)
        ends = np.concatenate([[0.0], np.cumsum(steps)]) * (size - 1) / steps.sum()
        maps.append(np.interp(np.arange(size), np.linspace(0, size - 1, 6), ends))
    columns, rows = (axis.astype(np.float32) for axis in np.meshgrid(*maps))
    image = cv2.remap(PATTERN, columns, rows, cv2.INTER_LINEAR)
    return image, np.stack([columns - COLUMNS, rows - ROWS], axis=2)


@pytest.mark.parametrize(("right", "down"), [(3, 0), (0, -3), (2.2, 2.2), (-9, 4)])
def test_a_shift_is_found_and_measured(right: float, down: float) -> None:
    shift = dot_shift(PATTERN, shifted(right, down), Effect())
    assert shift.differs and shift.distance == pytest.approx(np.hypot(right, down), abs=0.3)
    matrix = [[1, 0, right], [0, 1, down]]
    assert not dot_shift(PATTERN, shifted(right, down), Effect(kind="move", data={"matrix": matrix})).differs
    assert dot_shift(PATTERN, PATTERN, Effect(kind="move", data={"matrix": matrix})).differs


@pytest.mark.parametrize("seed", range(5))
def test_a_grid_distortion_is_found_unless_it_is_declared(seed: int) -> None:
    image, field = grid_distorted(0.3, seed)
    assert dot_shift(PATTERN, image, Effect()).differs
    assert not dot_shift(PATTERN, image, warp_effect(field)).differs


@pytest.mark.parametrize("flip", [0, 1, -1])
def test_a_mirrored_picture_is_found(flip: int) -> None:
    assert dot_shift(PATTERN, cv2.flip(PATTERN, flip), Effect()).mirrored


def noisy(sigma: float) -> Image:
    noise = np.random.default_rng(0).normal(0.0, sigma, PATTERN.shape)
    return np.clip(PATTERN + noise, 0, 255).astype(np.uint8)


def pasted() -> Image:
    image = PATTERN.copy()
    cv2.rectangle(image, (40, 30), (190, 160), (200, 60, 40), cv2.FILLED)
    return image


@pytest.mark.parametrize(
    "image",
    [
        PATTERN,
        shifted(0.5, -0.5),
        cv2.GaussianBlur(PATTERN, (0, 0), 4.0),
        cv2.blur(PATTERN, (13, 1)),
        noisy(60.0),
        pasted(),
        np.clip(PATTERN.astype(int) // 3 + 90, 0, 255).astype(np.uint8),
        np.full_like(PATTERN, 90),
    ],
)
def test_images_without_movement_pass(image: Image) -> None:
    shift = dot_shift(PATTERN, image, Effect())
    assert not shift.differs
    assert shift.matches <= shift.patches


def test_the_black_frame_is_not_searched() -> None:
    frame = np.ones((HEIGHT, WIDTH), np.bool_)
    frame[60:180, 60:240] = False
    inside = dot_shift(PATTERN, shifted(3, 0), Effect(), frame=frame)
    assert 0 < inside.patches < dot_shift(PATTERN, PATTERN, Effect()).patches
    assert dot_shift(PATTERN, PATTERN, Effect(), frame=np.ones_like(frame)).distance is None
