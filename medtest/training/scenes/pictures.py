"""Scenes drawn for training, and the network's targets for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.scenes import Box
from medtest.phantoms.scenes import CLASSES, COLOURS, Placed, draw_scene
from medtest.phantoms.scenes.paint import FIXED, lay, tones
from medtest.phantoms.scenes.shapes import Shape, fitted, oval, poly, soft
from medtest.readers.pictures.bundled.network import LARGE_FROM, SIDE, SMALL_TO, STRIDES
from medtest.training.scenes.layouts import pair_layout, random_layout

Pixels = NDArray[np.uint8]
PEAK: Final = 0.09
"""Standard deviation of a peak in a map, relative to its thing: TTFNet's 0.54 / 6."""
CENTRAL: Final = 0.45
"""Minimum height on a thing's peak of the cells that learn its edges and its colour."""
_DECOYS: Final = 0.35
"""Share of pictures with shapes that belong to no class."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """Targets of one of the network's strides; h and w count cells.

    Attributes:
        heat: float32 B×classes×h×w, 1 at centres, less around them.
        edges: float32 B×4×h×w, pixels from the cell's centre.
        colours: int64 B×h×w.
        weight: float32 B×h×w, 0 for cells without targets for edges and colours.
    """

    heat: NDArray[np.float32]
    edges: NDArray[np.float32]
    colours: NDArray[np.int64]
    weight: NDArray[np.float32]


SceneBatch: TypeAlias = tuple[Pixels, tuple[Targets, ...]]
"""Images, uint8 B×S×S×3 RGB, and the targets of each stride."""


def training_batch(seed: int, step: int, count: int) -> SceneBatch:
    """Return the batch of a step, which depends only on these numbers."""
    drawn = [training_picture(np.random.Generator(np.random.PCG64([seed, step, index]))) for index in range(count)]
    images = np.stack([picture for picture, _ in drawn])
    targets = tuple(_targets([placed for _, placed in drawn], large=index == 1) for index in range(len(STRIDES)))
    return images, targets


def training_picture(rng: np.random.Generator) -> tuple[Pixels, list[Placed]]:
    """Return a picture with :data:`SIDE` pixels per side and its things."""
    if rng.uniform() < 0.06:
        return _nothing(rng), []
    placed = (
        pair_layout(rng, overlap=float(rng.choice([-0.1, 0.0, 0.1, 0.2])))
        if rng.uniform() < 0.2
        else random_layout(rng)
    )
    size = SIDE if rng.uniform() < 0.9 else int(rng.integers(160, 513))
    picture = draw_scene([], size=size, rng=rng) if not placed else draw_scene(placed, size=size, rng=rng)
    if rng.uniform() < _DECOYS:
        _add_decoys(picture, placed, rng)
    if size != SIDE:
        interpolation = cv2.INTER_AREA if size > SIDE else cv2.INTER_LINEAR
        picture = np.asarray(cv2.resize(picture, (SIDE, SIDE), interpolation=interpolation), np.uint8)
    return _degraded(picture, rng), placed


def _nothing(rng: np.random.Generator) -> Pixels:
    """Return a picture without things: of one colour, of noise, or of shapes only."""
    kind = int(rng.integers(5))
    if kind == 0:
        return np.full((SIDE, SIDE, 3), rng.integers(0, 256, 3), np.uint8)
    if kind == 1:
        return rng.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    if kind == 2:
        cells = int(rng.integers(2, 65))
        coarse = rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        interpolation = (cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC)[int(rng.integers(3))]
        return np.asarray(cv2.resize(coarse, (SIDE, SIDE), interpolation=interpolation), np.uint8)
    picture = draw_scene([], rng=rng, clutter=int(rng.integers(20)))
    for _ in range(int(rng.integers(1, 9)) if kind == 3 else 0):
        _add_decoys(picture, [], rng)
    return _degraded(picture, rng)


def _add_decoys(picture: Pixels, placed: Sequence[Placed], rng: np.random.Generator) -> None:
    """Draw one to three random shapes, outlined like things, where nothing else is."""
    size = picture.shape[0]
    for _ in range(int(rng.integers(1, 4))):
        wide, high = (float(value) for value in rng.uniform(0.06, 0.4, 2))
        left, top = float(rng.uniform(-0.1, 1.0 - wide)), float(rng.uniform(-0.1, 1.0 - high))
        box = (left, top, left + wide, top + high)
        if any(_share(box, entity.box) for entity in placed):
            continue
        levels = tones(COLOURS[int(rng.integers(len(COLOURS)))], rng)
        shapes = fitted([_decoy(rng) for _ in range(int(rng.integers(1, 7)))], float(rng.uniform()), False)
        lay(picture, shapes, levels, [edge * size for edge in box], max(1.0, size / 170.0))


def _decoy(rng: np.random.Generator) -> Shape:
    named = ("main", "light", "dark", *FIXED)
    tone = named[int(rng.integers(len(named)))] if rng.uniform() < 0.5 else "main"
    x, y, a, b = (float(value) for value in rng.uniform(0.1, 0.9, 4))
    kind = int(rng.integers(4))
    if kind == 0:
        return oval(tone, x, y, 0.5 * a, 0.5 * b)
    if kind == 1:
        return poly(tone, (x, y), (x + a, y), (x + a, y + b), (x, y + b))
    points = [
        (float(x_share), float(y_share)) for x_share, y_share in rng.uniform(0.0, 1.0, (int(rng.integers(3, 8)), 2))
    ]
    return poly(tone, *points) if kind == 2 else soft(tone, *points)


def _share(first: Box, second: Box) -> bool:
    return min(first[2], second[2]) > max(first[0], second[0]) and min(first[3], second[3]) > max(first[1], second[1])


def _degraded(picture: Pixels, rng: np.random.Generator) -> Pixels:
    """Return a picture slightly blurred, noisy, lighter or compressed, as services' pictures may be."""
    if rng.uniform() < 0.5:
        return picture
    if rng.uniform() < 0.3:
        picture = np.asarray(cv2.GaussianBlur(picture, (0, 0), float(rng.uniform(0.3, 1.0))), np.uint8)
    if rng.uniform() < 0.4:
        gain, lift = float(rng.uniform(0.85, 1.12)), float(rng.uniform(-14.0, 14.0))
        picture = np.clip(picture * np.float32(gain) + np.float32(lift), 0, 255).astype(np.uint8)
    if rng.uniform() < 0.3:
        noise = rng.standard_normal(picture.shape, dtype=np.float32) * np.float32(rng.uniform(1.0, 8.0))
        picture = np.clip(picture + noise, 0, 255).astype(np.uint8)
    if rng.uniform() < 0.3:
        _, coded = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(50, 96))])
        picture = np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)
    return picture


