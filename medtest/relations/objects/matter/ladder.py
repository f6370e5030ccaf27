"""Matter that covers tissue, from a trace to a flood: the engine shared by stool and blood.

A *ladder* belongs to a seed and a draw, and serves all severities. Every place of the field has a potential; a severity
covers the places of highest potential that make up its area. What a severity covers is covered at every higher one.
Potentials, textures and light are computed once a ladder on the scene's work grid, sorted by potential, so that a
severity is the first part of each array.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Json, Mask, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.recent import last_of, per_seed
from medtest.relations.objects.matter.backdrop import Backdrop, backdrop_of
from medtest.relations.objects.matter.swatches import Swatch
from medtest.relations.objects.scene import LONGER_SIDE, Floats, SceneEstimate, scene_of
from medtest.relations.placement import grid_shares, keep_out, lesion_distance

RING = 0.06
"""Least distance from the lesion as fraction of its diameter; the ring that must stay free is 5 % of it wide."""
ROOM = 1.25
"""Room needed off the lesion, as multiple of a severity's area."""
SMALLEST_PIECE = 4
"""Work cells below which a piece is a fleck and not counted."""
LEVELS = 65535
Grids = dict[str, NDArray[Any]]
LUMEN, DARK = 1.6, (0.2, 0.45)
"""By how much the potential of dark places is lowered, and the light at which this ends and begins."""
GLARE, BURNT_OUT = 1.6, (0.3, 0.7)
"""The same of places that are burnt out, and the share of white cells around at which this begins and ends."""
OWN_DETAIL = 0.6
"""Noise of the fine detail of drawn relief, as a share of the picture's noise."""
PLACED = ("slope_x", "slope_y", "across", "down", "lamp_x", "lamp_y")
"""Arrays of every ladder: slopes of the surface and of the potential, and the direction to the lamp."""


def smooth(values: NDArray[np.floating[Any]], low: float, high: float) -> Floats:
    """Return 0 below ``low``, 1 above ``high`` and a smooth step between."""
    t = np.clip((values - np.float32(low)) * np.float32(1.0 / (high - low)), 0.0, 1.0)
    return np.asarray(t * t * (np.float32(3.0) - np.float32(2.0) * t), np.float32)


def column(values: tuple[float, float, float]) -> Floats:
    """Return three numbers as float32 3×1, to go with three rows of places."""
    return np.array(values, np.float32)[:, None]


def gradient(values: Floats) -> tuple[Floats, Floats]:
    """Return the central differences along x and y; 0 along the border."""
    across, down = np.zeros_like(values), np.zeros_like(values)
    across[:, 1:-1] = (values[:, 2:] - values[:, :-2]) * np.float32(0.5)
    down[1:-1] = (values[2:] - values[:-2]) * np.float32(0.5)
    return across, down


@dataclass(frozen=True, kw_only=True, eq=False)
class Ladder:
    """Places by falling potential.

    Attributes:
        scene: The scene.
        places: Flat indices on the work grid, highest potential first.
        potential: float32, of each place.
        rows: Row of each place on the work grid.
        columns: Column of each place.
        field: Work cells of the field.
        room: Work cells that matter may cover.
        parts: float32 arrays that a kind of matter keeps for each place, by name; vectors, or three rows.
    """

    scene: SceneEstimate
    places: NDArray[np.int64]
    potential: Floats
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    field: int
    room: int
    parts: dict[str, Floats]

    def count(self, area: float) -> int:
        """Return the number of places that make up an area, a fraction of the field."""
        return max(1, round(area * self.field))


