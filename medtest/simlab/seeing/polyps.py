"""Polyps: blobs of a colour other than the wall's, with their size and shape."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from medtest.simlab.seeing.colours import Palette, distance
from medtest.simlab.seeing.sight import Thing
from medtest.simlab.seeing.view import SIDE, Bools, PictureView, Region, cells_of, regions

MILLIMETRES = 45.0
"""Length of a picture's shorter side; the product is calibrated for one distance."""
SMALLEST = 2.0
"""Diameter of the smallest blob that counts as a polyp, in millimetres."""
_FLAT = 0.042
"""Relative variation of light over a blob below which it is flat."""
_STALK = (0.40, 0.13)
"""Hue of a stalk: normal mucosa, closer to the light than the wall."""
_COLOURS = ("red", "pink", "white", "yellow", "orange", "brown", "purple", "blue")


def blobs(view: PictureView, palette: Palette, occupied: Bools) -> list[tuple[str, Region]]:
    """Return blobs by colour, the largest first.

    Args:
        view: The picture.
        palette: Colours of the picture.
        occupied: Area recognised as something else, bool h×w.
    """
    least = int(np.pi / 4 * (SMALLEST * SIDE / MILLIMETRES) ** 2)
    candidates: list[tuple[str, Region]] = []
    for colour in _COLOURS:
        mask = palette.mask(*(("pink", "faint pink") if colour == "pink" else (colour,))) & ~occupied
        mask = _opened(mask, 5 if colour in ("white", "pink") else 3)
        for region in regions(mask, least):
            if _rounded(region, colour) and not _glare(view, region, colour):
                faint = float(palette.mask("faint pink")[region.mask].mean()) > 0.5
                candidates.append(("faint pink" if faint else colour, region))
    return _single(sorted(candidates, key=lambda pair: -pair[1].area))


def _opened(mask: Bools, side: int) -> Bools:
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
    opened = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, kernel)
    return np.asarray(opened, np.bool_)


def _rounded(region: Region, colour: str) -> bool:
    strict = 0.86 if colour in ("white", "brown", "pink") else 0.8
    return region.solidity > strict and region.elongation < 2.1


def _glare(view: PictureView, region: Region, colour: str) -> bool:
    """Return True if a white blob is a highlight, overexposed in every channel."""
    return colour == "white" and float(np.median(view.rgb[region.mask].min(axis=1))) > 244


def _single(candidates: list[tuple[str, Region]]) -> list[tuple[str, Region]]:
    separate: list[tuple[str, Region]] = []
    for colour, region in candidates:
        # A faint blob attached to another is its stalk.
        reach = cv2.dilate(region.mask.astype(np.uint8), np.ones((9, 9), np.uint8)).astype(np.bool_)
        if colour == "faint pink" and any((blob.mask & reach).any() for _, blob in separate):
            continue
        separate.append((colour, region))
    return separate


def describe(fine: PictureView, colour: str, region: Region) -> Thing:
    """Return a blob as a polyp.

    Args:
        fine: The picture at :data:`medtest.simlab.seeing.view.FINE`.
        colour: Colour of the blob.
        region: Area of the blob, at :data:`medtest.simlab.seeing.view.SIDE`.
    """
    size = (fine.shape[1], fine.shape[0])
    mask = cv2.resize(region.mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST).astype(np.bool_)
    short = min(region.mask.shape)
    plain = "pink" if colour == "faint pink" else colour
    return Thing(
        name="polyp",
        cells=cells_of(region.mask),
        colours=(plain,),
        millimetres=2.0 * float(np.sqrt(region.filled / np.pi)) * MILLIMETRES / short,
        shape=_shape(fine, mask),
        contrast=0.2 if colour == "faint pink" else 1.0,
    )


def _shape(fine: PictureView, mask: Bools) -> str:
    inside = cv2.erode(mask.astype(np.uint8), np.ones((3, 3), np.uint8), iterations=3).astype(np.bool_)
    light = fine.light[inside if inside.sum() > 50 else mask]
    if float(light.std() / max(1.0, light.mean())) < _FLAT:
        return "flat"
    return "pedunculated" if _stalked(fine, mask) else "sessile"


def _stalked(fine: PictureView, mask: Bools) -> bool:
    """Return True if a strip of mucosa that differs from its surroundings leaves the head at some point of the rim."""
    rows, columns = np.nonzero(mask)
    x, y = float(columns.mean()), float(rows.mean())
    radius = float(np.sqrt(mask.sum() / np.pi))
    for turn in np.arange(48) * (2 * np.pi / 48):
        dx, dy = float(np.cos(turn)), float(np.sin(turn))
        rim = _rim(mask, x, y, dx, dy, 2.2 * radius)
        along = np.linspace(rim + 0.12 * radius + 2, rim + 0.55 * radius + 3, 8)
        middle = _strip(fine, (x, y, dx, dy), along, np.linspace(-0.18, 0.18, 5) * radius)
        beside = _strip(fine, (x, y, dx, dy), along, np.array([-0.8, -0.7, -0.6, 0.6, 0.7, 0.8]) * radius)
        if middle is None or beside is None:
            continue
        differs = (beside[0] - middle[0]) + (beside[1] - middle[1])
        if differs > 0.085 and distance(middle, _STALK) < 0.06:
            return True
    return False


def _rim(mask: Bools, x: float, y: float, dx: float, dy: float, most: float) -> float:
    steps = np.arange(0.0, most)
    columns = np.clip((x + steps * dx).astype(np.int64), 0, mask.shape[1] - 1)
    rows = np.clip((y + steps * dy).astype(np.int64), 0, mask.shape[0] - 1)
    on = mask[rows, columns]
    return float(steps[on].max()) if on.any() else 0.0


def _strip(
    fine: PictureView, way: tuple[float, float, float, float], along: Any, across: Any
) -> tuple[float, float] | None:
    """Return the mean hue of points along and across a direction; None if too few are in the field."""
    x, y, dx, dy = way
    a, b = np.meshgrid(along, across)
    columns, rows = (x + a * dx - b * dy).astype(np.int64), (y + a * dy + b * dx).astype(np.int64)
    inside = (columns >= 0) & (columns < fine.shape[1]) & (rows >= 0) & (rows < fine.shape[0])
    columns, rows = columns[inside], rows[inside]
    lit = fine.lit[rows, columns]
    if lit.sum() < 20:
        return None
    rows, columns = rows[lit], columns[lit]
    return float(fine.warm[rows, columns].mean()), float(fine.blue[rows, columns].mean())