def _targets(scenes: Sequence[Sequence[Placed]], *, large: bool) -> Targets:
    stride = STRIDES[large]
    cells = SIDE // stride
    count = len(scenes)
    heat = np.zeros((count, len(CLASSES), cells, cells), np.float32)
    edges = np.zeros((count, 4, cells, cells), np.float32)
    colours = np.zeros((count, cells, cells), np.int64)
    weight = np.zeros((count, cells, cells), np.float32)
    line = (np.arange(cells, dtype=np.float32) + np.float32(0.5)) * np.float32(stride)
    for index, scene in enumerate(scenes):
        boxes = [(entity, [edge * SIDE for edge in entity.box]) for entity in scene]
        # Cells shared by two things belong to the smaller one.
        for entity, (left, top, right, bottom) in sorted(boxes, key=lambda pair: -_area(pair[1])):
            side = math.sqrt((right - left) * (bottom - top))
            if (side < LARGE_FROM) if large else (side > SMALL_TO):
                continue
            peak = _peak(line, left, right, stride)[None] * _peak(line, top, bottom, stride)[:, None]
            row, column = (min(int(0.5 * (a + b) / stride), cells - 1) for a, b in ((top, bottom), (left, right)))
            peak[row, column] = 1.0
            plane = heat[index, CLASSES.index(entity.name)]
            np.maximum(plane, peak, out=plane)
            rows, columns = np.nonzero(peak >= CENTRAL)
            x, y = line[columns], line[rows]
            edges[index, :, rows, columns] = np.stack([x - left, y - top, right - x, bottom - y], axis=1)
            colours[index, rows, columns] = COLOURS.index(entity.colour)
            weight[index, rows, columns] = peak[rows, columns] / peak[rows, columns].sum()
    np.maximum(edges, 0.5, out=edges)
    return Targets(heat=heat, edges=edges, colours=colours, weight=weight)


def _area(edges: Sequence[float]) -> float:
    return (edges[2] - edges[0]) * (edges[3] - edges[1])


def _peak(line: NDArray[np.float32], low: float, high: float, stride: int) -> Any:
    """Return a bell curve over the centre of a side, at least as wide as 0.4 cells."""
    width = max(PEAK * (high - low), 0.4 * stride)
    # The curve is centred on the cell with the thing's centre, so that neighbours on both sides count alike.
    middle = (int(0.5 * (low + high) / stride) + 0.5) * stride
    return np.exp(-0.5 * ((line - np.float32(middle)) / np.float32(width)) ** 2)
