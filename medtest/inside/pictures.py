"""Sheets of one source and its follow-ups: image, change, feature maps, saliency and attention side by side.

The layout follows figures 5 and 6 of Xu et al. 2021. Each column has one colour scale, so that its pictures can be
compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import ImageFont

from medtest.core.cases import Image, Mask
from medtest.runner.pictures.panels import FAINT, INK, Picture, canvas, fitted, outline, panel, paste, wrapped
from medtest.runner.pictures.strips import amplified

_SIDE, _GAP, _LEFT, _TOP, _FOOT = 150, 8, 190, 62, 30
_TITLE, _TEXT, _SMALL = ImageFont.load_default(16), ImageFont.load_default(13), ImageFont.load_default(11)
_LESION = (0, 230, 118)
_MIX = 0.68
"""Opacity of the colours over the image."""


@dataclass(kw_only=True, eq=False)
class Row:
    """An image with its maps.

    Attributes:
        name: Name of the image.
        words: Answer of the system.
        image: uint8 H×W×3, as prepared.
        shown: uint8 h×w×3, as shown to the network.
        mask: The lesion in ``image``, or None.
        shown_mask: The same in ``shown``.
        maps: Maps over ``shown`` by their column's name, in order: feature maps and attention.
        saliency: Map over ``image``, or None.
        notes: Notes below a column's picture, by the column's name.
    """

    name: str
    words: str
    image: Image
    shown: Image
    mask: Mask | None = None
    shown_mask: Mask | None = None
    maps: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    saliency: NDArray[np.float32] | None = None
    notes: dict[str, str] = field(default_factory=dict)


SALIENCY, CHANGE = "saliency", "change"


def draw_rows(title: str, detail: str, rows: Sequence[Row], *, after: str = "") -> Picture:
    """Draw the sheet, with the source's row first.

    Args:
        title: First line.
        detail: Second line.
        rows: The source and its follow-ups.
        after: Column after which saliency is placed; "" for the last.

    Returns:
        uint8 RGB picture.
    """
    names = ["image", CHANGE, *rows[0].maps]
    if rows[0].saliency is not None:
        names.insert(names.index(after) + 1 if after in names else len(names), SALIENCY)
    changes = [
        None,
        *(amplified(rows[0].image, row.image) or _difference(rows[0].image, row.image) for row in rows[1:]),
    ]
    width = _LEFT + len(names) * (_SIDE + _GAP) + _GAP
    height = _TOP + 22 + len(rows) * (_SIDE + _FOOT + _GAP) + 26
    paper, draw = canvas((width, height))
    draw.text((_GAP, 8), fitted(draw, title, _TITLE, width - 2 * _GAP), fill=INK, font=_TITLE)
    draw.text((_GAP, 32), fitted(draw, detail, _TEXT, width - 2 * _GAP), fill=FAINT, font=_TEXT)
    bounds = {name: _bounds(rows, name) for name in names}
    for column, name in enumerate(names):
        x = _LEFT + column * (_SIDE + _GAP)
        draw.text((x, _TOP), fitted(draw, name, _TEXT, _SIDE), fill=INK, font=_TEXT)
    for number, row in enumerate(rows):
        y = _TOP + 22 + number * (_SIDE + _FOOT + _GAP)
        for line, words in enumerate([*wrapped(draw, row.name, _TEXT, _LEFT - 20)][:3]):
            draw.text((_GAP, y + 4 + 17 * line), words, fill=INK, font=_TEXT)
        lines = [line for words in row.words.splitlines() for line in wrapped(draw, words, _SMALL, _LEFT - 20)]
        for line, words in enumerate(lines[:6]):
            draw.text((_GAP, y + 58 + 15 * line), words, fill=FAINT, font=_SMALL)
        for column, name in enumerate(names):
            x = _LEFT + column * (_SIDE + _GAP)
            note = row.notes.get(name, "")
            if name == CHANGE:
                change = changes[number]
                picture = (
                    None if change is None else panel(change[1] if isinstance(change, tuple) else change.image, _SIDE)
                )
                note = "" if change is None else (change[0] if isinstance(change, tuple) else change.name)
            else:
                picture = _drawn(row, name, bounds[name])
            if picture is not None:
                paste(paper, _square(picture), (x, y))
            for line, words in enumerate(note.splitlines()[:2]):
                draw.text((x, y + _SIDE + 1 + 13 * line), fitted(draw, words, _SMALL, _SIDE), fill=FAINT, font=_SMALL)
    foot = "Colours from low (dark) to high (bright), one scale a column."
    foot += "  Green: the lesion." if any(row.mask is not None for row in rows) else ""
    draw.text((_GAP, height - 20), foot, fill=FAINT, font=_SMALL)
    return np.asarray(paper, np.uint8)


def _difference(source: Image, followup: Image) -> tuple[str, Image] | None:
    """Return a change amplified around grey so that nearly all of it fits; None if there is none."""
    change = followup.astype(np.int16) - source.astype(np.int16)
    largest = int(np.abs(change).max(initial=0))
    if not largest:
        return None
    factor = min(8.0, 110.0 / max(float(np.percentile(np.abs(change), 99.5)), 1.0))
    image = np.asarray(np.clip(128 + factor * change, 0, 255), np.uint8)
    return f"{factor:.2g} times\nat most {largest} of 255", image


def _bounds(rows: Sequence[Row], name: str) -> tuple[float, float]:
    maps = [row.saliency if name == SALIENCY else row.maps.get(name) for row in rows]
    values = np.concatenate(
        [values_of_row.ravel() for values_of_row in maps if values_of_row is not None] or [np.zeros(1, np.float32)]
    )
    if name == SALIENCY:  # a few pixels dominate all others
        return 0.0, float(np.percentile(values, 99.5)) or 1.0
    low, high = float(values.min()), float(np.percentile(values, 99.5))
    return low, high if high > low else low + 1.0


def _drawn(row: Row, name: str, bounds: tuple[float, float]) -> Picture | None:
    if name == "image":
        picture = panel(row.image, _SIDE)
        outline(picture, row.mask, _LESION)
        return picture
    values, over, mask = row.maps.get(name), row.shown, row.shown_mask
    if name == SALIENCY:
        values, over, mask = row.saliency, row.image, row.mask
    if values is None:
        return None
    picture = panel(over, _SIDE)
    share = np.clip((values - bounds[0]) / (bounds[1] - bounds[0]), 0, 1)
    size = (picture.shape[1], picture.shape[0])
    enlarges = values.shape[0] < size[1]
    large = cv2.resize(share, size, interpolation=cv2.INTER_LINEAR if enlarges else cv2.INTER_AREA)
    if name == SALIENCY:
        large = np.sqrt(large)
    colours = cv2.applyColorMap(np.asarray(large * 255, np.uint8), cv2.COLORMAP_INFERNO)[..., ::-1]
    grey = np.repeat(picture.mean(axis=2, keepdims=True), 3, axis=2)
    mixed = np.ascontiguousarray(_MIX * colours + (1 - _MIX) * grey, dtype=np.float32).clip(0, 255).astype(np.uint8)
    outline(mixed, mask, _LESION)
    return mixed


def _square(picture: Picture) -> Picture:
    """Return a panel no wider than a column."""
    if picture.shape[1] <= _SIDE:
        return picture
    height = max(1, round(picture.shape[0] * _SIDE / picture.shape[1]))
    return np.asarray(cv2.resize(picture, (_SIDE, height), interpolation=cv2.INTER_AREA), np.uint8)
