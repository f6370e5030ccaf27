"""SVG elements used by the report's figures; text is passed through ``escape``."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markupsafe import Markup

INK, FAINT, GRID = "#1c1e22", "#5c6370", "#d9dde3"


def open_svg(width: float, height: float, title: str) -> str:
    """Return the opening tag of a picture, in user units, with its title for screen readers."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg" aria-label="{escape(title)}">'
    )


def closed(parts: Sequence[str]) -> Markup:
    """Return a picture with its closing tag; the parts must be escaped."""
    return Markup("".join([*parts, "</svg>"]))  # noqa: S704 - every text went through escape()


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1.0) -> str:
    """Return a straight line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width:g}"/>'


def upright(x: float, y: float, words: str) -> str:
    """Return the rotated name of a y axis, centred at a point."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="10" fill="{FAINT}" '
        f'transform="rotate(-90 {x:.1f} {y:.1f})">{escape(words)}</text>'
    )


def text(
    x: float, y: float, words: str, *, anchor: str = "start", size: float = 12, colour: str = INK, bold: bool = False
) -> str:
    """Return text at a point, which is its start, middle or end by ``anchor``."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}" fill="{colour}"{weight}>'
        f"{escape(words)}</text>"
    )
