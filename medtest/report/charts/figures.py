"""Figures of the report as inline SVG, without external libraries or network access.

Colours are from Okabe and Ito's palette, which is readable with any colour vision. The heat map has one hue and a
number in every cell, so that colour alone carries no information.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isnan, log2, nan

from markupsafe import Markup

from medtest.report.charts.svg import FAINT, GRID, INK, closed, line, open_svg, text, upright

BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION = "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)

_RAMP = (
    (0.0, (247, 250, 253)),
    (2.0, (222, 235, 247)),
    (5.0, (189, 215, 238)),
    (10.0, (140, 189, 222)),
    (25.0, (74, 144, 196)),
    (50.0, (28, 96, 157)),
    (100.0, (8, 48, 107)),
)
"""Percent and colour. Steps grow, because most rates are small."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point of a curve.

    Attributes:
        x: Position on the x axis.
        y: Value.
        low: Lower end of the interval; NaN without one.
        high: Upper end.
        label: Label below the point on the axis; "" for the number.
    """

    x: float
    y: float
    low: float = nan
    high: float = nan
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A curve of a panel.

    Attributes:
        name: Name in the legend.
        points: Points from left to right.
        colour: Line colour.
        dashed: Whether it is a reference line.
    """

    name: str
    points: tuple[Point, ...]
    colour: str = BLUE
    dashed: bool = False


def shade(percent: float | None) -> tuple[str, str]:
    """Return background and text colour of a heat map's cell; None gives white."""
    if percent is None:
        return "#ffffff", FAINT
    value = min(max(percent, 0.0), 100.0)
    for (low, dark), (high, light) in zip(_RAMP, _RAMP[1:], strict=False):
        if value <= high:
            part = (value - low) / (high - low)
            mixed = [round(a + part * (b - a)) for a, b in zip(dark, light, strict=True)]
            # Black above and white below this luminance reach the contrast of 4.5 required by WCAG.
            return "#{:02x}{:02x}{:02x}".format(*mixed), "#000000" if _luminance(mixed) > 0.179 else "#ffffff"
    return "#08306b", "#ffffff"


def _luminance(colour: Sequence[int]) -> float:
    """Return the relative luminance of an sRGB colour (WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def curve_panel(
    title: str,
    curves: Sequence[Curve],
    *,
    y_name: str,
    low: float = 0.0,
    high: float = 1.0,
    unit: str = "",
    x_name: str = "severity",
    width: int = 260,
    height: int = 190,
) -> Markup:
    """Return one panel of curves, with their intervals as bands.

    Args:
        title: Heading.
        curves: The curves.
        y_name: Name of the y axis.
        low: Lower end of the y axis.
        high: Upper end.
        unit: Suffix of the numbers on the y axis.
        x_name: Name of the x axis.
        width: In user units.
        height: In user units.
    """
    left, right, top, bottom = 58, 10, 26, 36
    points = [point for curve in curves for point in curve.points]
    if not points:
        return Markup("")
    x_low, x_high = min(p.x for p in points), max(p.x for p in points)
    span = (x_high - x_low) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        across = left + (width - left - right) * (0.5 if x_high == x_low else (x - x_low) / span)
        clipped = min(max(y, low), high)
        return across, top + (height - top - bottom) * (1 - (clipped - low) / ((high - low) or 1.0))

    parts = [open_svg(width, height, title), text(left, 15, title, bold=True)]
    for step in range(5):
        value = low + (high - low) * step / 4
        _, y = at(x_low, value)
        parts.append(line(left, y, width - right, y, GRID))
        parts.append(text(left - 5, y + 4, f"{value:.3g}{unit}", anchor="end", size=10, colour=FAINT))
    labels: dict[float, str] = {}
    for point in points:
        labels.setdefault(point.x, point.label or f"{point.x:g}")
    for x, label in labels.items():
        across, _ = at(x, low)
        parts.append(text(across, height - bottom + 14, label, anchor="middle", size=10, colour=FAINT))
    parts.append(text((left + width - right) / 2, height - 6, x_name, anchor="middle", size=10, colour=FAINT))
    parts.append(upright(13, (top + height - bottom) / 2, y_name))
    for curve in curves:
        parts += _curve(curve, at)
    return closed(parts)


def _curve(curve: Curve, at: Callable[[float, float], tuple[float, float]]) -> list[str]:
    parts: list[str] = []
    band = [(p.x, p.low, p.high) for p in curve.points if not isnan(p.low + p.high)]
    if len(band) > 1:
        upper = [at(x, high) for x, _, high in band]
        lower = [at(x, low) for x, low, _ in reversed(band)]
        around = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*upper, *lower])
        parts.append(f'<polygon points="{around}" fill="{curve.colour}" fill-opacity="0.16"/>')
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(p.x, p.y) for p in curve.points))
    dash = ' stroke-dasharray="5 4"' if curve.dashed else ""
    parts.append(f'<polyline points="{path}" fill="none" stroke="{curve.colour}" stroke-width="2"{dash}/>')
    if not curve.dashed:
        for point in curve.points:
            x, y = at(point.x, point.y)
            words = f"{curve.name}, {point.label or format(point.x, 'g')}: {point.y:.3g}"
            if not isnan(point.low + point.high):
                words += f" ({point.low:.3g} to {point.high:.3g})"
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{curve.colour}"><title>{escape(words)}</title></circle>'
            )
    return parts


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A number with its interval.

    Attributes:
        label: Row label; "" in a group of bars.
        value: The number: percent, an odds ratio, points.
        low: Lower end; NaN without an interval.
        high: Upper end.
        note: Text at the right; "" for the number with its interval.
    """

    label: str = ""
    value: float
    low: float = nan
    high: float = nan
    note: str = ""


