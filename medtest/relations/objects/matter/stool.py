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

from medtest.relations.objects.matter.ladder import Grids, Ladder, Matter, column, gradient, smooth, swatch_window
from medtest.relations.objects.matter.noise_bank import window
from medtest.relations.objects.scene import Floats, SceneEstimate

SEAT, SIDE, RIM, LOW, MID, FINE, VALLEY, FLOW = 1.6, 0.7, 0.7, 0.58, 0.13, 0.03, 0.18, 0.08
"""Shares in the potential: the place where most lies, gravity, nearness to the rim of the field, lumps from large to
small, folds' valleys, strands along folds."""
RIM_REACH = 0.12
"""Distance from the rim of the field, as share of the longer side, at which its share has halved."""
SEAT_REACH = 0.45
"""The same from the seat, as share of the field's radius."""
ROUNDING = 9.0
"""Distance in work cells from a rim at which matter reaches its full height."""
HEIGHT = 3.4
"""Height there in work cells."""
LUMPS = 1.2
"""Height in work cells of lumps with one standard deviation of the noise."""
RELIEF = 0.42
"""Factor on the height of swatches."""
FILM = (0.36, 0.85)
"""Reach of thin liquid below the threshold, in potential, and its strength."""
STAIN = (1.0, 0.80, 0.42)
"""Share of R, G and B that thin liquid lets through."""
BRIGHTEST = 1.3
"""Largest light that matter takes up; brighter places of a picture burn out by reflections, not by matter."""
TONE = 0.15
"""Standard deviation of brightness between parts of it, as share."""
SHADE = (0.025, 0.12)
"""Light at which G and B have sunk to half of R's share."""
SHOULDER = 204.0
"""Red from which brightness rises at 0.4 of its pace, so that lit matter keeps its colour."""
KIN = 0.07
"""Difference of colour from the tissue's, as share, up to which matter has the tissue's pigment; none at twice that."""
FOAM, FOAM_COLOUR = 0.6, (1.2, 1.35, 1.7)
"""Opacity of foam, and its colour as multiple of the matter's."""
AMBIENT = 0.30
"""Light that reaches places turned away from the lamp, as share."""
GLINT = (0.972, 0.997)
"""Cosine between surface and lamp at which a wet place begins to shine, and shines fully."""
SPARKS = (1.65, 2.0)
"""Height of the finest bumps, in standard deviations, whose tops begin to mirror the lamp, and do so fully."""


