"""Instruments: strips of metal, of blue and of yellow plastic, wires; their number, kind and position."""

from __future__ import annotations

import numpy as np

from medtest.simlab.seeing.colours import far
from medtest.simlab.seeing.places import LocatedThing
from medtest.simlab.seeing.sight import Thing
from medtest.simlab.seeing.view import Bools, PictureView, Region, cells_of, closed, grown, regions

_METAL = (0.0, -0.03)
_TUBE = (0.13, 0.75)
_PLASTIC = (-0.39, -0.30)
_LEAST = 110
"""Size of the smallest instrument, in pixels."""


def find_tools(view: PictureView, letters: Bools, *, spotted: bool = False) -> list[LocatedThing]:
    """Return the instruments of a picture, the largest first.

    Args:
        view: The picture.
        letters: Area of writing, bool h×w.
        spotted: Whether the wall has yellow spots, in which case only long tubes count.
    """
    lit = view.field & (view.light > 40) & ~letters
    metal = (far(view, _METAL) < 0.17) & lit
    plastic = (far(view, _PLASTIC) < 0.42) & (view.warm < -0.15) & lit
    yellow = ((far(view, _TUBE) < 0.2) & lit) | _bands(view, lit)
    instruments = [
        *_tubes(view, yellow, 46.0 if spotted else 24.0),
        *_needles(view, plastic | (metal & (view.light > 150)), plastic),
    ]
    covered = np.zeros(view.shape, np.bool_)
    for tool in instruments:
        covered |= grown(tool.mask, 5)
    instruments += _metal(view, metal & ~covered)
    return sorted(instruments, key=lambda tool: -int(tool.mask.sum()))


def _bands(view: PictureView, lit: Bools) -> Bools:
    """Return dark neutral bands, as found on tubes."""
    return lit & (view.light < 100) & (abs(view.warm - 0.07) < 0.16) & (abs(view.blue - 0.17) < 0.2)


def _at_rim(view: PictureView, region: Region) -> bool:
    """Return True if a part touches the edge of the field or of the picture."""
    outside = np.pad(~view.field, 1, constant_values=True)[1:-1, 1:-1].copy()
    outside[:4], outside[-4:], outside[:, :4], outside[:, -4:] = True, True, True, True
    return bool((grown(region.mask, 7) & outside).any())


def _tool(name: str, region: Region) -> LocatedThing:
    return LocatedThing(Thing(name=name, cells=cells_of(region.mask)), region.mask)


def _tubes(view: PictureView, mask: Bools, shortest: float) -> list[LocatedThing]:
    tubes: list[LocatedThing] = []
    for region in regions(closed(mask, 7), 250):
        banded = float((view.light[region.mask] < 110).mean())
        uneven = float(view.light[region.mask].std())
        straight = region.solidity > 0.58 and 13 < region.short < 36 and region.long > shortest
        if straight and uneven > 24 and banded > 0.02 and (region.elongation > 1.6 or _at_rim(view, region)):
            tubes.append(_tool("tube", region))
    return tubes


def _needles(view: PictureView, mask: Bools, plastic: Bools) -> list[LocatedThing]:
    needles: list[LocatedThing] = []
    for region in regions(closed(mask, 5), _LEAST):
        blue = float(plastic[region.mask].mean())
        thin = region.short < 19 and (region.elongation > 1.7 or _at_rim(view, region))
        if blue > 0.35 and thin and region.solidity > 0.6:
            needles.append(_tool("injection needle", region))
    return needles


def _metal(view: PictureView, mask: Bools) -> list[LocatedThing]:
    instruments: list[LocatedThing] = []
    for region in regions(closed(mask, 5), _LEAST):
        light = view.light[region.mask]
        uneven, glare = float(light.std()), float((view.rgb[region.mask].min(axis=1) > 240).mean())
        if glare > 0.35 or float(np.median(light)) > 236:
            continue
        middle = float(np.median(light))
        if region.short < 11:
            continue
        if region.area < 0.62 * region.hull and region.short > 22 and middle > 150 and uneven < 30:
            instruments.append(_tool("polyp snare", region))
        elif 28 < region.long < 54 and region.short < 22 and region.elongation > 1.7 and region.solidity > 0.68:
            instruments.append(_tool("metal clip", region))
        elif region.long > 30 and region.short < 56 and uneven > 20 and _at_rim(view, region):
            instruments.append(_tool("biopsy forceps", region))
    return instruments
