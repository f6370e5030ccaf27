"""Drawing of an instrument: its segments over one another, lit by the scene, blended into the picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medtest.core.cases import Image, Mask, PreparedSeed
from medtest.relations.objects.matter.ladder import smooth
from medtest.relations.objects.matter.noise_bank import SIDE as SIDE_OF_TILE
from medtest.relations.objects.matter.noise_bank import tile
from medtest.relations.objects.scene import Floats
from medtest.relations.objects.tools.entering import SHADE, Way
from medtest.relations.objects.tools.shapes import SURFACES, Segment, Surface, ToolShape

RIM = 1.7
"""Width of a smooth step as multiple of its width from 10 to 90 %."""
SIDE = 0.10
"""Light gained on the side that faces the lamp, as share."""
KNEE, PACE = 218.0, 0.5
"""Grey level above which a camera compresses brightness, and its pace there."""
WINDING = 0.22
"""Distance between two windings of a wire, in half-widths."""
PATCHES = 30.0
"""Cells of the noise on a surface, in a half-width."""
DARKENING = 0.42
"""Share of light that the endoscope's shaft takes from the mucosa at its side."""
REDDER = ((0.9,), (1.15,), (1.25,))
"""Share of that for R, G and B."""
MIRRORED = 0.48
"""Mean share of what a surface mirrors that is tissue."""
SHINY = 0.3
"""Unevenness from which a surface is bare metal."""
DIMMER = 0.85
"""Brightness of what is mirrored: tissue beside an instrument is darker than what the lamp meets."""
SPARKS = (1.9, 2.4)
"""Height of the finest bumps, in standard deviations, whose tops begin to mirror the lamp, and do so fully."""
SPARK = 0.55
"""Light of a glint."""
WHITE_CAST = 0.4
"""Share of the colour of the scene's reflections in that of white surfaces."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Band:
    """Pixels of a segment: distances from tip and axis in half-widths, rim, light, and colours of lamp and tissue."""

    away: Floats
    across: Floats
    unit: Floats
    blur: float
    light: Floats
    lamp: float
    cast: Floats
    tissue: Floats


def draw(seed: PreparedSeed, way: Way, model: ToolShape, depth: float, gain: float) -> tuple[Image, Mask]:
    """Return the image with an instrument, and bool H×W, True where it hides more than half of the tissue.

    Args:
        seed: The prepared seed.
        way: The instrument's way into the field.
        model: The instrument.
        depth: How far its tip is from where it enters, in pixels.
        gain: Factor on its brightness.
    """
    scene, tip = way.scene, way.half_at(depth)
    shaded = SHADE * way.radius if "rubber" in {segment.material for segment in model.segments} else 0.0
    count = int(np.searchsorted(way.along, np.float32(depth + scene.blur + shaded), side="left"))
    image = seed.image.copy()
    solid = np.zeros(image.shape[:2], np.bool_)
    if count == 0:
        return image, solid
    band = _Band(
        away=np.float32(depth) - way.along[:count], across=way.across[:count], unit=way.half[:count], blur=scene.blur,
        light=way.light[:count] * np.float32(255.0 * gain), lamp=way.lamp, cast=_cast(scene.highlight),
        tissue=np.array(scene.mean, np.float32)[:, None] * np.float32(DIMMER / max(scene.mean)),
    )  # fmt: skip
    colour, through = np.zeros((3, count), np.float32), np.ones(count, np.float32)
    for segment in model.segments:
        _add(segment, band, tip, colour, through)
    hidden = np.float32(1.0) - through
    colour += way.noise[:count] * hidden
    # Above the knee brightness rises at a slower pace.
    np.minimum(colour, np.float32(PACE) * colour + np.float32(KNEE * (1.0 - PACE)) * hidden, out=colour)
    np.minimum(colour, np.float32(255.0) * hidden, out=colour)
    colour *= way.soft[:count]
    if shaded:
        # What is left of the light comes from tissue around, and is redder.
        shade = _shade(way, band, count, shaded)
        colour += way.behind[:, :count] * (through * (np.float32(1.0) - np.array(REDDER, np.float32) * shade))
    else:
        colour += way.behind[:, :count] * through
    colour += np.float32(0.5)
    places = way.places[:count]
    image.reshape(-1, 3)[places] = np.clip(colour, 0, 255, out=colour).astype(np.uint8).T
    solid.reshape(-1)[places] = hidden > 0.3  # a clear sheath hides 0.35 of what lies below
    return image, solid


def _cast(highlight: tuple[float, float, float]) -> Floats:
    """Return factors on R, G and B of white surfaces, 3×1, from the colour of the scene's reflections."""
    mean = sum(highlight) / 3
    return np.array([[1.0 + WHITE_CAST * (value / mean - 1.0)] for value in highlight], np.float32)


