"""Film strips: frames of a sequence side by side, each with its answer below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import ImageFont

from medtest.core.cases import Image
from medtest.runner.pictures.panels import FAINT, INK, PAPER, Picture, canvas, fitted, panel, paste

PANEL = 140
"""Height of a frame in pixels; its width follows the image."""
_IN_A_ROW = 10
_GAP, _HEAD, _LINE, _EDGE = 6, 46, 15, 3
_MOST_LINES = 5
_FLIPPED = (213, 94, 0)
_TEXT, _TITLE = ImageFont.load_default(12), ImageFont.load_default(16)


@dataclass(frozen=True, kw_only=True)
class FilmFrame:
    """One frame of a film strip.

    Attributes:
        image: uint8 H×W×3, or None if it could not be made.
        lines: Text below it.
        flipped: True if its answer differs from its reference frame's; it is then framed and marked.
    """

    image: Image | None
    lines: Sequence[str]
    flipped: bool


def draw_film(frames: Sequence[FilmFrame], *, title: str, detail: str) -> Picture:
    """Draw one film strip, ten frames to a row.

    Args:
        frames: The frames in order, at least one.
        title: First line.
        detail: Second line.

    Returns:
        uint8 RGB picture.
    """
    panels = [_panel(frame) for frame in frames]
    width = max(panel.shape[1] for panel in panels) + _GAP
    columns = min(_IN_A_ROW, len(frames))
    texts = [_lines(frame) for frame in frames]
    rows = [range(start, min(start + columns, len(frames))) for start in range(0, len(frames), columns)]
    heights = [PANEL + 2 * _EDGE + 8 + _LINE * max(len(texts[n]) for n in row) for row in rows]
    paper, draw = canvas((max(columns * width + _GAP, 480), _HEAD + sum(heights) + _GAP))
    draw.text((_GAP, 4), fitted(draw, title, _TITLE, paper.width - 2 * _GAP), fill=INK, font=_TITLE)
    draw.text((_GAP, 26), fitted(draw, detail, _TEXT, paper.width - 2 * _GAP), fill=FAINT, font=_TEXT)
    top = _HEAD
    for row, height in zip(rows, heights, strict=True):
        for place, number in enumerate(row):
            x = _GAP + place * width
            paste(paper, panels[number], (x, top))
            for line, words in enumerate(texts[number]):
                colour = _FLIPPED if frames[number].flipped and line else INK if line else FAINT
                at = (x, top + PANEL + 2 * _EDGE + 2 + line * _LINE)
                draw.text(at, fitted(draw, words, _TEXT, width - _GAP), fill=colour, font=_TEXT)
        top += height
    return np.asarray(paper)


def _lines(frame: FilmFrame) -> list[str]:
    lines = list(frame.lines)
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"and {len(lines) - _MOST_LINES + 1} more"]
    if frame.flipped and lines:  # also in words, for readers who cannot see the colour
        lines[0] = f"{lines[0]}: flip"
    return lines


def _panel(frame: FilmFrame) -> Picture:
    inner = panel(frame.image, PANEL)
    outer = np.empty((PANEL + 2 * _EDGE, inner.shape[1] + 2 * _EDGE, 3), np.uint8)
    outer[:] = _FLIPPED if frame.flipped else PAPER
    outer[_EDGE:-_EDGE, _EDGE:-_EDGE] = inner
    return outer
