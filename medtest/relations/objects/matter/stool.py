"""Stool: opaque matter with rounded rims, lit by the scene, and thin liquid around it that lets tissue through.

Colours, roughness and rims follow pictures of the Boston scale's scores 0–2: 13 L lighter, 9 less red and 13 yellower
than the mucosa around, standard deviation of L within one object 14, three times the mucosa's small reflections, few
large pieces that reach the rim of the field.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from medtest.relations.objects.matter.ladder import Ladder, Matter, gradient, smooth, swatch_window
from medtest.relations.objects.matter.noise_bank import window
from medtest.relations.objects.matter.swatches import Swatch
from medtest.relations.objects.scene import Floats, Scene

SIDE, RIM, LOW, MID, FINE, VALLEY = 1.0, 1.25, 0.85, 0.34, 0.045, 0.35
"""Shares in the potential: gravity, nearness to the rim of the field, lumps from large to small, folds' valleys."""
RIM_REACH = 0.10
"""Distance from the rim of the field, as share of the longer side, at which its share has halved."""
ROUNDING = 9.0
"""Distance in work cells from a rim at which matter reaches its full height."""
HEIGHT = 5.0
"""Height there in work cells."""
LUMPS = 3.4
"""Height in work cells of lumps with one standard deviation of the noise."""
FILM = (0.30, 0.5)
"""Reach of thin liquid below the threshold, in potential, and its strength."""
STAIN = (1.0, 0.90, 0.60)
"""Share of R, G and B that thin liquid lets through."""
BRIGHTEST = 1.25
"""Largest light that matter takes up; brighter places of a picture burn out by reflections, not by matter."""
TONE = 0.07
"""Standard deviation of brightness between parts of it, as share."""
AMBIENT = 0.34
"""Light that reaches places turned away from the lamp, as share."""
GLINT = (0.972, 0.997)
"""Cosine between surface and lamp at which a wet place begins to shine, and shines fully."""


@dataclass(frozen=True, eq=False)
class Stool(Matter):
    """Stool of one swatch.

    Attributes:
        swatch: Its matter.
        wetness: Factor on the swatch's wetness.
    """

    swatch: Swatch
    wetness: float = 1.0
    kind: ClassVar[str] = "feces"
    fringe: ClassVar[float] = FILM[0] + 0.1

    def potential(self, scene: Scene, rng: np.random.Generator) -> tuple[Floats, dict[str, Floats]]:
        """Return the potential: near the rim, on the side where gravity draws, in valleys, in lumps."""
        angle = float(rng.uniform(0.0, 2.0 * math.pi))
        low, mid, fine = (window(band, rng, scene.shape) for band in ("low", "mid", "fine"))
        side = scene.lamp_x * np.float32(-math.cos(angle) / 0.6) + scene.lamp_y * np.float32(-math.sin(angle) / 0.6)
        near = scene.rim * np.float32(1.0 / (RIM_REACH * max(scene.shape)))
        rim = np.float32(1.0) / (np.float32(1.0) + near * near)
        lumps = np.float32(LOW) * low + np.float32(MID) * mid + np.float32(FINE) * fine
        potential = np.float32(SIDE) * side + np.float32(RIM) * rim + lumps + np.float32(VALLEY) * scene.valley
        albedo, surface = swatch_window(self.swatch, rng, scene.shape)
        height = (surface[..., 0].astype(np.float32) - np.float32(128)) * np.float32(1 / 16)
        slope_x, slope_y = gradient(height + np.float32(LUMPS) * mid)
        tint = np.sqrt(np.array(scene.tint, np.float32)).clip(0.88, 1.08)
        tone = np.minimum(scene.light, np.float32(BRIGHTEST)) * (np.float32(1.0) + np.float32(TONE) * low)
        colour = albedo.astype(np.float32) * tone[..., None] * tint
        wet = surface[..., 2].astype(np.float32) * np.float32(self.wetness / 255)
        film = smooth(mid + np.float32(0.8) * fine, -1.2, 1.0) * (surface[..., 1] > 0)
        return potential, {
            "slope_x": slope_x,
            "slope_y": slope_y,
            "colour": colour,
            "wet": wet * smooth(scene.light, 0.3, 0.9),
            "film": film,
            "opacity": surface[..., 1].astype(np.float32) * np.float32(1 / 255),
            "lamp_x": scene.lamp_x,
            "lamp_y": scene.lamp_y,
        }

    def shade(self, ladder: Ladder, threshold: float, count: int) -> tuple[Floats, Floats]:
        """Return light and transmission of the covered places and the film around them."""
        part = {name: values[:count] for name, values in ladder.parts.items()}
        over = ladder.potential[:count] - np.float32(threshold)
        across, down = part["across"], part["down"]
        steep = np.maximum(np.sqrt(across * across + down * down), np.float32(0.008))
        depth = over / steep
        width = ladder.scene.blur / ladder.scene.cell * 1.6
        cover = smooth(depth, -0.5 * width, 0.5 * width)
        # A rim rises as a quarter of a circle would, flattening towards the inside.
        rest = np.float32(1.0) - np.clip(depth * np.float32(1.0 / ROUNDING), 0.0, 1.0)
        rise = rest * np.float32(2.0 * HEIGHT / ROUNDING) / steep
        slope_x, slope_y = part["slope_x"] + rise * across, part["slope_y"] + rise * down
        lamp_x, lamp_y = part["lamp_x"], part["lamp_y"]
        one = np.float32(1.0)
        facing = (one - slope_x * lamp_x - slope_y * lamp_y) / np.sqrt(
            (one + slope_x * slope_x + slope_y * slope_y) * (one + lamp_x * lamp_x + lamp_y * lamp_y)
        )
        lit = np.float32(AMBIENT) + np.float32(1.2 - AMBIENT) * np.clip(facing, 0.0, 1.0)
        shine = smooth(facing, *GLINT) * part["wet"] * cover
        opaque = cover * part["opacity"]
        film = smooth(over, -FILM[0], 0.0) * part["film"] * np.float32(FILM[1])
        colour = part["colour"] * lit[:, None]
        colour += (np.array(ladder.scene.highlight, np.float32) - colour) * shine[:, None]
        stain = one - film[:, None] * (one - np.array(STAIN, np.float32))
        clear = one - np.maximum(opaque, shine)
        veil = film * np.float32(0.10)
        add = colour * (one - clear)[:, None] + part["colour"] * (veil * clear)[:, None]
        return add, stain * (clear * (one - veil))[:, None]
