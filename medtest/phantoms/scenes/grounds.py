"""Backgrounds of scenes: sky and meadow, rooms, washes, patterns, and clutter of no class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.drawing import grain, noise, to_bytes
from medtest.phantoms.fields import Field, as_field
from medtest.phantoms.scenes.paint import Levels, muted


def background(size: int, rng: np.random.Generator, clutter: int) -> NDArray[np.uint8]:
    """Return a background.

    Args:
        size: Pixels a side.
        rng: Random generator.
        clutter: Number of soft blobs, pebbles and strokes that are not class.

    Returns:
        uint8 size×size×3 RGB.
    """
    kind = _KINDS[int(rng.integers(len(_KINDS)))]
    picture = kind(size, rng)
    texture = noise(rng, (size, size), int(rng.integers(5, 40))) * np.float32(rng.uniform(0.0, 5.0))
    texture = as_field(texture + grain(rng, (size, size)) * np.float32(rng.uniform(0.0, 4.0)))
    whole = to_bytes(as_field(picture + texture[..., None]))
    for _ in range(clutter):
        _litter(whole, rng)
    return whole


def _wash(size: int, top: Levels, two: Levels, slope: float = 0.0) -> Field:
    """Return a slanted gradient from one colour at the top to another at the bottom."""
    line = np.linspace(0.0, 1.0, size, dtype=np.float32)
    share = np.clip(line[:, None] + np.float32(slope) * (line[None] - np.float32(0.5)), 0.0, 1.0)[..., None]
    first, second = np.array(top, np.float32), np.array(two, np.float32)
    return as_field(first + share * (second - first))


def _meadow(size: int, rng: np.random.Generator) -> Field:
    sky = _wash(size, muted(rng, (0.6, 0.85), (0.15, 0.35)), muted(rng, (0.75, 0.92), (0.03, 0.15)))
    horizon = round(size * float(rng.uniform(0.4, 0.75)))
    near, far = muted(rng, (0.45, 0.65), (0.15, 0.4)), muted(rng, (0.6, 0.8), (0.1, 0.35))
    ground = _wash(size, far, near)
    hills = noise(rng, (1, size), 4)[0] * np.float32(0.04 * size)
    rows = np.arange(size, dtype=np.float32)[:, None]
    below = np.clip(rows - (np.float32(horizon) + hills[None]), 0.0, 1.0)[..., None]
    return as_field(sky + below * (ground - sky))


def _room(size: int, rng: np.random.Generator) -> Field:
    wall = _wash(size, muted(rng, (0.65, 0.88)), muted(rng, (0.6, 0.8)), float(rng.uniform(-0.4, 0.4)))
    horizon = round(size * float(rng.uniform(0.55, 0.82)))
    wall[horizon:] = np.array(muted(rng, (0.4, 0.7), (0.1, 0.4)), np.float32)
    skirting = max(1, round(0.015 * size))
    wall[horizon : horizon + skirting] = np.array(muted(rng, (0.75, 0.9), (0.0, 0.1)), np.float32)
    if rng.uniform() < 0.5:
        step = int(rng.integers(max(6, size // 20), max(8, size // 7)))
        wall[:horizon, ::step] *= np.float32(0.95)
    if rng.uniform() < 0.5:
        step = int(rng.integers(max(6, size // 20), max(8, size // 8)))
        wall[horizon + step :: step] *= np.float32(0.92)
    return as_field(wall)


def _plain(size: int, rng: np.random.Generator) -> Field:
    return _wash(size, muted(rng, (0.5, 0.9)), muted(rng, (0.5, 0.9)), float(rng.uniform(-1.0, 1.0)))


def _cloudy(size: int, rng: np.random.Generator) -> Field:
    first, two = np.array(muted(rng, (0.45, 0.7)), np.float32), np.array(muted(rng, (0.65, 0.9)), np.float32)
    share = np.clip(noise(rng, (size, size), int(rng.integers(3, 9))) * np.float32(0.35) + np.float32(0.5), 0.0, 1.0)
    return as_field(first + share[..., None] * (two - first))


def _tiles(size: int, rng: np.random.Generator) -> Field:
    picture = _plain(size, rng)
    step = int(rng.integers(max(8, size // 14), max(10, size // 5)))
    at = np.arange(size) // step
    odd = (at[:, None] + at[None]) % 2 if rng.uniform() < 0.5 else np.broadcast_to(at[None] % 2, (size, size))
    return as_field(
        picture * (np.float32(1.0) - np.float32(rng.uniform(0.03, 0.12)) * odd[..., None].astype(np.float32))
    )


_KINDS: Final[tuple[Callable[[int, np.random.Generator], Field], ...]] = (
    _meadow,
    _meadow,
    _room,
    _room,
    _plain,
    _cloudy,
    _tiles,
)


def _litter(picture: NDArray[np.uint8], rng: np.random.Generator) -> None:
    """Draw one clutter item of no class: a soft blob, a pebble, a stroke or a pane."""
    size = picture.shape[0]
    kind = int(rng.integers(4))
    x, y = (int(value) for value in rng.integers(0, size, 2))
    reach = max(2, round(size * float(rng.uniform(0.01, 0.05 if kind == 1 else 0.12))))
    levels = muted(rng, (0.35, 0.95), (0.0, 0.6))
    strength = float(rng.uniform(0.15, 0.6))
    left, top = max(0, x - reach), max(0, y - reach)
    right, bottom = min(size, x + reach + 1), min(size, y + reach + 1)
    cover = np.zeros((bottom - top, right - left), np.uint8)
    at = (x - left, y - top)
    turn = float(rng.uniform(0.0, 180.0))
    narrow = max(1, round(reach * float(rng.uniform(0.3, 1.0))))
    if kind in (0, 1):
        cv2.ellipse(cover, at, (reach, narrow), turn, 0.0, 360.0, 255, -1, cv2.LINE_AA)
        if kind == 0:
            wide = 2 * (reach // 2) + 1
            cover = np.asarray(cv2.blur(cover, (wide, wide)), np.uint8)
    elif kind == 2:
        end = (int(rng.integers(0, cover.shape[1])), int(rng.integers(0, cover.shape[0])))
        cv2.line(cover, at, end, 255, max(1, size // 128), cv2.LINE_AA)
    else:
        corner = (at[0] + narrow, at[1] + max(1, narrow // 2))
        cv2.rectangle(cover, at, corner, 255, -1)
    alpha = cover.astype(np.float32)[..., None] * np.float32(strength / 255.0)
    part = picture[top:bottom, left:right]
    part[...] = np.rint(part + alpha * (np.array(levels, np.float32) - part)).astype(np.uint8)
