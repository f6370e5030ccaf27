"""Montages: one image under every scale of a relation, with the answers of every system."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import ImageFont

from medtest.core.cases import Effect, FollowUp, Mask, PreparedSeed
from medtest.core.tasks.base import FlatView, task_of
from medtest.runner.pictures.panels import INK, Picture, canvas, fitted, outline, panel, paste
from medtest.runner.units.made_case import SystemAnswer

MONTAGE = "montage.png"
"""Name of a relation's montage in its folder of a series."""
PANEL = 150
"""Height of a panel in pixels; its width follows the image."""
_GAP, _HEAD, _SIDE = 4, 40, 64
_TRUTH, _ANSWER = (0, 158, 115), (213, 94, 0)
_TEXT, _TITLE = ImageFont.load_default(13), ImageFont.load_default(16)


def draw_montage(
    seed: PreparedSeed,
    rows: Sequence[tuple[FollowUp | None, Sequence[SystemAnswer]]],
    names: Sequence[str],
    *,
    title: str,
) -> Picture:
    """Draw one montage.

    Args:
        seed: The seed of the image.
        rows: The follow-up of each scale, None if it could not be made, and the answers of all systems.
        names: Names of the systems.
        title: First line.

    Returns:
        uint8 RGB picture.
    """
    drawing = task_of(seed.kind).drawing
    grid: list[list[Picture]] = []
    for follow, answers in rows:
        region = drawing.expected_region(seed, Effect() if follow is None else follow.effect)
        truth = None if region is None else drawing.view(seed, seed.image, region).region
        panels = [_panel(None if follow is None else drawing.view(seed, follow.image), truth)]
        for answer in answers:
            drawable = follow is not None and answer.output is not None
            panels.append(_panel(drawing.answer_view(seed, follow.image, answer.output) if drawable else None, truth))  # type: ignore[union-attr, arg-type]
        grid.append(panels)
    width = max(picture.shape[1] for panels in grid for picture in panels)
    columns = ["input", *names]
    size = (_SIDE + (width + _GAP) * len(columns), _HEAD + 16 + (PANEL + _GAP) * len(rows))
    paper, draw = canvas(size)
    draw.text((_GAP, 3), title, fill=INK, font=_TITLE)
    for number, name in enumerate(columns):
        x = _SIDE + number * (width + _GAP)
        draw.text((x + width // 2, _HEAD - 12), fitted(draw, name, _TEXT, width), fill=INK, font=_TEXT, anchor="ma")
    for line, ((follow, _), panels) in enumerate(zip(rows, grid, strict=True)):
        top = _HEAD + 8 + line * (PANEL + _GAP)
        label = "" if follow is None else f"{follow.scale:g}"
        draw.text((_SIDE - 6, top + PANEL // 2), label, fill=INK, font=_TEXT, anchor="rm")
        for number, picture in enumerate(panels):
            paste(paper, picture, (_SIDE + number * (width + _GAP), top))
    return np.asarray(paper)


def _panel(view: FlatView | None, truth: Mask | None) -> Picture:
    if view is None:
        return panel(None, PANEL)
    picture = panel(view.image, PANEL)
    outline(picture, truth, _TRUTH)
    outline(picture, view.region, _ANSWER)
    return picture
