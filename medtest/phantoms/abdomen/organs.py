"""Organs around the liver in Hounsfield units: wall, spine, ribs, lungs, spleen, stomach, vessels and more.

Every organ is a distance field; its share of a voxel goes from 1 to 0 over one voxel at its surface, like the partial
volume effect. Values are those of a contrast-enhanced scan in the portal venous phase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from medtest.phantoms.abdomen.shapes import (
    CAVITY,
    Field3,
    Grid3,
    ellipse_distance,
    refine,
    smooth_union,
)

AIR, LUNG, FAT = -1000.0, -840.0, -105.0
BODY = (172.0, 120.0)
"""Half axes of the skin, millimetres (x, y)."""
_WALL = (154.0, 104.0)


def draw_levels(rng: np.random.Generator) -> dict[str, float]:
    """Draw one patient's Hounsfield units, with the contrast between organs after a contrast agent."""
    mean = {
        "liver": 104.0,
        "vessel": 150.0,
        "aorta": 150.0,
        "spleen": 112.0,
        "kidney": 165.0,
        "muscle": 64.0,
        "heart": 128.0,
        "stomach": 48.0,
        "bowel": 36.0,
        "bone": 210.0,
        "cortex": 480.0,
        "gallbladder": 8.0,
        "tumour": 66.0,
    }
    spread = {"liver": 9.0, "spleen": 8.0, "heart": 10.0, "bone": 25.0, "cortex": 60.0, "stomach": 15.0, "tumour": 10.0}
    return {name: level + spread.get(name, 6.0) * float(rng.standard_normal()) for name, level in mean.items()}


def paint_surroundings(
    rng: np.random.Generator, grid: Grid3, levels: Mapping[str, float], coarse_liver: Field3, coarse: Grid3
) -> Field3:
    """Return a body without liver.

    Args:
        rng: Stream of random numbers.
        grid: Voxels.
        levels: From :func:`draw_levels`.
        coarse_liver: Distance to the liver on the coarse grid; organs do not overlap it.
        coarse: The coarse grid.

    Returns:
        float32 D×H×W, Hounsfield units, without noise.
    """
    z, y, x = grid.axes()
    width = float(grid.spacing[2])
    volume = np.full(grid.shape, AIR, np.float32)
    blend(volume, ellipse_distance(x, y, *BODY), FAT, width)
    blend(volume, ellipse_distance(x, y, *_WALL), levels["muscle"], width)
    _ribs(rng, volume, grid, levels["cortex"])
    cavity = ellipse_distance(x, y, *CAVITY)
    blend(volume, cavity, FAT + 20, width)
    _bowel(rng, volume, grid, cavity, levels["bowel"])
    _soft_organs(rng, volume, coarse, coarse_liver, levels, width)
    _chest(volume, grid, coarse, coarse_liver, levels["heart"], width)
    _spine_and_vessels(rng, volume, grid, levels, width)
    return volume


def blend(volume: Field3, distance: Field3, level: float | Field3, width: float) -> None:
    """Paint an organ over a volume, in place; its edge is ``width`` millimetres wide."""
    share = np.clip(np.float32(0.5) - distance * np.float32(1 / width), 0, 1)
    volume += share * (np.float32(level) - volume if isinstance(level, float) else level - volume)


def _ellipsoid(x: Field3, y: Field3, z: Field3, at: Sequence[float], axes: Sequence[float]) -> Field3:
    u, v, w = ((p - np.float32(c)) / np.float32(a) for p, c, a in zip((x, y, z), at, axes, strict=True))
    inner = np.sqrt(u * u + v * v + w * w)
    distance: Field3 = (inner - 1) * np.float32(min(axes))
    return distance


def _around(rng: np.random.Generator, at: Sequence[float], by: float) -> list[float]:
    return [c + by * float(rng.standard_normal()) for c in at]


def _bowel(rng: np.random.Generator, volume: Field3, grid: Grid3, cavity: Field3, level: float) -> None:
    """Fill the lower cavity with loops: smooth noise thresholded to bowel wall, with fat between and some gas."""
    cells = tuple(max(3, int(n * s / 24) + 2) for n, s in zip(grid.shape, grid.spacing, strict=True))
    noise = refine(rng.standard_normal(cells, dtype=np.float32), grid.shape)
    z, _, _ = grid.axes()
    below = z - np.float32(30.0)
    blend(volume, np.maximum(np.maximum(np.float32(-14) * noise - 2, cavity + 2), below), level, 8.0)
    gas = np.float32(60) * (np.float32(1.15) - noise)
    blend(volume, np.maximum(np.maximum(gas, cavity + 4), below + 20), -850.0, 4.0)


