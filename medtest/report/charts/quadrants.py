"""Picture of two rates against each other, with a border in each: four quadrants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from medtest.report.charts.figures import BLUE, VERMILION
from medtest.report.charts.svg import FAINT, GRID, INK, closed, line, open_svg, text, upright

_WIDTH, _PLOT = 430, 330
_LEFT, _RIGHT, _TOP = 58, 20, 12
_ROW, _COLUMN = 32, 210
_SHADES = ("#e3f2ec", "#fbe6da")
"""Colours of the upper and lower quadrant on the right."""
_LOWEST = -20.0
_APART = 14.0
"""Distance of two spots in the strip on the right."""


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A point with its intervals, all in percent.

    Attributes:
        name: Name in the legend.
        x: Horizontal value, low and high end.
        y: Vertical value, low and high end.
        main: Whether it represents all others, and is drawn larger.
    """

    name: str
    x: tuple[float, float, float]
    y: tuple[float, float, float]
    main: bool = False


def quadrant_panel(
    title: str, spots: Sequence[Spot], *, names: tuple[str, str], borders: tuple[float, float], corners: Sequence[str]
) -> Markup:
    """Draw the main spot between both axes, and the others in a strip on the right that has the vertical axis alone.

    The others share the main spot's horizontal value, so that between the axes they would cover each other.

    Args:
        title: Name for screen readers.
        spots: The points.
        names: Names of the axes.
        borders: Border of the quadrants on each axis, in percent.
        corners: Names of the quadrants: upper left, lower left, upper right, lower right.
    """
    others = [spot for spot in spots if not spot.main]
    strip = _APART * (len(others) + 1) if others else 0.0
    right, foot = _WIDTH - _RIGHT - strip, _PLOT
    legend = foot + 52
    height = legend + 44 + _ROW * ((len(spots) + 1) // 2)

    def across(value: float) -> float:
        return _LEFT + (right - _LEFT) * min(max(value, 0.0), 100.0) / 100.0

    def down(value: float) -> float:
        return foot - (foot - _TOP) * (min(max(value, _LOWEST), 100.0) - _LOWEST) / (100.0 - _LOWEST)

    x_border, y_border = across(borders[0]), down(borders[1])
    parts = [open_svg(_WIDTH, height, title)]
    parts.append(_area(x_border, _TOP, right - x_border, y_border - _TOP, _SHADES[0]))
    parts.append(_area(x_border, y_border, right - x_border, foot - y_border, _SHADES[1]))
    for value in (0, 20, 40, 60, 80, 100):
        parts.append(line(across(value), _TOP, across(value), foot, GRID))
        parts.append(text(across(value), foot + 15, f"{value} %", anchor="middle", size=10, colour=FAINT))
        parts.append(line(_LEFT, down(value), right, down(value), GRID))
        parts.append(text(_LEFT - 5, down(value) + 4, f"{value} %", anchor="end", size=10, colour=FAINT))
    parts.append(line(x_border, _TOP, x_border, foot, FAINT, 1.5))
    parts.append(line(_LEFT, y_border, right, y_border, FAINT, 1.5))
    for words, y in zip(corners[:2], (_TOP + 15, foot - 8), strict=True):
        parts.append(text(_LEFT + 6, y, words, size=10, colour=FAINT))
    for number, (words, shade) in enumerate(zip(corners[2:], _SHADES, strict=True)):
        parts.append(_area(_LEFT, legend - 10 + 18 * number, 12, 12, shade))
        parts.append(text(_LEFT + 18, legend + 18 * number, words, size=11))
    parts.append(text((_LEFT + right) / 2, foot + 32, names[0], anchor="middle", size=11, colour=INK))
    parts.append(upright(14, (_TOP + foot) / 2, names[1]))
    if others:
        middle = right + _RIGHT + strip / 2
        parts.append(text(middle, foot + 32, "each alone", anchor="middle", size=11, colour=INK))
        for value in (0, 20, 40, 60, 80, 100):
            parts.append(line(right + _RIGHT, down(value), right + _RIGHT + strip, down(value), GRID))
        parts.append(line(right + _RIGHT, y_border, right + _RIGHT + strip, y_border, FAINT, 1.5))
    for number, spot in enumerate(spots):
        aside = right + _RIGHT + _APART * (1 + others.index(spot)) if not spot.main else across(spot.x[0])
        parts += _spot(spot, number, aside, across, down)
        x, y = 16 + _COLUMN * (number % 2), legend + 46 + _ROW * (number // 2)
        parts.append(_mark(x, y - 4, spot, number))
        parts.append(text(x + 12, y, spot.name, size=11, bold=spot.main))
        ends = f"{spot.y[0]:.0f} % ({spot.y[1]:.0f} to {spot.y[2]:.0f})"
        parts.append(text(x + 12, y + 13, ends, size=10, colour=FAINT))
    return closed(parts)


def _spot(
    spot: Spot, number: int, x: float, across: Callable[[float], float], down: Callable[[float], float]
) -> list[str]:
    colour = VERMILION if spot.main else BLUE
    parts = [line(x, down(spot.y[1]), x, down(spot.y[2]), colour, 2.5 if spot.main else 1.2)]
    if spot.main:
        parts.append(line(across(spot.x[1]), down(spot.y[0]), across(spot.x[2]), down(spot.y[0]), colour, 2.5))
    return [*parts, _mark(x, down(spot.y[0]), spot, number)]


def _mark(x: float, y: float, spot: Spot, number: int) -> str:
    radius, colour = (6.0, VERMILION) if spot.main else (5.0, BLUE)
    words = f"{spot.name}: {spot.x[0]:.1f} %, {spot.y[0]:.1f} %"
    letter = "" if spot.main else text(x, y + 3, chr(ord("a") + number), anchor="middle", size=8, colour="#fff")
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}" stroke="#fff">'
        f"<title>{escape(words)}</title></circle>{letter}"
    )


def _area(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
