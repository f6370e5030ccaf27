"""Landmarks and diseases: ringed openings, velvet, growth beyond the z-line, cushions, sites of a removal."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from medtest.simlab.seeing.colours import Palette
from medtest.simlab.seeing.sight import Thing
from medtest.simlab.seeing.view import Bools, Floats, PictureView, Region, cells_of, closed, filled, hull_of, regions

_ANGLES = 96
_Z_LINE = 0.50
"""Usual distance of the z-line from the lumen's centre, in half sides of the picture."""
_BEYOND = 0.565
"""Distance beyond which coloured tissue has grown past the z-line."""


@dataclass(frozen=True, eq=False)
class LocatedThing:
    """A landmark, a disease or an instrument, and the area it covers, bool h×w."""

    thing: Thing
    mask: Bools


def is_velvet(view: PictureView) -> bool:
    """Return True if the whole wall is rough at the scale of villi, like the ileum's."""
    grey = cv2.cvtColor(view.rgb, cv2.COLOR_RGB2GRAY).astype(np.float32)
    fine = abs(grey - cv2.GaussianBlur(grey, (0, 0), 2.0))
    inner = cv2.erode(view.field.astype(np.uint8), np.ones((9, 9), np.uint8)).astype(np.bool_)
    # Rough everywhere: the median ignores the edges of folds and objects.
    return bool(inner.any()) and float(np.median(fine[inner])) > 3.0


def ringed_opening(view: PictureView, palette: Palette, occupied: Bools) -> LocatedThing | None:
    """Return a pylorus or an appendix opening: a red, pink or yellow disc with a dark hole."""
    best: tuple[int, LocatedThing] | None = None
    for colour in ("red", "pink", "yellow"):
        mask = palette.mask(colour) & ~occupied
        for region in regions(mask, 300):
            whole = hull_of(region.mask)
            hole = whole & (view.light < 105) & ~mask
            share = float(hole.sum()) / max(1, int(whole.sum()))
            round_ = region.filled > 0.75 * region.hull and region.elongation < 1.7
            if not (round_ and 0.05 < share < 0.6 and _surrounded(hole, whole)):
                continue
            name = "pylorus" if palette.lining in ("stomach", "pylorus") else "cecum"
            thing = Thing(name=name, cells=cells_of(whole), colours=(colour,))
            if best is None or region.area > best[0]:
                best = (region.area, LocatedThing(thing, whole))
    return None if best is None else best[1]


def _surrounded(hole: Bools, whole: Bools) -> bool:
    """Return True if the dark area is inside rather than at the rim."""
    inner = cv2.erode(whole.astype(np.uint8), np.ones((9, 9), np.uint8)).astype(np.bool_)
    return bool(hole.any()) and float((hole & inner).sum()) > 0.6 * float(hole.sum())


def ileum(view: PictureView, palette: Palette) -> LocatedThing:
    """Return the ileum, which fills the picture."""
    colour = "pink" if palette.lining == "pink ileum" else "yellow"
    whole = np.ones(view.shape, np.bool_)
    return LocatedThing(Thing(name="ileum", cells=cells_of(whole), colours=(colour,)), whole)


def colitis(view: PictureView) -> LocatedThing:
    """Return ulcerative colitis: the wall is red all over, with yellow pus."""
    whole = np.ones(view.shape, np.bool_)
    return LocatedThing(Thing(name="ulcerative colitis", cells=cells_of(whole), colours=("red", "yellow")), whole)


def site_of_removal(view: PictureView) -> Bools | None:
    """Return the site of a removed polyp, a pale floor in a ring of blue dye, bool h×w; None if there is none."""
    dye = view.lit & (view.warm < 0.2) & (view.blue < -0.14)
    pale = view.lit & (abs(view.warm - 0.07) < 0.13) & (view.blue > 0.0) & (view.blue < 0.36) & (view.light > 170)
    pale = cv2.morphologyEx(pale.astype(np.uint8), cv2.MORPH_OPEN, np.ones((5, 5), np.uint8)).astype(np.bool_)
    for region in regions(pale, 300):
        around = cv2.dilate(region.mask.astype(np.uint8), np.ones((25, 25), np.uint8)).astype(np.bool_) & ~region.mask
        if float(dye[around].mean()) > 0.22:
            whole = filled(closed(around & (dye | pale) | region.mask, 9))
            return np.asarray(whole | around, np.bool_)
    return None


