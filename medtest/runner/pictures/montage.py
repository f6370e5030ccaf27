"""A montage: one image under every scale of a relation, and what every system made of it, for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont

from medtest.cases import Image, Mask, PreparedSeed
from medtest.runner.folder import writing
from medtest.runner.units.parts import SystemAnswer
from medtest.tasks.base import FlatView, task_of

Picture: TypeAlias = NDArray[np.uint8]

PANEL = 150
"""Height of a panel in pixels; its width follows the image."""
_GAP, _HEAD, _SIDE = 4, 40, 64
_PAPER, _INK, _FAINT = (255, 255, 255), (28, 30, 34), (236, 236, 236)
_TRUTH, _ANSWER = (0, 158, 115), (213, 94, 0)
_TEXT, _TITLE = ImageFont.load_default(13), ImageFont.load_default(16)


@dataclass(frozen=True, kw_only=True)
class MontageRow:
    """One scale of a montage.

    Attributes:
        label: What stands at its left.
        image: The follow-up, or None where it could not be made.
        answers: One a system.
    """

    label: str
    image: Image | None
    answers: Sequence[SystemAnswer]


def draw_montage(seed: PreparedSeed, rows: Sequence[MontageRow], names: Sequence[str], *, title: str) -> Picture:
    """Draw one montage.

    Args:
        seed: Whose image it is.
        rows: One a scale.
        names: The systems'.
        title: First line.

    Returns:
        uint8 RGB picture.
    """
    task = task_of(seed.kind)
    truth = None if seed.mask is None else task.view(seed, seed.image, seed.mask).region
    grid: list[list[Picture]] = []
    for row in rows:
        panels = [_panel(None if row.image is None else task.view(seed, row.image), truth)]
        for answer in row.answers:
            known = answer.output is not None and row.image is not None
            panels.append(_panel(task.answer_view(seed, row.image, answer.output) if known else None, truth))  # type: ignore[arg-type]
        grid.append(panels)
    width = max(panel.shape[1] for panels in grid for panel in panels)
    columns = ["input", *names]
    size = (_SIDE + (width + _GAP) * len(columns), _HEAD + 16 + (PANEL + _GAP) * len(rows))
    canvas = PillowImage.new("RGB", size, _PAPER)
    draw = ImageDraw.Draw(canvas)
    draw.text((_GAP, 3), title, fill=_INK, font=_TITLE)
    for number, name in enumerate(columns):
        left = _SIDE + number * (width + _GAP)
        draw.text((left + width // 2, _HEAD - 12), _short(draw, name, width), fill=_INK, font=_TEXT, anchor="ma")
    for line, (row, panels) in enumerate(zip(rows, grid, strict=True)):
        top = _HEAD + 8 + line * (PANEL + _GAP)
        draw.text((_SIDE - 6, top + PANEL // 2), row.label, fill=_INK, font=_TEXT, anchor="rm")
        for number, panel in enumerate(panels):
            canvas.paste(PillowImage.fromarray(panel), (_SIDE + number * (width + _GAP), top))
    return np.asarray(canvas)


def save_montage(picture: Picture, file: Path) -> None:
    """Write a montage as PNG, its folder too."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with writing(file) as opened:
        PillowImage.fromarray(picture).save(opened, format="PNG")


def _panel(shown: FlatView | None, truth: Mask | None) -> Picture:
    if shown is None:
        return np.full((PANEL, PANEL, 3), _FAINT, np.uint8)
    height, width = shown.image.shape[:2]
    size = (max(1, round(PANEL * width / height)), PANEL)
    picture = np.ascontiguousarray(cv2.resize(shown.image, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    for mask, colour in ((truth, _TRUTH), (shown.region, _ANSWER)):
        if mask is not None:
            small = cv2.resize(np.ascontiguousarray(mask).view(np.uint8), size, interpolation=cv2.INTER_NEAREST)
            outlines, _ = cv2.findContours(small, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
            cv2.drawContours(picture, outlines, -1, colour, 1, cv2.LINE_AA)
    return picture


def _short(draw: ImageDraw.ImageDraw, name: str, width: int) -> str:
    words = name
    while len(words) > 1 and draw.textlength(words, font=_TEXT) > width:
        words = words[:-1]
    return words if words == name else f"{words[:-1]}…"