def _dots(
    title: str,
    bars: Sequence[Bar],
    *,
    across: Callable[[float], float],
    ticks: Sequence[tuple[float, str]],
    base: float,
    x_name: str,
    said: Callable[[Bar], tuple[str, str]],
    lead: str = "",
    width: int,
    left: int,
    right: int,
) -> Markup:
    """Return numbers one below another, each as a dot with its interval.

    Args:
        title: Heading.
        bars: The numbers.
        across: Maps a value to its position along the axis, in [0, 1].
        ticks: Values marked by a line, with their labels.
        base: Value whose line is dark.
        x_name: Name of the axis.
        said: Returns the colour and the text of a bar.
        lead: Small text below the heading.
        width: Width in user units, as are the next two.
        left: Room for labels.
        right: Room for notes.
    """
    top, row, foot = 44 if lead else 34, 24, 38
    height = top + row * len(bars) + foot

    def at(value: float) -> float:
        return left + (width - left - right) * across(value)

    parts = [open_svg(width, height, title), text(4, 16, title, bold=True)]
    parts += [text(4, 30, lead, size=10, colour=FAINT)] if lead else []
    for value, mark in ticks:
        parts.append(line(at(value), top - 6, at(value), height - foot + 6, INK if value == base else GRID))
        parts.append(text(at(value), height - foot + 19, mark, anchor="middle", size=10, colour=FAINT))
    parts.append(text((left + width - right) / 2, height - 5, x_name, anchor="middle", size=10, colour=FAINT))
    for number, bar in enumerate(bars):
        y = top + row * number + row / 2 - 4
        colour, words = said(bar)
        ink = INK if colour in (GREEN, VERMILION) else FAINT
        parts.append(text(left - 8, y + 4, bar.label, anchor="end", size=11))
        parts.append(line(at(bar.low), y, at(bar.high), y, colour, 2.5))
        parts.append(
            f'<circle cx="{at(bar.value):.1f}" cy="{y:.1f}" r="4.5" fill="{colour}" stroke="#fff">'
            f"<title>{escape(f'{bar.label}: {words}')}</title></circle>"
        )
        parts.append(text(width - right + 9, y + 4, bar.note or words, size=10, colour=ink))
    return closed(parts)


def _clear(bar: Bar, base: float, *, good: str, bad: str) -> str:
    """Return ``good`` for an interval above ``base``, ``bad`` for one below, else a neutral colour."""
    return good if bar.low > base else bad if bar.high < base else FAINT


def interval_panel(title: str, bars: Sequence[Bar], *, high: float, x_name: str, unit: str = "") -> Markup:
    """Return rates one below another, each as a dot with its interval.

    Args:
        title: Heading.
        bars: The rates, in percent.
        high: Right end of the axis, in percent.
        x_name: Name of that axis.
        unit: Small text below the heading.
    """
    return _dots(
        title,
        bars,
        across=lambda value: min(max(value, 0.0), high) / (high or 1.0),
        ticks=[(high * step / 2, f"{high * step / 2:.3g} %") for step in range(3)],
        base=-1.0,
        x_name=x_name,
        said=lambda bar: (BLUE, f"{bar.value:.2f} % ({bar.low:.2f} to {bar.high:.2f})"),
        lead=unit,
        width=330,
        left=118,
        right=62,
    )