def is_cushions(region: Region) -> bool:
    """Return True if a purple blob is a group of cushions: three adjoining lobes, each lit separately."""
    depth = cv2.distanceTransform(region.mask.astype(np.uint8), cv2.DIST_L2, 5)
    inscribed = float(depth.max())
    lobed = float(region.filled) / (np.pi * inscribed * inscribed)
    return region.area > 2200 and region.solidity < 0.95 and lobed > 1.45


# ------------------------------------------------------------------------------------------------------- oesophagus


def lumen(view: PictureView) -> tuple[float, float] | None:
    """Return column and row of a dark round opening near the centre; None if there is none."""
    height, width = view.shape
    dark = view.field & (view.light < 75)
    best: tuple[float, tuple[float, float]] | None = None
    for region in regions(dark, 300):
        x, y = region.centre
        off = float(np.hypot(x / width - 0.5, y / height - 0.5))
        if off < 0.16 and region.elongation < 1.6 and (best is None or region.area > best[0]):
            best = (region.area, (x, y))
    return None if best is None else best[1]


def oesophagus(view: PictureView, palette: Palette, tools: Bools) -> tuple[LocatedThing | None, LocatedThing | None]:
    """Return the z-line and any growth or erosion beyond it.

    Args:
        view: The picture.
        palette: Colours of the picture.
        tools: Area of the instruments.
    """
    middle = lumen(view)
    if middle is None:
        return None, None
    red, faint, pink = palette.mask("red"), palette.mask("faint red"), palette.mask("pink")
    radius, turn = _polar(view, middle)
    near = (radius > 0.26) & (radius < 0.42) & ~tools
    colour = "red" if float(red[near].mean()) > float(pink[near].mean()) else "pink"
    coloured = closed(red | faint | pink, 5) | closed(red, 13) | (radius < 0.3)
    grown = coloured & ~(tools | (pink & (radius > 0.56)))
    reach = _reach(grown, radius, turn)
    finite = np.isfinite(reach)
    # The z-line is visible where nothing has grown; elsewhere its usual distance is assumed.
    inner = (radius > 0.2) & (radius < np.minimum(_Z_LINE, np.nan_to_num(reach, nan=_Z_LINE)[turn]))
    line = LocatedThing(Thing(name="z-line", cells=cells_of(inner), colours=(colour,)), inner)
    beyond = float((reach[finite] > _BEYOND).mean()) if finite.any() else 0.0
    outside = (red | faint) & (radius > 0.46) & (radius < np.nan_to_num(reach, nan=_Z_LINE)[turn] + 0.02) & ~tools
    if float(outside.sum()) < 0.01 * outside.size or beyond < 0.06:
        return line, None
    weak = float((faint & outside).sum()) > 0.5 * float(outside.sum())
    cells = cells_of(outside)
    if beyond < 0.42:
        return line, LocatedThing(Thing(name="oesophagitis", cells=cells, colours=("red", "white")), outside)
    long = float(np.median(reach[finite])) > 0.70
    name = "barretts" if long else "short-segment barretts"
    return line, LocatedThing(Thing(name=name, cells=cells, colours=("red",), contrast=0.3 if weak else 1.0), outside)


def _polar(
    view: PictureView, middle: tuple[float, float]
) -> tuple[Floats, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Return each pixel's distance from a point in half sides, and the number of its direction."""
    height, width = view.shape
    half = min(height, width) / 2
    x = (np.arange(width, dtype=np.float32)[None, :] - np.float32(middle[0])) / np.float32(half)
    y = (np.arange(height, dtype=np.float32)[:, None] - np.float32(middle[1])) / np.float32(half)
    turn = ((np.arctan2(y, x) / (2 * np.pi) + 1.0) % 1.0 * _ANGLES).astype(np.int64) % _ANGLES
    return np.asarray(np.sqrt(x * x + y * y), np.float32), turn


def _reach(mask: Bools, radius: Floats, turn: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
    """Return the distance to which a mask extends without a gap, for each direction."""
    steps = np.arange(0.30, 1.0, 0.02)
    reach = np.full(_ANGLES, np.nan, np.float32)
    number = np.clip(((radius - steps[0]) / 0.02).astype(np.int64), -1, len(steps))
    inside = (number >= 0) & (number < len(steps))
    flat = turn[inside] * len(steps) + number[inside]
    total = np.bincount(flat, minlength=_ANGLES * len(steps)).reshape(_ANGLES, -1)
    on = np.bincount(flat, weights=mask[inside], minlength=_ANGLES * len(steps)).reshape(_ANGLES, -1)
    for angle in range(_ANGLES):
        share = on[angle] / np.maximum(total[angle], 1)
        gaps = np.flatnonzero(share < 0.5)
        reach[angle] = steps[gaps[0]] if len(gaps) else 1.0
    return reach