def _add(segment: Segment, band: _Band, tip: float, colour: Floats, through: Floats) -> None:
    """Lay a segment over what is drawn, in place."""
    # Pixels are ordered from the rim to the tip, so that a segment is a part of each array.
    first = int(np.searchsorted(-band.away, np.float32(-segment.end * tip - band.blur), side="left"))
    last = int(np.searchsorted(-band.away, np.float32(-segment.start * tip + band.blur), side="right"))
    if last <= first:
        return
    part = slice(first, last)
    # The head keeps its shape; behind it the sheath widens towards the lens.
    unit = np.maximum(band.unit[part], np.float32(tip)) if segment.end > 100 else np.float32(tip)
    away, across = band.away[part] * np.float32(1.0 / tip), band.across[part] / unit
    if segment.curved:
        away = away - np.float32(segment.curved) * across * across
    if segment.loop:
        place, depth = _loop(segment, away, across)
    else:
        middle, half = segment.middle_and_half(away)
        half = np.maximum(half, np.float32(1e-3))
        place = (across - middle) / half
        depth = np.minimum(half - np.abs(across - middle), np.minimum(away - segment.start, segment.end - away))
    width = RIM * band.blur
    cover = smooth(depth * unit, -0.5 * width, 0.5 * width)
    place = np.clip(place, -1.0, 1.0).astype(np.float32)
    rgb, opacity = _lit(SURFACES[segment.material], band, part, away, place, tip)
    cover *= opacity
    clear = np.float32(1.0) - cover
    colour[:, part] *= clear
    rgb *= cover
    colour[:, part] += rgb
    through[part] *= clear


def _loop(segment: Segment, away: Floats, across: Floats) -> tuple[Floats, Floats]:
    """Return place within the wire (−1 to 1) and depth below its outline, for a wire round an ellipse."""
    length, width = (segment.end - segment.start) / 2, segment.half[1]
    x, y = away - np.float32(segment.start + length), across
    level = x * x * np.float32(1 / length**2) + y * y * np.float32(1 / width**2) - np.float32(1.0)
    slope = np.float32(2.0) * np.sqrt(x * x * np.float32(1 / length**4) + y * y * np.float32(1 / width**4))
    distance = level / np.maximum(slope, np.float32(0.1))
    wire = np.float32(segment.half[0])
    return np.asarray(distance / wire, np.float32), np.asarray(wire - np.abs(distance), np.float32)


def _lit(material: Surface, band: _Band, part: slice, away: Floats, place: Floats, tip: float) -> tuple[Floats, Floats]:
    """Return the light that a surface sends, 3×N, and its opacity."""
    full = np.float32(1.0)
    square = place * place
    fourth = square * square
    value = band.light[part] * (full - np.float32(material.edge) * fourth + np.float32(SIDE * band.lamp) * place)
    if material.winding:
        # Windings finer than the picture's sharpness blur into an even grey.
        contrast = material.winding * WINDING * tip / (WINDING * tip + band.blur)
        turns = (away + np.float32(0.3) * square) * np.float32(1.0 / WINDING)
        wave = np.abs(turns - np.floor(turns) - np.float32(0.5)) * np.float32(4.0) - full
        value = value * (full + np.float32(contrast) * wave)
    row = (away * np.float32(PATCHES) + np.float32(SIDE_OF_TILE)).astype(np.int64) % SIDE_OF_TILE
    column = ((place + full) * np.float32(PATCHES)).astype(np.int64)
    if material.rough:
        value = value * np.maximum(full + np.float32(material.rough) * tile("fine")[row, column], np.float32(0.2))
    rgb = value * (np.array(material.colour, np.float32)[:, None] * band.cast)
    if material.mirror:
        share = np.float32(MIRRORED) + np.float32(material.uneven) * (tile("mid")[row, column] + fourth)
        rgb *= full - np.clip(share, 0.0, 1.0) * (np.float32(material.mirror) * (full - band.tissue))
    if material.uneven > SHINY:
        rgb += band.light[part] * np.float32(SPARK) * smooth(tile("fine")[row, column], *SPARKS) * band.cast
    if material.gloss:
        away_from = (place - np.float32(0.3 * band.lamp)) * np.float32(1.0 / material.stripe)
        rgb += band.light[part] * np.float32(material.gloss) / (full + away_from * away_from) * band.cast
    low, high = material.opacity
    return np.asarray(rgb, np.float32), np.asarray(np.float32(low) + np.float32(high - low) * square, np.float32)


def _shade(way: Way, band: _Band, count: int, width: float) -> Floats:
    """Return the share of light that the endoscope's shaft takes from the mucosa beside it."""
    beside = np.maximum(np.abs(band.across) - band.unit, 0.0)
    beyond = np.maximum(-band.away, 0.0)
    away = np.sqrt(beside * beside + beyond * beyond)
    near = np.maximum(np.float32(1.0) - away * np.float32(1.0 / width), 0.0)
    return np.asarray(np.float32(DARKENING) * near * way.far[:count], np.float32)
