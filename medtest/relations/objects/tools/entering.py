"""Way of an instrument into the field: where it enters, where it points, and how far it can be pushed in.

Lengths are prepared pixels along the rows. Columns are scaled to the proportions of the original image, so that hours
on the clock and widths are those of the examination.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask, PreparedSeed
from medtest.relations.objects.matter.backdrop import grain_of
from medtest.relations.objects.matter.ladder import RING, diameter, smooth
from medtest.relations.objects.scene import SceneEstimate, channel_limits, scene_of
from medtest.relations.objects.tools.shapes import STEP, Floats, ToolShape
from medtest.relations.placement import keep_out

FARTHEST = 1.35
"""Farthest place of a tip from where it enters, in radii of the field."""
FALL = 0.45
"""Light lost after one radius of the field, because the lamp sits at the lens."""
OWN_LIGHT = 0.45
"""Share of the light that does not follow the tissue behind: instruments lie nearer to the lamp."""
BRIGHTEST = 1.3
"""Largest light of the tissue that counts."""
LEVELS = 65535
"""Steps in which pixels are ordered along the way."""
TEXT = 130
"""Least channel of text burnt into a picture."""
SHADE = 0.17
"""Distance beside the endoscope's shaft over which it takes light from the mucosa, in radii of the field."""


@dataclass(frozen=True, kw_only=True)
class ToolPose:
    """Drawn pose of an instrument.

    Attributes:
        clock: Where it enters, in hours on the clock face of the field.
        aim: Degrees by which it points to the right of the field's centre, seen along the instrument.
        width: Its width, as fraction of the field's diameter.
        bend: Its curvature, as sideways shift after one radius of the field, in radii.
        taper: Width lost after one radius of the field, as share, because it leads away from the lens.
    """

    clock: float
    aim: float
    width: float
    bend: float
    taper: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Way:
    """Pixels on the way of an instrument, nearest to the rim first.

    Attributes:
        scene: The scene.
        radius: Radius of the field.
        places: Flat indices of pixels.
        along: float32, distance of each pixel from the rim along the instrument; negative beside the entry.
        across: float32, its signed distance from the axis.
        half: float32, half-width of a sheath there.
        light: float32, light that falls on an instrument there, 1 for usual mucosa at the rim.
        noise: float32, noise of the picture in grey levels.
        behind: float32 3×N, the picture's colours.
        lamp: Cosine between the direction across the instrument and that to the lamp, from −1 to 1.
        soft: float32, share of light that the border of the field lets through.
        far: float32, 0 at what must stay free and 1 where shade may have its full strength.
        cover: Pixels of a sheath up to whole distances along the instrument, from 0.
        field: Pixels of the field.
        reach: Farthest possible place of the tip.
        entry: The pose.
    """

    scene: SceneEstimate
    radius: float
    places: NDArray[np.int64]
    along: Floats
    across: Floats
    half: Floats
    light: Floats
    noise: Floats
    behind: Floats
    lamp: float
    soft: Floats
    far: Floats
    cover: NDArray[np.int64]
    field: int
    reach: float
    entry: ToolPose

    def half_at(self, along: float) -> float:
        """Return the half-width of a sheath at a distance along the instrument."""
        return _half(self.entry, self.radius, along)

    def depth_of(self, model: ToolShape, area: float) -> float:
        """Return the depth of a tip whose instrument covers an area, a fraction of the field."""
        unit = self.half_at(self.reach / 2)
        wanted = area * self.field + model.missing * unit * unit
        above = int(np.searchsorted(self.cover, wanted))
        if above >= len(self.cover):
            return float(len(self.cover))
        below = float(self.cover[above - 1]) if above else 0.0
        return above - 1 + (wanted - below) / max(float(self.cover[above]) - below, 1.0)

    def area_of(self, model: ToolShape, depth: float) -> float:
        """Return the area that an instrument covers with its tip at a depth; the inverse of :meth:`depth_of`."""
        unit = self.half_at(self.reach / 2)
        whole = min(max(depth, 0.0), len(self.cover) - 1.0)
        index = min(int(whole), len(self.cover) - 2)
        low, high = float(self.cover[index]), float(self.cover[index + 1])
        return max((low + (whole - index) * (high - low) - model.missing * unit * unit) / self.field, 0.0)


