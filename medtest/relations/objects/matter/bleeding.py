"""Blood: a film that absorbs light, thicker in pools, with glints where a pool's surface bends.

What lies beneath shows through by the law of Beer and Lambert, red best. Colours follow bleeding in the bowel: 21 L
darker than the mucosa around, 6 redder, smoother and less noisy, hardly a reflection on a film.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from medtest.core.portable import exp
from medtest.relations.objects.matter.ladder import Grids, Ladder, Matter, column, gradient, smooth, swatch_window
from medtest.relations.objects.matter.noise_bank import window
from medtest.relations.objects.scene import Floats, SceneEstimate

SOURCES = 3
"""Places from which blood flows; the first is the strongest."""
LATER = 0.9
"""By how much the potential of a later source lies below that of the one before."""
LOW, MID, FINE, VALLEY, GRAIN, FLOW = 0.36, 0.10, 0.02, 0.6, 0.08, 0.14
"""Shares in the potential: noise from large to small, valleys between folds, grooves of the surface, streaks along
folds."""
DROPS = 8
"""Drops scattered beside the streams."""
ABSORPTION = (0.64, 1.10, 1.22)
"""Absorption of R, G and B by a film of thickness 1."""
THICKEST = 4.0
STEPS = 1024
FRINGE = 0.30
"""Reach of diluted blood below the threshold, in potential."""


@lru_cache(maxsize=1)
def _through() -> Floats:
    """Return the transmission of R, G and B by thickness, float32 of shape (3, STEPS)."""
    thickness = np.arange(STEPS) * (THICKEST / (STEPS - 1))
    return exp(-np.array(ABSORPTION)[:, None] * thickness).astype(np.float32)


@dataclass(frozen=True, eq=False)
class BloodMatter(Matter):
    """Blood of one swatch, whose opacity scales thickness."""

    kind: ClassVar[str] = "blood"
    fringe: ClassVar[float] = FRINGE + 0.02

    def potential(self, scene: SceneEstimate, rng: np.random.Generator) -> tuple[Floats, Grids]:
        """Return the potential: down from sources along gravity, drawn into valleys and grooves."""
        low, mid, fine = (window(band, rng, scene.shape) for band in ("low", "mid", "fine"))
        potential = np.full(scene.shape, -9.0, np.float32)
        lit = scene.field & (scene.rim > 0.05 * max(scene.shape)) & (scene.light > 0.55)
        usable = np.flatnonzero((lit & (scene.free > 0.1 * max(scene.shape))).ravel())
        if usable.size == 0:
            usable = np.flatnonzero(scene.field.ravel())
        sources = [int(usable[min(int(share * usable.size), usable.size - 1)]) for share in rng.random(SOURCES)]
        columns = np.arange(scene.shape[1], dtype=np.float32)[None, :]
        rows = np.arange(scene.shape[0], dtype=np.float32)[:, None]
        cosine, sine = (part / scene.radius for part in scene.gravity)
        for index in range(SOURCES):
            row, column = divmod(sources[index], scene.shape[1])
            x, y = columns - np.float32(column), rows - np.float32(row)
            along, beside = x * np.float32(cosine) + y * np.float32(sine), y * np.float32(cosine) - x * np.float32(sine)
            ahead = np.clip(along, 0.0, 1.0)
            # The stream winds, the more the farther it runs, and spreads.
            beside += np.float32(0.30) * low * np.minimum(ahead, np.float32(0.5)) + np.float32(0.03) * mid
            spread = beside / (np.float32(0.07) + np.float32(0.16) * ahead)
            drop = np.where(along < 0, along * np.float32(-9.0), along * np.float32(1.7 + 0.4 * index))
            length = np.sqrt(spread * spread + drop * drop)
            np.maximum(potential, -length - np.float32(LATER * index), out=potential)
        potential += np.float32(LOW) * low + np.float32(MID) * mid + np.float32(FINE) * fine
        potential += np.float32(VALLEY) * scene.valley + np.float32(GRAIN) * scene.grain
        potential += np.float32(FLOW) * scene.flow
        self._drip(potential, scene, sources[0], rng)
        albedo, surface = swatch_window(self.swatch, rng, scene.shape)
        height = (surface[..., 0].astype(np.float32) - np.float32(128)) * np.float32(1 / 16)
        slope_x, slope_y = gradient(height + np.float32(0.8) * mid)
        return potential, {
            "slope_x": slope_x,
            "slope_y": slope_y,
            "albedo": albedo,
            "surface": surface,
            "light": scene.light,
            "mid": mid,
            "grain": scene.grain,
        }

    def dress(self, scene: SceneEstimate, part: Grids) -> dict[str, Floats]:
        """Return colour, wetness and unevenness of the places."""
        light = np.minimum(part["light"], np.float32(1.25))
        return {
            "colour": np.ascontiguousarray(part["albedo"].T, np.float32) * light * column(scene.tint),
            "wet": part["surface"][:, 2] * np.float32(self.wetness / 255) * smooth(light, 0.4, 0.9),
            "uneven": np.float32(1.0) + np.float32(0.14) * part["mid"] + np.float32(0.15) * part["grain"],
        }

    def _drip(self, potential: Floats, scene: SceneEstimate, source: int, rng: np.random.Generator) -> None:
        """Add uneven drops of one to four cells, below a source, to a potential in place."""
        rows, columns = potential.shape
        middle_row, middle_column = divmod(source, columns)
        down_x, down_y = scene.gravity
        for ahead, aside, size, rank in rng.random((DROPS, 4)):
            along, beside = (1.0 * float(ahead) - 0.2) * scene.radius, (float(aside) - 0.5) * 0.9 * scene.radius
            row = middle_row + round(along * down_y + beside * down_x)
            column = middle_column + round(along * down_x - beside * down_y)
            radius = 1.0 + 2.6 * float(size) * float(size)
            reach = math.ceil(1.6 * radius)
            if not (reach <= row < rows - reach and reach <= column < columns - reach):
                continue
            place = (slice(row - reach, row + reach + 1), slice(column - reach, column + reach + 1))
            y = np.arange(-reach, reach + 1, dtype=np.float32)[:, None]
            x = np.arange(-reach, reach + 1, dtype=np.float32)[None, :]
            hill = np.float32(0.2 - 1.5 * rank) - (x * x + y * y) * np.float32(0.8 / (radius * radius))
            np.maximum(potential[place], hill + np.float32(0.3) * scene.flow[place], out=potential[place])

    def shade(self, ladder: Ladder, threshold: float, count: int) -> tuple[Floats, Floats]:
        """Return light and transmission of the film and its diluted fringe."""
        part = {name: values[..., :count] for name, values in ladder.parts.items()}
        over = ladder.potential[:count] - np.float32(threshold)
        across, down = part["across"], part["down"]
        steep = np.maximum(np.sqrt(across * across + down * down), np.float32(0.012))
        depth = over / steep
        width = ladder.scene.blur / ladder.scene.cell * 1.7
        cover = smooth(depth, -0.5 * width, 0.5 * width)
        inside = np.clip(over, 0.0, 1.6)
        fringe = smooth(over, -FRINGE, 0.05) * np.float32(0.30)
        thickness = (cover * (np.float32(0.55) + np.float32(1.7) * inside) + fringe) * np.maximum(part["uneven"], 0.3)
        table = np.minimum(thickness * np.float32((STEPS - 1) / THICKEST), np.float32(STEPS - 1)).astype(np.intp)
        through = _through().take(table, axis=1)
        unit = np.float32(1.0)
        # The surface of a pool is flat but for its rim, where it bends down: the meniscus.
        rest = unit - np.clip(depth * np.float32(1 / 3.5), 0.0, 1.0)
        rise = rest * np.float32(0.7) / steep
        facing = self.facing(part, rise)
        deep = smooth(thickness, 0.8, 2.2)
        shine = smooth(facing, 0.994, 0.9998) * part["wet"] * deep
        body = (unit - through[0]) * (np.float32(0.55) + np.float32(0.45) * np.clip(facing, 0.0, 1.0))
        add = part["colour"] * body
        add += (column(ladder.scene.highlight) - add) * shine
        return add, through * (unit - shine)