@dataclass(frozen=True, eq=False)
class Matter(ABC):
    """Kind of matter.

    Attributes:
        swatch: Its matter.
        wetness: Factor on the swatch's wetness.
        relief: Factor on what is drawn onto it.
        kind: feces or blood.
        fringe: Largest distance in potential below the threshold at which a film still shows.
    """

    swatch: Swatch
    wetness: float = 1.0
    relief: float = 1.0
    kind: ClassVar[str]
    fringe: ClassVar[float]

    @abstractmethod
    def potential(self, scene: SceneEstimate, rng: np.random.Generator) -> tuple[Floats, Grids]:
        """Return the potential on the work grid and arrays (of its shape, or with three channels) that go with it.

        ``slope_x`` and ``slope_y``, the slopes of the surface, are among them.
        """

    @abstractmethod
    def dress(self, scene: SceneEstimate, part: Grids) -> dict[str, Floats]:
        """Return the arrays that :meth:`shade` uses, from those of :meth:`potential` at the places."""

    @abstractmethod
    def shade(self, ladder: Ladder, threshold: float, count: int) -> tuple[Floats, Floats]:
        """Return the light that the first ``count`` places add, in grey levels, and the share of tissue let through.

        Both are float32 3×count.
        """

    def ladder(self, seed: PreparedSeed, number: int, margin: int, largest: float) -> Ladder:
        """Return the ladder of a draw; the last one of each kind is kept with the seed.

        Args:
            seed: The prepared seed.
            number: The draw's random number.
            margin: Least distance from the lesion in prepared pixels.
            largest: Area of the highest severity, a fraction of the field.
        """
        key = (self, number, margin, largest)
        return last_of(seed, f"ladder.{self.kind}", key, lambda: self._make(seed, number, margin, largest))

    def _make(self, seed: PreparedSeed, number: int, margin: int, largest: float) -> Ladder:
        scene = scene_of(seed)
        rng = np.random.Generator(np.random.PCG64(number))
        potential, parts = self.potential(scene, rng)
        least = max(margin, RING * diameter(seed)) / scene.cell + 2.0
        # The potential sinks towards the lesion, so that matter ends before it by itself.
        near = smooth(scene.free, least, least + 0.08 * max(scene.shape))
        potential = potential - np.float32(4.0) * (np.float32(1.0) - near)
        # A dark lumen is space, not a wall: matter lies there last.
        potential -= np.float32(LUMEN) * (np.float32(1.0) - smooth(scene.light, *DARK))
        # Where the lamp burns the picture out, matter would be white too.
        if scene.glare.max() > BURNT_OUT[0]:
            potential -= np.float32(GLARE) * smooth(scene.glare, *BURNT_OUT)
        across, down = gradient(potential)
        for name in ("slope_x", "slope_y"):
            parts[name] = parts[name] * scene.texture
        parts |= {"across": across, "down": down, "lamp_x": scene.lamp_x, "lamp_y": scene.lamp_y}
        usable = np.flatnonzero((scene.field & ~scene.tool & (scene.free > least)).ravel())
        values = potential.ravel()[usable]
        field = int(np.count_nonzero(scene.field))
        if values.size == 0:
            empty = {"places": usable, "rows": usable, "columns": usable}
            return Ladder(scene=scene, potential=values, field=field, room=0, parts={}, **empty)
        low, high = float(values.min()), float(values.max())
        keys = ((np.float32(high) - values) * np.float32(LEVELS / max(high - low, 1e-6))).astype(np.uint16)
        # Sixteen bits are sorted by counting, stably: equal keys keep their order on every processor.
        order = np.argsort(keys, kind="stable")
        most = min(order.size, round(largest * field))
        threshold = int(keys[order[most - 1]])
        reach = threshold + math.ceil(self.fringe * LEVELS / max(high - low, 1e-6))
        shown = int(np.searchsorted(keys[order], min(reach, LEVELS), side="right"))
        places = usable[order[:shown]]
        part = {
            name: np.ascontiguousarray(grid).reshape(-1, *grid.shape[2:]).take(places, axis=0, mode="clip")
            for name, grid in parts.items()
        }
        part["local"] = scene.local.reshape(3, -1).take(places, axis=1)
        shown_parts = {name: part[name] for name in PLACED} | self.dress(scene, part)
        shown_potential = values[order[:shown]]
        rows, columns = np.divmod(places, scene.shape[1])
        return Ladder(
            scene=scene, places=places, potential=shown_potential, rows=rows, columns=columns,
            field=field, room=usable.size, parts=shown_parts,
        )  # fmt: skip

    @staticmethod
    def facing(part: dict[str, Floats], rise: NDArray[np.floating[Any]]) -> Floats:
        """Return the cosine between surface and lamp; ``rise`` is the surface's slope for one of the potential."""
        unit = np.float32(1.0)
        slope_x, slope_y = part["slope_x"] + rise * part["across"], part["slope_y"] + rise * part["down"]
        lamp_x, lamp_y = part["lamp_x"], part["lamp_y"]
        return np.asarray(
            (unit - slope_x * lamp_x - slope_y * lamp_y)
            / np.sqrt((unit + slope_x * slope_x + slope_y * slope_y) * (unit + lamp_x * lamp_x + lamp_y * lamp_y))
        )

    def check_room(self, ladder: Ladder, area: float) -> None:
        """Raise if an area has no room off the lesion.

        Raises:
            NotApplicable: There is not enough room, and then there is none for any larger area.
        """
        if ladder.room < ROOM * area * ladder.field:
            raise NotApplicable(
                f"no room for {self.kind} on {100 * area:.3g} % of the field off the lesion"
                f" ({100 * ladder.room / ladder.field:.2g} % is free)"
            )

    def pour(self, seed: PreparedSeed, ladder: Ladder, area: float, margin: int) -> tuple[Image, Mask]:
        """Return the image with matter on an area, and bool of the work grid, True where it covers tissue."""
        covered = ladder.count(area)
        threshold = float(ladder.potential[min(covered, ladder.potential.size) - 1])
        shown = ladder.potential.size - int(
            np.searchsorted(ladder.potential[::-1], np.float32(threshold - self.fringe), side="left")
        )
        add, keep = self.shade(ladder, threshold, shown)
        shape = ladder.scene.shape
        places = ladder.places[:shown]
        solid = np.zeros(shape[0] * shape[1], np.bool_)
        solid[places[:covered]] = True
        rows, columns = ladder.rows[:shown], ladder.columns[:shown]
        part, whole = _block(rows, columns, shape, (seed.height, seed.width))
        cells = (part[0].stop - part[0].start, part[1].stop - part[1].start)
        index = (rows - part[0].start) * cells[1] + (columns - part[1].start)
        layers = np.zeros((7, *cells), np.uint8)
        layers[3:6] = 255
        flat = layers.reshape(7, -1)
        for layer, values in zip(flat, (*add, *(keep * np.float32(255))), strict=False):
            layer[index] = np.clip(values + np.float32(0.5), 0, 255).astype(np.uint8)
        flat[6][index] = 255
        light, through = (np.asarray(cv2.merge(list(part)), np.uint8) for part in (layers[:3], layers[3:6]))
        image = seed.image.copy()
        backdrop = _backdrop(seed, margin)
        share = 1.0 - OWN_DETAIL * min(self.relief, 1.0)
        backdrop.expose(image, whole, backdrop.small[part], light, through, layers[6], share)
        return image, solid.reshape(shape)