def way_of(seed: PreparedSeed, model: ToolShape, entry: ToolPose, margin: int, spread: float) -> Way:
    """Return the way of an instrument; ``spread`` is the width beside it that its shade reaches, in radii."""
    scene = scene_of(seed)
    aspect = _aspect(seed)
    radius = scene.radius * scene.cell * math.sqrt(aspect)
    least = _least(seed, margin)
    origin, axis = _axis(scene, entry, aspect, radius)
    reach = _reach(scene, model, entry, aspect, radius, origin, axis, least)
    widest = max(float(model.outline.max()), 1.0) * _half(entry, radius, -0.2 * radius) + spread * radius + scene.blur
    last = reach + scene.blur + spread * radius
    box = _box(seed, origin, axis, aspect, last, widest + abs(entry.bend) * radius * FARTHEST**2)
    rows, columns = np.arange(box[0], box[1], dtype=np.float32)[:, None], np.arange(box[2], box[3], dtype=np.float32)
    x, y = columns * np.float32(aspect) - np.float32(origin[0]), rows - np.float32(origin[1])
    along = x * np.float32(axis[0]) + y * np.float32(axis[1])
    clipped = np.maximum(along, np.float32(0.0))
    across = y * np.float32(axis[0]) - x * np.float32(axis[1])
    across -= clipped * clipped * np.float32(entry.bend / radius)
    window = (slice(box[0], box[1]), slice(box[2], box[3]))
    barred = keep_out(seed, margin=round(least))[window] | seed.frame[window] | _burnt_in(seed, scene, window)
    beside = np.float32(spread * radius + scene.blur)
    sheath = np.float32(entry.width * radius * max(float(model.outline.max()), 1.0))
    shown = sheath * (np.float32(1.0 + entry.taper / 2) - along * np.float32(entry.taper / radius)) + beside
    usable = (np.abs(across) < shown) & (along < np.float32(last)) & ~barred
    chosen = np.flatnonzero(usable.ravel())
    unsorted = along.ravel()[chosen]
    low = float(unsorted.min()) if chosen.size else 0.0
    keys = ((unsorted - np.float32(low)) * np.float32(LEVELS / max(last - low, 1.0))).astype(np.uint16)
    # Sixteen bits are sorted by counting, stably: equal keys keep their order on every processor.
    chosen = chosen[np.argsort(keys, kind="stable")]
    along, across = along.ravel()[chosen], across.ravel()[chosen]
    half = np.float32(entry.width * radius) * (
        np.float32(1.0 + entry.taper / 2) - along * np.float32(entry.taper / radius)
    )
    half = np.maximum(half, np.float32(1.0))
    row, column = np.divmod(chosen, box[3] - box[2])
    places = (row + box[0]) * seed.width + (column + box[2])
    inner = np.maximum(along[np.abs(across) <= half], 0).astype(np.int64)
    cover = np.cumsum(np.bincount(inner, minlength=2))
    border = cv2.blur((~seed.frame[window]).view(np.uint8) * np.uint8(255), (2 * round(scene.blur / 2) + 1,) * 2)
    soft = smooth(border.astype(np.float32).ravel()[chosen], 105.0, 250.0)
    cells = (np.arange(box[0], box[1]) * scene.shape[0] // seed.height * scene.shape[1])[row]
    cells += (np.arange(box[2], box[3]) * scene.shape[1] // seed.width)[column]
    near = scene.free.ravel()[cells] * np.float32(scene.cell)
    tissue = np.minimum(scene.light.ravel()[cells], np.float32(BRIGHTEST))
    light = np.float32(1.0 + 0.4 * FALL) - np.maximum(along, 0) * np.float32(FALL / radius)
    light *= np.float32(OWN_LIGHT) + np.float32(1.0 - OWN_LIGHT) * tissue
    light *= np.float32(math.sqrt(sum(scene.tint) / 3))
    middle_x, middle_y = ((value + 0.5) * scene.cell for value in scene.centre)
    lamp = (origin[0] - middle_x * aspect) * axis[1] - (origin[1] - middle_y) * axis[0]
    return Way(
        scene=scene, radius=radius, places=places, along=along, across=across, half=half, light=light,
        noise=grain_of(seed.height, seed.width).ravel()[places] * np.float32(scene.noise),
        behind=np.ascontiguousarray(seed.image.reshape(-1, 3)[places].T, np.float32), lamp=lamp / radius, soft=soft,
        far=smooth(near, least, least + 0.1 * radius), cover=cover, field=int(np.count_nonzero(~seed.frame)),
        reach=reach, entry=entry,
    )  # fmt: skip


def reach_of(seed: PreparedSeed, model: ToolShape, entry: ToolPose, margin: int) -> float:
    """Return the farthest place of the tip from the rim, as fraction of the field's radius; 0 without room."""
    scene, aspect = scene_of(seed), _aspect(seed)
    radius = scene.radius * scene.cell * math.sqrt(aspect)
    origin, axis = _axis(scene, entry, aspect, radius)
    return _reach(scene, model, entry, aspect, radius, origin, axis, _least(seed, margin)) / radius


def _aspect(seed: PreparedSeed) -> float:
    """Return the width of a prepared pixel in the original, as share of its height."""
    if seed.original_mask is None:
        return 1.0
    height, width = seed.original_mask.shape[:2]
    return float(min(max(width * seed.height / (height * seed.width), 0.5), 2.0))


def _least(seed: PreparedSeed, margin: int) -> float:
    return max(float(margin), RING * diameter(seed))


def _half(entry: ToolPose, radius: float, along: float) -> float:
    return max(entry.width * radius * (1.0 + entry.taper / 2 - entry.taper * along / radius), 1.0)


def _burnt_in(seed: PreparedSeed, scene: SceneEstimate, window: tuple[slice, slice]) -> Mask:
    """Return bright text and green boxes in a part of the picture, bool of its shape."""
    # Reflections in a row look like text; their darker borders would show on an instrument.
    red, green, _ = cv2.split(seed.image[window])
    bright = channel_limits(seed.image[window])[1] > TEXT
    return np.asarray(scene.overlay[window] & (bright | (green > red)), np.bool_)


def _axis(
    scene: SceneEstimate, entry: ToolPose, aspect: float, radius: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the entry point of the axis and its direction, x (in the original's proportions) and y."""
    turn = 2 * math.pi * entry.clock / 12
    out_x, out_y = math.sin(turn), -math.cos(turn)
    middle_x, middle_y = ((value + 0.5) * scene.cell for value in scene.centre)
    steps = np.arange(0.0, 2.0 * radius, scene.cell)
    column = np.floor((middle_x + steps * (out_x / aspect)) / scene.cell).astype(np.int64)
    row = np.floor((middle_y + steps * out_y) / scene.cell).astype(np.int64)
    inside = (row >= 0) & (column >= 0) & (row < scene.shape[0]) & (column < scene.shape[1])
    inside[inside] = scene.field[row[inside], column[inside]]
    last = float(steps[np.flatnonzero(inside)[-1]]) if inside.any() else radius
    aim = turn + math.pi + math.radians(entry.aim)
    return (middle_x * aspect + last * out_x, middle_y + last * out_y), (math.sin(aim), -math.cos(aim))


def _reach(
    scene: SceneEstimate,
    model: ToolShape,
    entry: ToolPose,
    aspect: float,
    radius: float,
    origin: tuple[float, float],
    axis: tuple[float, float],
    least: float,
) -> float:
    """Return the farthest place of the tip at which nothing of the instrument comes too near to the lesion."""
    step = 2.0 * scene.cell
    along = np.arange(0.0, FARTHEST * radius, step)
    shift = along * along * (entry.bend / radius)
    x = (origin[0] + along * axis[0] - shift * axis[1]) / aspect
    y = origin[1] + along * axis[1] + shift * axis[0]
    column, row = (np.floor(value / scene.cell).astype(np.int64) for value in (x, y))
    inside = (row >= 0) & (column >= 0) & (row < scene.shape[0]) & (column < scene.shape[1])
    # The far side of the field ends the way; the first steps may lie on its border.
    inside[inside] = scene.field[row[inside], column[inside]] | (along[inside] < 4 * step)
    ends = np.flatnonzero(~inside)
    along = along[: int(ends[0])] if ends.size else along
    if along.size == 0:
        return 0.0
    row, column = row[: along.size], column[: along.size]
    free = scene.free[np.minimum(row, scene.shape[0] - 1), np.minimum(column, scene.shape[1] - 1)].astype(np.float64)
    room = (free * scene.cell - least - scene.blur / 2) * min(1.0, aspect)
    half = np.maximum(entry.width * radius * (1.0 + entry.taper / 2 - along * (entry.taper / radius)), 1.0)
    outline = model.outline.astype(np.float64)
    # Row: place of the tip. Column: place on the axis; what lies beyond the tip needs no room.
    behind = (along[:, None] - along[None, :]) / half[:, None]
    index = np.minimum(behind / STEP, len(outline) - 1.0)
    needed = np.where(
        index >= len(outline) - 1.0, half[None, :], outline[np.maximum(index, 0).astype(np.int64)] * half[:, None]
    )
    blocked = ((behind >= 0) & (room[None, :] < needed)).any(axis=1)
    first = np.flatnonzero(blocked)
    last = int(first[0]) - 1 if first.size else along.size - 1
    return float(along[last]) if last >= 0 else 0.0


def _box(
    seed: PreparedSeed, origin: tuple[float, float], axis: tuple[float, float], aspect: float, last: float, wide: float
) -> tuple[int, int, int, int]:
    """Return rows and columns (first, end, first, end) that hold the way and the corners behind its entry."""
    ends = [(origin[0] + axis[0] * at, origin[1] + axis[1] * at) for at in (-2 * wide, last)]
    low_x, high_x = (pick(x for x, _ in ends) for pick in (min, max))
    low_y, high_y = (pick(y for _, y in ends) for pick in (min, max))
    return (
        max(math.floor(low_y - wide), 0),
        min(math.ceil(high_y + wide) + 1, seed.height),
        max(math.floor((low_x - wide) / aspect), 0),
        min(math.ceil((high_x + wide) / aspect) + 1, seed.width),
    )
