"""Colour differences as people see them: sRGB to CIELAB, and CIEDE2000.

G. Sharma, W. Wu, E. Dalal, "The CIEDE2000 color-difference formula: implementation notes, supplementary test data, and
mathematical observations", Color Research and Application 30(1), 2005. The arithmetic gives the same bits on every
processor (:mod:`medtest.core.portable`); angles are handled as unit vectors, so that hardly any trigonometry is needed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.portable import each, exp, power

Floats = NDArray[np.float64]

_TO_XYZ = ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227))
"""Linear sRGB to XYZ, D65."""
_WHITE = (0.95047, 1.0, 1.08883)
_LINEAR_BELOW = 0.008856
"""Relative luminance below which CIELAB is linear."""
_HUE_TERMS = ((1, -30.0, -0.17), (2, 0.0, 0.24), (3, 6.0, 0.32), (4, -63.0, -0.20))
"""Multiple of the hue, phase in degrees and weight of each cosine in the weight of hue differences."""


def lab_colours(colours: ArrayLike) -> Floats:
    """Return CIELAB colours (D65, 2° observer), float64 N×3.

    Args:
        colours: N×3, sRGB in grey levels (0–255), fractions allowed.
    """
    shares = np.asarray(colours, np.float64) / 255.0
    linear = np.where(shares > 0.04045, power((shares + 0.055) / 1.055, 2.4), shares / 12.92)
    red, green, blue = linear.T
    curved = []
    for row, white in zip(_TO_XYZ, _WHITE, strict=True):
        value = (red * row[0] + green * row[1] + blue * row[2]) / white
        curved.append(np.where(value > _LINEAR_BELOW, each(math.cbrt, value), 7.787 * value + 16.0 / 116.0))
    x, y, z = curved
    return np.stack([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)], axis=1)


def colour_differences(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the CIEDE2000 differences of pairs of colours, float64 N.

    Args:
        first: CIELAB, N×3.
        second: CIELAB, N×3.
    """
    (light_1, a_1, b_1), (light_2, a_2, b_2) = np.asarray(first, np.float64).T, np.asarray(second, np.float64).T
    grey = _seventh((np.sqrt(a_1 * a_1 + b_1 * b_1) + np.sqrt(a_2 * a_2 + b_2 * b_2)) / 2.0)
    stretch = 1.5 - 0.5 * np.sqrt(grey)
    a_1, a_2 = a_1 * stretch, a_2 * stretch
    chroma_1, chroma_2 = np.sqrt(a_1 * a_1 + b_1 * b_1), np.sqrt(a_2 * a_2 + b_2 * b_2)
    chroma = (chroma_1 + chroma_2) / 2.0
    turned = np.maximum(2.0 * (chroma_1 * chroma_2 - a_1 * a_2 - b_1 * b_2), 0.0)
    by_hue = np.copysign(np.sqrt(turned), a_1 * b_2 - a_2 * b_1)
    cosine, sine = _mean_hue((a_1, b_1, chroma_1), (a_2, b_2, chroma_2))
    weight = 1.0 + _hue_weights(cosine, sine)
    distance = ((light_1 + light_2) / 2.0 - 50.0) ** 2
    by_light = (light_2 - light_1) / (1.0 + 0.015 * distance / np.sqrt(20.0 + distance))
    by_chroma = (chroma_2 - chroma_1) / (1.0 + 0.045 * chroma)
    by_hue = by_hue / (1.0 + 0.015 * chroma * weight)
    blue = -2.0 * np.sqrt(_seventh(chroma)) * _blue_turn(cosine, sine)
    squared = by_light * by_light + by_chroma * by_chroma + by_hue * by_hue + blue * by_chroma * by_hue
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)), np.float64)


def _seventh(chroma: Floats) -> Floats:
    """Return c⁷ / (c⁷ + 25⁷)."""
    cube = chroma * chroma * chroma
    powered = cube * cube * chroma
    return np.asarray(powered / (powered + 25.0**7))


def _mean_hue(first: tuple[Floats, Floats, Floats], second: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats]:
    """Return cosine and sine of the hue half way between two colours; that of one if the other is grey."""
    total_a, total_b = np.zeros_like(first[0]), np.zeros_like(first[0])
    for a, b, chroma in (first, second):
        length = np.where(chroma > 0.0, chroma, 1.0)
        total_a, total_b = total_a + a / length, total_b + b / length
    length = np.sqrt(total_a * total_a + total_b * total_b)
    opposite = length < 1e-12  # the mean of opposite hues is perpendicular to both
    total_a, total_b = np.where(opposite, -first[1], total_a), np.where(opposite, first[0], total_b)
    length = np.sqrt(total_a * total_a + total_b * total_b)
    grey = length == 0.0
    length = np.where(grey, 1.0, length)
    return np.where(grey, 1.0, total_a / length), total_b / length


def _hue_weights(cosine: Floats, sine: Floats) -> Floats:
    """Return the sum of the weighted cosines of multiples of the hue."""
    total, (multiple_cosine, multiple_sine) = np.zeros_like(cosine), (cosine, sine)
    for _, phase, weight in _HUE_TERMS:
        angle = math.radians(phase)
        total = total + weight * (multiple_cosine * math.cos(angle) - multiple_sine * math.sin(angle))
        multiple_cosine, multiple_sine = (
            multiple_cosine * cosine - multiple_sine * sine,
            multiple_sine * cosine + multiple_cosine * sine,
        )
    return total


def _blue_turn(cosine: Floats, sine: Floats) -> Floats:
    """Return the sine of the angle by which differences of blue colours are turned."""
    angles = np.array([math.degrees(math.atan2(y, x)) % 360.0 for x, y in zip(cosine, sine, strict=True)])
    offset = (angles - 275.0) / 25.0
    return each(math.sin, math.radians(60.0) * exp(-offset * offset))