@per_seed
def _backdrop(seed: PreparedSeed, margin: int) -> Backdrop:
    """Return the backdrop of a seed; the frame, texts and the lesion's surroundings stay without matter."""
    scene, width = scene_of(seed), max(float(margin), RING * diameter(seed))
    barred = seed.frame | scene.overlay | keep_out(seed, margin=round(width))
    return backdrop_of(seed.image, seed.frame, scene, barred)


Block = tuple[slice, slice]


def _block(
    rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int], size: tuple[int, int]
) -> tuple[Block, Block]:
    """Return the part of the work grid that holds all places and a few cells more, and the same part of the image.

    Both are the whole where cells are not a whole number of pixels.
    """
    factors = tuple(side // cells for side, cells in zip(size, shape, strict=True))
    if any(factor * cells != side for factor, cells, side in zip(factors, shape, size, strict=True)):
        return (slice(0, shape[0]), slice(0, shape[1])), (slice(0, size[0]), slice(0, size[1]))
    part = tuple(
        slice(max(int(values.min()) // 2 * 2 - 4, 0), min(int(values.max()) // 2 * 2 + 6, cells))
        for values, cells in zip((rows, columns), shape, strict=True)
    )
    whole = tuple(slice(side.start * factor, side.stop * factor) for side, factor in zip(part, factors, strict=True))
    return (part[0], part[1]), (whole[0], whole[1])


def diameter(seed: PreparedSeed) -> float:
    """Return the diameter of the disc with the area of all lesions; 0 without."""
    return 0.0 if seed.mask is None else 2.0 * math.sqrt(int(np.count_nonzero(seed.mask)) / math.pi)


def pieces(solid: Mask, seed: PreparedSeed, ladder: Ladder, covered: int) -> tuple[dict[str, Json], dict[str, float]]:
    """Return the effect's data (count, places, grid) and the facts of what is covered."""
    lines = np.flatnonzero(solid.any(axis=1))
    top, bottom = int(lines[0]), int(lines[-1]) + 1
    number, _, stats, middles = cv2.connectedComponentsWithStats(solid[top:bottom].view(np.uint8))
    areas = stats[1:, cv2.CC_STAT_AREA]
    order = [int(index) for index in np.argsort(-areas, kind="stable") if areas[index] >= SMALLEST_PIECE] or [0]
    rows, columns = solid.shape
    places = [
        [round((middles[1 + i][0] + 0.5) / columns, 4), round((middles[1 + i][1] + top + 0.5) / rows, 4)]
        for i in (order if number > 1 else [])
    ]
    facts = {"object_area": covered / ladder.field}
    if lesion_distance(seed) is not None:
        nearest = float(ladder.scene.free.ravel()[ladder.places[:covered]].min())
        facts["lesion_distance"] = nearest * ladder.scene.cell
    first = places[0] if places else [0.5, 0.5]
    return {
        "count": len(places),
        "x": first[0],
        "y": first[1],
        "places": list[Json](places),
        "grid": grid_shares(solid.view(np.uint8)),
    }, facts


def swatch_window(
    swatch: Swatch, rng: np.random.Generator, shape: tuple[int, int]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return a random window of a swatch, mirrored beyond its sides: albedo, and height, opacity and wetness.

    Both are uint8 of ``shape`` with three channels.
    """
    albedo, surface = _mirrored(swatch)
    top, left, pose = (int(value) for value in rng.integers((len(albedo) // 2, len(albedo) // 2, 4)))
    place = (slice(top, top + shape[0]), slice(left, left + shape[1]))
    turn = (slice(None, None, -1 if pose & 1 else 1), slice(None, None, -1 if pose & 2 else 1))
    return albedo[place][turn], surface[place][turn]


@lru_cache(maxsize=32)
def _mirrored(swatch: Swatch) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    surface = np.dstack([swatch.height, swatch.opacity, swatch.wetness])
    pair = []
    for part in (swatch.albedo, surface):
        mirrored = np.concatenate([part, part[:, ::-1]], axis=1)
        mirrored = np.concatenate([mirrored, mirrored[::-1]])
        times = -(-2 * LONGER_SIDE // len(mirrored))
        pair.append(np.tile(mirrored, (times, times, 1)))
    return pair[0], pair[1]