def odds_panel(title: str, odds: Sequence[Bar]) -> Markup:
    """Return odds ratios on a logarithmic axis with a line at 1 (no effect)."""
    if not odds:
        return Markup("")
    finite = [value for each in odds for value in (each.low, each.high) if 0 < value < 1e6]
    least = max(-6, min(-1, floor(log2(min(finite, default=0.5)))))
    most = min(6, max(1, ceil(log2(max(finite, default=2.0)))))
    powers = range(least, most + 1)
    return _dots(
        title,
        odds,
        across=lambda value: (min(max(log2(value) if value > 0 else least, least), most) - least) / (most - least),
        ticks=[(2.0**n, f"{2.0**n:g}" if most - least <= 6 or n % 2 == 0 else "") for n in powers],
        base=1.0,
        x_name="odds ratio (log scale); right of 1: more violations",
        said=lambda bar: (
            _clear(bar, 1.0, good=VERMILION, bad=GREEN),
            f"{bar.value:.2f} ({bar.low:.2f} to {bar.high:.2f})",
        ),
        width=520,
        left=170,
        right=128,
    )


def difference_panel(title: str, bars: Sequence[Bar], *, unit: str = "points", lower_is_better: bool = False) -> Markup:
    """Return differences one below another, each as a dot with its interval, with a line at 0.

    Args:
        title: Heading.
        bars: The differences.
        unit: Unit of the values.
        lower_is_better: Whether negative values are improvements.
    """
    good, bad = (VERMILION, GREEN) if lower_is_better else (GREEN, VERMILION)
    ends = [0.0, *(end for bar in bars for end in (bar.low, bar.high))]
    step = next(s for s in (0.5, 1, 2, 5, 10, 20, 50, 100, 1e9) if max(ends) - min(ends) <= 8 * s)
    first, last = floor(min(ends) / step), ceil(max(ends) / step)
    last = max(last, first + 1)
    return _dots(
        title,
        bars,
        across=lambda value: (value / step - first) / (last - first),
        ticks=[(n * step, f"{n * step:+g}" if n else "0") for n in range(first, last + 1)],
        base=0.0,
        x_name=f"difference, {unit}",
        said=lambda bar: (
            _clear(bar, 0.0, good=good, bad=bad),
            f"{bar.value:+.1f} ({bar.low:+.1f} to {bar.high:+.1f})",
        ),
        width=560,
        left=160,
        right=150,
    )


def confusion_panel(title: str, names: Sequence[str], counts: Sequence[Sequence[int]]) -> Markup:
    """Return a confusion matrix: expected classes down, answers across; shade and percent are per row.

    Args:
        title: Heading.
        names: The classes.
        counts: Cases of each expected class (rows) that got each answer (columns).
    """
    side = 54 if len(names) <= 6 else 40
    shown = [name if len(name) <= 14 else f"{name[:13]}…" for name in names]
    left, top = 12 + 6.2 * max(len(name) for name in shown), 56
    width, height = left + side * len(names) + 8, top + side * len(names) + 8
    parts = [open_svg(width, height, title), text(4, 15, title, bold=True)]
    parts.append(text(4, 32, "rows: expected, columns: answered", size=10, colour=FAINT))
    for number, name in enumerate(shown):
        middle = side * number + side / 2
        parts.append(text(left - 6, top + middle + 4, name, anchor="end", size=10.5))
        heading = name if len(names) <= 4 else f"{number + 1}"
        parts.append(text(left + middle, top - 6, heading[: side // 6], anchor="middle", size=10))
    for i, row in enumerate(counts):
        whole = sum(row)
        for j, count in enumerate(row):
            share = 100 * count / whole if whole else 0.0
            background, colour = shade(share if count else None)
            x, y = left + side * j, top + side * i
            words = f"{names[i]} answered {names[j]}: {count:,} of {whole:,}"
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{side - 2}" height="{side - 2}" rx="3" fill="{background}" '
                f'stroke="{INK if i == j else GRID}"><title>{escape(words)}</title></rect>'
            )
            if count:
                at = y + side / 2
                parts.append(text(x + side / 2 - 1, at, f"{count:,}", anchor="middle", size=11, colour=colour))
                parts.append(text(x + side / 2 - 1, at + 12, f"{share:.0f} %", anchor="middle", size=9, colour=colour))
    return closed(parts)


def nice_top(percent: float) -> float:
    """Return a round upper axis limit for a percentage."""
    for top in (1, 2, 5, 10, 20, 25, 50, 75, 100):
        if percent <= top:
            return float(top)
    return 100.0
