"""Colours by hue alone: each pixel's nearest among the named ones and the wall's."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from medtest.simlab.seeing.view import Bools, Floats, PictureView

Hue = tuple[float, float]
"""ln(R / G) and ln(G / B) of 8-bit values, independent of the light's intensity."""

NAMED: dict[str, Hue] = {
    "red": (1.50, -0.05),
    "pink": (0.42, -0.09),
    "white": (0.03, 0.04),
    "yellow": (0.13, 0.81),
    "orange": (0.54, 1.22),
    "brown": (0.52, 0.54),
    "purple": (0.75, -0.73),
    "blue": (-0.43, -0.65),
}
"""Hues of findings and landmarks."""

WALLS: dict[str, Hue] = {
    "colon": (0.48, 0.20),
    "oesophagus": (0.28, 0.09),
    "stomach": (0.63, 0.36),
    "pylorus": (0.58, 0.31),
    "ileum": (0.24, 0.52),
    "pink ileum": (0.41, 0.05),
    "colitis": (0.93, 0.15),
}
"""Hues of linings."""

FAINT_RED: Hue = (0.57, 0.09)
"""A red that hardly differs from the oesophagus' wall."""
NEAR = 0.2
"""Distance within which a hue matches a named one."""


@dataclass(frozen=True, eq=False)
class Palette:
    """Colour of each pixel.

    Attributes:
        names: Names by number; the last is the wall's.
        number: int8 h×w, -1 where no colour is near or it is too dark.
        wall: The wall's hue.
        lining: The nearest of :data:`WALLS`.
    """

    names: tuple[str, ...]
    number: np.ndarray[tuple[int, ...], np.dtype[np.int8]]
    wall: Hue
    lining: str

    def mask(self, *names: str) -> Bools:
        """Return the area of some colours, bool h×w."""
        numbers = [self.names.index(name) for name in names if name in self.names]
        matches: Bools = np.isin(self.number, numbers)
        return matches


def wall_hue(view: PictureView) -> Hue:
    """Return the most common hue of the field, ignoring blood red unless it covers everything."""
    lit = view.lit
    warm, blue = view.warm[lit], view.blue[lit]
    histogram, edges, _ = np.histogram2d(warm, blue, bins=60, range=[[-1.0, 2.0], [-1.0, 2.0]])
    counts = np.asarray(cv2.GaussianBlur(histogram, (0, 0), 1.0))
    pale = counts.copy()
    pale[edges[:-1] > 1.05] = 0
    peaks = pale if pale.max() > 0.05 * counts.max() else counts
    row, column = np.unravel_index(int(peaks.argmax()), peaks.shape)
    near = (abs(warm - edges[row] - 0.025) < 0.1) & (abs(blue - edges[column] - 0.025) < 0.1)
    if not near.any():
        return float(edges[row] + 0.025), float(edges[column] + 0.025)
    return float(np.median(warm[near])), float(np.median(blue[near]))


def lining_of(hue: Hue, *, velvet: bool) -> str:
    """Return the lining of a hue; ``velvet`` means that its surface is that of the ileum."""
    names = [name for name in WALLS if velvet or name != "pink ileum"]
    return min(names, key=lambda name: distance(WALLS[name], hue))


def distance(hue: Hue, other: Hue) -> float:
    """Return the distance between two hues."""
    return float(np.hypot(hue[0] - other[0], hue[1] - other[1]))


def palette_of(view: PictureView, *, velvet: bool) -> Palette:
    """Return the colours of a picture: for each pixel the nearest of the named ones and the wall's."""
    wall = wall_hue(view)
    lining = lining_of(wall, velvet=velvet)
    hues = dict(NAMED)
    if lining == "colon":
        hues["faint pink"] = (0.97 * wall[0], wall[1] - 0.17)
    if lining == "oesophagus":
        hues["faint red"] = FAINT_RED
    if lining == "stomach":
        del hues["brown"]  # its folds have that hue in their depths
    hues["wall"] = wall
    # A coat of red lets the wall through more visibly than others, so its radius is larger.
    layers = [far(view, hue) * np.float32(0.45 if name == "red" else 1.0) for name, hue in hues.items()]
    stack = np.stack(layers)
    number = stack.argmin(axis=0).astype(np.int8)
    number[(stack.min(axis=0) > NEAR) | ~view.lit] = -1
    return Palette(tuple(hues), number, wall, lining)


def far(view: PictureView, hue: Hue) -> Floats:
    """Return each pixel's distance from a hue, float32 h×w."""
    return np.asarray(np.hypot(view.warm - np.float32(hue[0]), view.blue - np.float32(hue[1])), np.float32)


def name_of(hue: Hue) -> str:
    """Return the named colour nearest to a hue."""
    if distance(hue, FAINT_RED) < 0.12:
        return "red"
    return min(NAMED, key=lambda name: distance(NAMED[name], hue))
