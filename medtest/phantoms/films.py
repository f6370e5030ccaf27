"""Film of a still scene with a few moving things: texture, shading, sensor noise and ground truth.

The scene is a smooth grey landscape with fine texture. Things are ellipses and rectangles with their own grey level and
texture that enter from outside, cross the scene on straight lines and leave. The light varies by a few grey levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.portable import each

REVISION = 1
"""Increased whenever the same generator gives other bytes."""

_LEAST_CONTRAST = 35.0
"""Least grey levels between a thing and the scene's mean, so that it is visible."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Film:
    """Film and its ground truth.

    Attributes:
        frames: uint8 T×H×W.
        moving: bool T×H×W, True on moving things.
    """

    frames: NDArray[np.uint8]
    moving: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class _Thing:
    """Moving thing: half axes in pixels, grey level, position at its first frame, pixels per frame, first frame."""

    half: tuple[float, float]
    round: bool
    grey: float
    start: tuple[float, float]
    speed: tuple[float, float]
    first: int


def make_film(
    rng: np.random.Generator,
    *,
    frames: int = 60,
    size: tuple[int, int] = (120, 160),
    things: int = 3,
    empty: int = 15,
    noise: float = 2.0,
) -> Film:
    """Generate one film.

    Args:
        rng: Random generator.
        frames: Number of frames.
        size: Height and width in pixels.
        things: Number of moving things.
        empty: Frames before the first of them enters.
        noise: Standard deviation of the sensor's noise in grey levels.
    """
    scene = _scene(rng, size)
    drawn = [_draw_thing(rng, size, float(scene.mean()), frames, empty) for _ in range(things)]
    rows, columns = np.mgrid[: size[0], : size[1]].astype(np.float32)
    texture = _smooth(rng, size, 2.0) * 8.0
    swell = 3.0 * each(math.sin, np.arange(frames) * 2 * np.pi / max(frames, 1) + rng.uniform(0, 2 * np.pi))
    shown = np.empty((frames, *size), np.uint8)
    moving = np.zeros((frames, *size), np.bool_)
    for number in range(frames):
        frame = scene.copy()
        for item in drawn:
            inside = _inside(item, number, rows, columns)
            frame[inside] = item.grey + texture[inside]
            moving[number] |= inside
        frame += np.float32(swell[number])
        frame += rng.standard_normal(size, dtype=np.float32) * np.float32(noise)
        shown[number] = np.clip(np.rint(frame), 0, 255)
    return Film(frames=shown, moving=moving)


def _scene(rng: np.random.Generator, size: tuple[int, int]) -> NDArray[np.float32]:
    wide = _smooth(rng, size, min(size) / 5) * 28.0
    fine = _smooth(rng, size, 1.2) * 7.0
    return np.clip(np.float32(rng.uniform(95, 150)) + wide + fine, 20, 235).astype(np.float32)


def _smooth(rng: np.random.Generator, size: tuple[int, int], sigma: float) -> NDArray[np.float32]:
    """Return smooth noise with mean 0 and standard deviation 1."""
    field = cv2.GaussianBlur(rng.standard_normal(size, dtype=np.float32), (0, 0), sigma)
    return np.asarray((field - field.mean()) / max(float(field.std()), 1e-6), np.float32)


def _draw_thing(rng: np.random.Generator, size: tuple[int, int], mean: float, frames: int, empty: int) -> _Thing:
    height, width = size
    half = (float(rng.uniform(0.06, 0.13)) * height, float(rng.uniform(0.06, 0.13)) * height)
    away = rng.uniform(_LEAST_CONTRAST, 2 * _LEAST_CONTRAST)
    grey = mean + away if mean < 127 else mean - away
    first = empty + int(rng.integers(0, max(1, (frames - empty) // 4)))
    crossing = max(8, int(rng.uniform(0.5, 0.9) * (frames - first)))
    from_left = bool(rng.integers(2))
    begin = -half[1] if from_left else width + half[1]
    speed = (width + 2 * half[1]) / crossing * (1 if from_left else -1)
    row = float(rng.uniform(0.15, 0.85)) * height
    drift = (float(rng.uniform(0.15, 0.85)) * height - row) / crossing
    return _Thing(
        half=half, round=bool(rng.integers(2)), grey=grey, start=(row, begin), speed=(drift, speed), first=first
    )


def _inside(item: _Thing, number: int, rows: NDArray[np.float32], columns: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return the mask of a thing on a frame."""
    if number < item.first:
        return np.zeros(rows.shape, np.bool_)
    since = number - item.first
    across = (columns - np.float32(item.start[1] + since * item.speed[1])) / np.float32(item.half[1])
    down = (rows - np.float32(item.start[0] + since * item.speed[0])) / np.float32(item.half[0])
    inside = across**2 + down**2 <= 1 if item.round else np.maximum(np.abs(across), np.abs(down)) <= 1
    return np.asarray(inside, np.bool_)