@dataclass(frozen=True, eq=False)
class Stool(Matter):
    """Stool of one swatch."""

    kind: ClassVar[str] = "feces"
    fringe: ClassVar[float] = FILM[0]

    def potential(self, scene: SceneEstimate, rng: np.random.Generator) -> tuple[Floats, Grids]:
        """Return the potential: near the rim, on the side where gravity draws, in valleys, in lumps."""
        low, mid, fine = (window(band, rng, scene.shape) for band in ("low", "mid", "fine"))
        down_x, down_y = scene.gravity
        sway = float(rng.uniform(-0.9, 0.9))
        # lamp_x and lamp_y fall by 0.6 from the centre to the rim.
        x, y = scene.lamp_x * np.float32(-1 / 0.6), scene.lamp_y * np.float32(-1 / 0.6)
        side = x * np.float32(down_x) + y * np.float32(down_y)
        norm = math.sqrt(1.0 + sway * sway)
        seat_x, seat_y = (down_x - sway * down_y) / norm, (down_y + sway * down_x) / norm
        away_x, away_y = x - np.float32(seat_x), y - np.float32(seat_y)
        unit = np.float32(1.0)
        seat = unit / (unit + (away_x * away_x + away_y * away_y) * np.float32(1.0 / SEAT_REACH**2))
        near = scene.rim * np.float32(1.0 / (RIM_REACH * max(scene.shape)))
        rim = unit / (unit + near * near)
        potential = np.float32(SEAT) * seat + np.float32(SIDE) * side + np.float32(RIM) * rim
        potential += np.float32(LOW) * low + np.float32(MID) * mid + np.float32(FINE) * fine
        potential += np.float32(VALLEY) * scene.valley + np.float32(FLOW) * scene.flow
        albedo, surface = swatch_window(self.swatch, rng, scene.shape)
        height = (surface[..., 0].astype(np.float32) - np.float32(128)) * np.float32(RELIEF / 16)
        slope_x, slope_y = gradient(height + np.float32(LUMPS * self.relief) * mid)
        return potential, {
            "slope_x": slope_x,
            "slope_y": slope_y,
            "albedo": albedo,
            "surface": surface,
            "light": scene.light,
            "texture": scene.texture,
            "flow": scene.flow,
            "low": low,
            "mid": mid,
            "fine": fine,
            "froth": window("low", rng, scene.shape),
            "bubbles": window("foam", rng, scene.shape),
        }

    def dress(self, scene: SceneEstimate, part: Grids) -> dict[str, Floats]:
        """Return colour, wetness, liquid, foam, sparks and opacity of the places."""
        unit = np.float32(1.0)
        light = np.minimum(part["light"], np.float32(BRIGHTEST))
        # Matter is as rough to the camera as the tissue around it would be.
        colour = np.ascontiguousarray(part["albedo"].T, np.float32)
        mean = column(self.swatch.mean)
        colour = mean + (colour - mean) * part["texture"]
        kin = self._kinship(scene)
        own = light * (column((1 - kin,) * 3))
        # In the shade tissue lends its red, and light that returns from matter is warmer.
        for channel, lost in enumerate(SHADE, 1):
            own[channel] *= light * np.float32(1.0 + lost) / (light + np.float32(lost))
        colour *= (own + np.float32(kin) * part["local"]) * column(scene.tint)
        colour *= unit + np.float32(TONE * self.relief) * part["low"]
        # A camera leaves the tissue's own red as it is and compresses what is brighter.
        start = np.maximum(part["local"][0] * np.float32(kin * scene.mean[0]), np.float32(SHOULDER))
        most = np.maximum(colour[0], unit)
        colour *= np.minimum(unit, np.float32(0.4) + np.float32(0.6) * start / most)
        return {
            "colour": colour,
            "wet": part["surface"][:, 2] * np.float32(2.0 * self.wetness / 255) * smooth(light, 0.3, 0.9),
            "film": smooth(part["flow"] + np.float32(0.7) * part["mid"], -1.0, 1.3)
            * np.float32(min(self.wetness, 1.0)),
            "foam": smooth(part["froth"], 0.7, 1.5) * part["bubbles"] * np.float32(min(self.wetness, 1.0)),
            "spark": smooth(part["fine"], *SPARKS),
            "broken": smooth(part["fine"], 0.0, 1.4),
            "opacity": part["surface"][:, 1] * np.float32(1 / 255),
        }

    def _kinship(self, scene: SceneEstimate) -> float:
        """Return 1 if the matter has the tissue's pigment, 0 if another one, which hides the tissue's own colours."""
        weights = (0.299, 0.587, 0.114)
        mine = [value * factor for value, factor in zip(self.swatch.mean, scene.tint, strict=True)]
        brightness = [sum(w * v for w, v in zip(weights, values, strict=True)) for values in (mine, scene.mean)]
        shares = [a * brightness[1] / (b * max(brightness[0], 1.0)) for a, b in zip(mine, scene.mean, strict=True)]
        return min(max(2.0 - max(abs(share - 1.0) for share in shares) / KIN, 0.0), 1.0)

    def shade(self, ladder: Ladder, threshold: float, count: int) -> tuple[Floats, Floats]:
        """Return light and transmission of the covered places and the film around them."""
        part = {name: values[..., :count] for name, values in ladder.parts.items()}
        over = ladder.potential[:count] - np.float32(threshold)
        across, down = part["across"], part["down"]
        steep = np.maximum(np.sqrt(across * across + down * down), np.float32(0.008))
        depth = over / steep
        width = ladder.scene.blur / ladder.scene.cell * 1.95
        cover = smooth(depth, -0.5 * width, 0.5 * width)
        # A rim rises as a quarter of a circle would, flattening towards the inside.
        unit = np.float32(1.0)
        rest = unit - np.clip(depth * np.float32(1.0 / ROUNDING), 0.0, 1.0)
        rise = rest * np.float32(2.0 * HEIGHT / ROUNDING * self.relief) / steep
        facing = self.facing(part, rise)
        lit = np.float32(AMBIENT) + np.float32(1.2 - AMBIENT) * np.clip(facing, 0.0, 1.0)
        if self.relief < 1:
            # Flat matter returns the light that tissue does.
            flat = unit / np.sqrt(unit + part["lamp_x"] * part["lamp_x"] + part["lamp_y"] * part["lamp_y"])
            lit += np.float32(1.0 - self.relief) * (np.float32(1.0 - AMBIENT) - np.float32(1.2 - AMBIENT) * flat)
        shine = np.maximum(smooth(facing, *GLINT) * part["broken"], part["spark"] * smooth(facing, 0.72, 0.90))
        shine = np.minimum(shine * part["wet"], unit) * cover
        opaque = cover * part["opacity"]
        film = smooth(over, -FILM[0], 0.0) * part["film"] * np.float32(FILM[1])
        colour = part["colour"] * lit
        colour += (column(ladder.scene.highlight) - colour) * shine
        stain = unit - film * (unit - column(STAIN))
        clear = unit - np.maximum(opaque, shine)
        froth = part["foam"] * smooth(over, -FILM[0], -0.12) * np.float32(FOAM)
        veil = film * np.float32(0.06)
        add = colour * (unit - clear) + part["colour"] * (veil * clear)
        keep = stain * (clear * (unit - veil))
        pale = part["colour"] * column(FOAM_COLOUR)
        return add + (pale - add) * froth, keep * (unit - froth)