def _soft_organs(
    rng: np.random.Generator, volume: Field3, coarse: Grid3, liver: Field3, levels: Mapping[str, float], width: float
) -> None:
    """Paint spleen, kidneys, stomach and gall bladder, computed on the coarse grid without overlapping the liver."""
    z, y, x = coarse.axes()
    size = 1 + 0.06 * float(rng.standard_normal())
    stomach = _ellipsoid(x, y, z, _around(rng, (62, -28, 18), 5), [a * size for a in (46, 42, 44)])
    right = _ellipsoid(x, y, z, _around(rng, (-62, 50, -52), 4), (27, 28, 52))
    left = _ellipsoid(x, y, z, _around(rng, (60, 50, -38), 4), (27, 28, 52))
    spleen = _ellipsoid(x, y, z, _around(rng, (102, 38, 30), 5), (27, 44, 50))
    bladder = _ellipsoid(x, y, z, _around(rng, (-42, -42, -38), 4), (13, 16, 24))
    cavity = ellipse_distance(x, y, *CAVITY)
    content = levels["stomach"]
    for distance, level in (
        (stomach, levels["muscle"]),
        (stomach + 5, content),
        (smooth_union(right, left, 1.0), levels["kidney"]),
        (spleen, levels["spleen"]),
        (bladder, levels["gallbladder"]),
    ):
        outside = np.maximum(np.maximum(distance, cavity + 1), np.float32(0.5) - liver)
        blend(volume, refine(outside, _shape(volume)), level, width)


def _shape(volume: Field3) -> tuple[int, int, int]:
    return volume.shape[0], volume.shape[1], volume.shape[2]


def _chest(volume: Field3, grid: Grid3, coarse: Grid3, liver: Field3, heart: float, width: float) -> None:
    """Paint the lungs above the diaphragm, which follows the liver's dome, and the heart on it."""
    z, y, x = coarse.axes()
    # Above liver, the lung begins 3.5 mm higher; elsewhere at a fixed height.
    solid = np.where(liver < 5, z, np.float32(-1e3))
    top = np.maximum(solid.max(axis=0, keepdims=True), np.float32(52.0))
    for axis in (1, 2):
        top = (np.roll(top, 1, axis) + np.roll(top, -1, axis)) * np.float32(0.25) + top * np.float32(0.5)
    cavity = ellipse_distance(x, y, *CAVITY)
    lung = np.maximum(np.maximum(top - z + 2, cavity - 4), np.float32(3.5) - liver)
    blend(volume, refine(lung, grid.shape), LUNG, width)
    beat = _ellipsoid(x, y, z, (28.0, -40.0, 108.0), (58.0, 46.0, 44.0))
    beat = np.maximum(np.maximum(beat, cavity), np.float32(0.5) - liver)
    blend(volume, refine(beat, grid.shape), heart, width)


def _spine_and_vessels(
    rng: np.random.Generator, volume: Field3, grid: Grid3, levels: Mapping[str, float], width: float
) -> None:
    """Paint vertebrae with discs, canal and spinous processes, the aorta and the caval vein."""
    z, y, x = grid.axes()
    phase = float(rng.uniform(0, 30))
    turn = np.abs((z + np.float32(phase + 300)) % 30 - 15)
    body = np.sqrt((x / np.float32(1.15)) ** 2 + (y - np.float32(72)) ** 2) - 21
    bone = np.maximum(body, turn - np.float32(12))
    blend(volume, body, 90.0, width)
    blend(volume, bone, levels["cortex"] * 0.75, width)
    blend(volume, np.maximum(body + 3, turn - np.float32(10)), levels["bone"], width)
    process = np.maximum(np.abs(x) - 5, np.abs(y - np.float32(108)) - 10)
    blend(volume, np.maximum(process, turn - np.float32(8)), levels["cortex"] * 0.7, width)
    blend(volume, np.sqrt(x * x + (y - np.float32(96)) ** 2) - 7, 30.0, width)
    blend(volume, np.sqrt((x - 14) ** 2 + (y - np.float32(44)) ** 2) + 0 * z - 11, levels["aorta"], width)


def _ribs(rng: np.random.Generator, volume: Field3, grid: Grid3, level: float) -> None:
    """Paint ribs: oblique bands of a shell inside the wall, lower in front than behind."""
    z, y, x = grid.axes()
    shell = np.abs(ellipse_distance(x, y, _WALL[0] - 6, _WALL[1] - 6)) - np.float32(3.5)
    phase = float(rng.uniform(0, 26))
    band = np.abs((z - np.float32(0.45) * y + np.float32(phase + 520)) % 26 - 13) - np.float32(5)
    lowest = np.float32(-55.0) - z
    blend(volume, np.maximum(np.maximum(shell, band), lowest), level, float(grid.spacing[2]))
