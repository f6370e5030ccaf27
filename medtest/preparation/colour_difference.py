"""Colour differences as people see them: sRGB to CIELAB, and CIEDE2000.

G. Sharma, W. Wu, E. Dalal, "The CIEDE2000 color-difference formula: implementation notes, supplementary test data, and
mathematical observations", Color Research and Application 30(1), 2005. Curves and functions of the hue are read from
tables with linear interpolation, within 0.001 of exact ones: the same bits on every processor
(:mod:`medtest.core.portable`).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.portable import each

Floats = NDArray[np.float64]

_STEPS, _HUE_STEPS = 8192, 2048
"""Intervals of the tables of curves, and of those of the hue."""
_WHITE = (0.95047, 1.0, 1.08883)
_TO_XYZ = (
    np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
    / np.array(_WHITE)[:, None]
).T
"""Linear sRGB to XYZ, D65, as share of white: one row for each of red, green and blue."""


def _linear(level: float) -> float:
    share = level / 255.0
    return math.pow((share + 0.055) / 1.055, 2.4) if share > 0.04045 else share / 12.92


def _curved(share: float) -> float:
    return math.cbrt(share) if share > 0.008856 else 7.787 * share + 16.0 / 116.0


def _hue_of(turn: float) -> float:
    """Return the angle of a direction given as in :func:`_turns`."""
    across = 1.0 - abs(turn) if turn <= 1.0 else abs(turn - 2.0) - 1.0
    return math.atan2(turn if turn <= 1.0 else 2.0 - turn, across)


def _hue_weight(turn: float) -> float:
    """Return T, the weight of hue differences."""
    degrees = math.degrees(_hue_of(turn))
    terms = ((1, -30.0, -0.17), (2, 0.0, 0.24), (3, 6.0, 0.32), (4, -63.0, -0.20))
    return 1.0 + sum(weight * math.cos(math.radians(n * degrees + phase)) for n, phase, weight in terms)


def _blue_turn(turn: float) -> float:
    """Return sin 2Δθ, by which differences of blue colours are turned."""
    offset = (math.degrees(_hue_of(turn)) % 360.0 - 275.0) / 25.0
    return math.sin(math.radians(60.0) * math.exp(-offset * offset))


@cache
def _curves() -> tuple[Floats, Floats, Floats, Floats]:
    """Return levels and their linear light, shares of white and their CIELAB curve."""
    steps = np.arange(_STEPS + 1) / _STEPS
    levels, roots = steps * 255.0, steps * 1.05
    shares = roots * roots * roots
    return levels, each(_linear, levels), shares, each(_curved, shares)


@cache
def _hues() -> tuple[Floats, Floats, Floats]:
    """Return directions as in :func:`_turns`, T and sin 2Δθ."""
    turns = np.arange(_HUE_STEPS + 1) / _HUE_STEPS * 4.0 - 1.0
    return turns, each(_hue_weight, turns), each(_blue_turn, turns)


def lab_colours(colours: ArrayLike) -> Floats:
    """Return CIELAB colours (D65, 2° observer), float64 3×N.

    Args:
        colours: N×3, sRGB in grey levels (0–255), fractions allowed.
    """
    levels, light, white_shares, curve = _curves()
    linear = np.interp(np.asarray(colours, np.float64), levels, light)
    shares = linear[:, :1] * _TO_XYZ[0] + linear[:, 1:2] * _TO_XYZ[1] + linear[:, 2:] * _TO_XYZ[2]
    x, y, z = np.interp(shares, white_shares, curve).T
    return np.stack([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


def colour_differences(lab: Floats) -> Floats:
    """Return the CIEDE2000 differences between the first and the second half of some colours, float64 N.

    Args:
        lab: CIELAB, 3×2N.
    """
    light, a, b = lab.reshape(3, 2, -1)
    squared_b = b * b
    chroma = np.sqrt(a * a + squared_b)
    a = a * (1.5 - 0.5 * np.sqrt(_seventh((chroma[0] + chroma[1]) * 0.5)))
    chroma = np.sqrt(a * a + squared_b)
    mean = (chroma[0] + chroma[1]) * 0.5
    turned = np.maximum(2.0 * (chroma[0] * chroma[1] - a[0] * a[1] - b[0] * b[1]), 0.0)
    hue = np.copysign(np.sqrt(turned), a[0] * b[1] - a[1] * b[0])
    length = np.maximum(chroma, 1e-12)
    directions, weights, blue_turns = _hues()
    turns = _turns(a / length, b / length)
    by_hue = hue / (1.0 + 0.015 * mean * np.interp(turns, directions, weights))
    distance = (light[0] + light[1]) * 0.5 - 50.0
    distance = distance * distance
    by_light = (light[1] - light[0]) / (1.0 + 0.015 * distance / np.sqrt(20.0 + distance))
    by_chroma = (chroma[1] - chroma[0]) / (1.0 + 0.045 * mean)
    blue = 2.0 * np.sqrt(_seventh(mean)) * np.interp(turns, directions, blue_turns)
    squared = by_light * by_light + by_chroma * by_chroma + by_hue * by_hue - blue * by_chroma * by_hue
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)), np.float64)


def _seventh(chroma: Floats) -> Floats:
    """Return c⁷ / (c⁷ + 25⁷)."""
    cube = chroma * chroma * chroma
    powered = cube * cube * chroma
    return np.asarray(powered / (powered + 25.0**7))


def _turns(cosine: Floats, sine: Floats) -> Floats:
    """Return the direction half way between two hues, from −1 (270°) over 0 to 3, growing with the angle.

    Args:
        cosine: Cosines of the hues, 2×N; 0 for grey.
        sine: Their sines.
    """
    across, up = cosine[0] + cosine[1], sine[0] + sine[1]
    share = up / np.maximum(np.abs(across) + np.abs(up), 1e-12)
    return np.asarray(np.where(across >= 0.0, share, 2.0 - share), np.float64)
