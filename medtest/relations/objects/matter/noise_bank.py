"""Periodic fractal noise made once per process, from which every case cuts its own window."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from medtest.core.portable import key_generator

SIDE = 512
"""Side of a periodic tile in cells."""
BANDS: dict[str, tuple[tuple[int, float], ...]] = {
    "low": ((4, 1.0), (8, 0.55), (16, 0.25)),
    "mid": ((16, 1.0), (32, 0.6), (64, 0.3)),
    "fine": ((64, 1.0), (128, 0.7), (256, 0.45)),
}
"""Name of a tile: lumps along its side, and their weights, octave by octave."""

Floats = NDArray[np.float32]


@lru_cache(maxsize=len(BANDS))
def tile(band: str) -> Floats:
    """Return a tile of mean 0 and standard deviation 1, twice as long and wide as its period :data:`SIDE`."""
    rng = key_generator(["medtest.relations.objects.matter.noise_bank", band])
    total = np.zeros((SIDE, SIDE))
    for lumps, weight in BANDS[band]:
        total = total + weight * _octave(lumps, rng)
    sample = total[::4, ::4].ravel()
    mean = math.fsum(sample) / sample.size
    spread = math.sqrt(math.fsum((sample - mean) ** 2) / sample.size)
    doubled = np.tile(((total - mean) / spread).astype(np.float32), (2, 2))
    doubled.flags.writeable = False
    return doubled


def window(band: str, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return a random window of a tile or of the foam, turned or mirrored; a view, at most :data:`SIDE` a side."""
    top, left, pose = (int(value) for value in rng.integers((SIDE, SIDE, 8)))
    rows, columns = shape if pose < 4 else shape[::-1]
    part = (foam() if band == "foam" else tile(band))[top : top + rows, left : left + columns]
    part = part[:: -1 if pose & 1 else 1, :: -1 if pose & 2 else 1]
    return part if pose < 4 else part.T


def _octave(lumps: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return noise of ``lumps`` lumps a side, interpolated by cubic B-splines, with standard deviation about 1."""
    step = SIDE // lumps
    share = (np.arange(step) + 0.5) / step
    rest, square = 1 - share, share * share
    cube = square * share
    weights = (
        rest * rest * rest / 6,
        (3 * cube - 6 * square + 4) / 6,
        (-3 * cube + 3 * square + 3 * share + 1) / 6,
        cube / 6,
    )
    values = rng.standard_normal((lumps, lumps)) * 2.1
    for _ in range(2):
        columns = [
            np.roll(values, 1 - k, axis=0)[:, None, :] * weight[None, :, None] for k, weight in enumerate(weights)
        ]
        values = (columns[0] + columns[1] + (columns[2] + columns[3])).reshape(SIDE, -1).T
    return values


FOAM_SIDE, BUBBLES = 128, 620
"""Period of the foam in cells, and the bubbles in it."""


@lru_cache(maxsize=1)
def foam() -> Floats:
    """Return foam, 0 (inside a bubble) to 1 (its bright rim), of the size of :func:`tile`."""
    rng = key_generator(["medtest.relations.objects.noise_bank", "foam"])
    total = np.full((FOAM_SIDE, FOAM_SIDE), 0.35)
    for column, row, size in rng.random((BUBBLES, 3)):
        radius = 1.1 + 3.2 * size * size * size
        reach = math.ceil(radius) + 1
        y, x = math.floor(row * FOAM_SIDE), math.floor(column * FOAM_SIDE)
        step = np.arange(-reach, reach + 1)
        away = np.sqrt((step * step)[:, None] + (step * step)[None, :]) / radius
        # A bubble is a little darker inside, with a bright rim and one glint.
        profile = np.clip(1.0 - np.abs(away - 0.85) * 4.0, 0.15, 1.0)
        profile[reach - 1, reach - 1] = 1.0
        place = np.ix_((y + step) % FOAM_SIDE, (x + step) % FOAM_SIDE)
        total[place] = np.where(away <= 1.1, profile, total[place])
    times = 2 * SIDE // FOAM_SIDE
    doubled = np.tile(total.astype(np.float32), (times, times))
    doubled.flags.writeable = False
    return doubled
