"""Detection of writing in a picture, by OCR if installed, else by its edges."""

from __future__ import annotations

import threading
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.simlab.seeing.view import Bools, brightest

_LOCK = threading.Lock()
_ENGINE: list[Any] = []
_SURE = 0.6
_SHORTEST = 3
_WIDEST = 5
"""Width of the thickest stroke of a letter plus one, in pixels."""
_ROW = 5
"""Number of adjacent letters that count as writing."""


def writing_of(picture: NDArray[np.uint8], ocr: str) -> tuple[bool, Bools]:
    """Return whether there is writing, and the areas of rows of letters.

    Args:
        picture: uint8 RGB H×W×3 of about 512 pixels per side.
        ocr: ``rapidocr`` or ``edges``.

    Returns:
        Whether there is any, and bool H×W by edges alone.
    """
    rows = rows_of_letters(picture)
    where = np.zeros(picture.shape[:2], np.bool_)
    for left, top, right, bottom in rows:
        where[max(0, top - 4) : bottom + 4, max(0, left - 6) : right + 6] = True
    return (_read(picture) if ocr == "rapidocr" else bool(rows)), where


def _read(picture: NDArray[np.uint8]) -> bool:
    with _LOCK:
        if not _ENGINE:
            from rapidocr_onnxruntime import RapidOCR

            _ENGINE.append(RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1))
        results, _ = _ENGINE[0](np.ascontiguousarray(picture[..., ::-1]), use_cls=False)
    lines = [(str(text), float(sure)) for _, text, sure in results or []]
    return any(sure >= _SURE and sum(sign.isalnum() for sign in text) >= _SHORTEST for text, sure in lines)


def rows_of_letters(picture: NDArray[np.uint8]) -> list[tuple[int, int, int, int]]:
    """Return rows of letters as (left, top, right, bottom): small bright strokes of even height on one line."""
    letters = _letters(_strokes(picture))
    rows: list[tuple[int, int, int, int]] = []
    used: set[int] = set()
    for start in range(len(letters)):
        if start in used:
            continue
        row = [start]
        while (after := _next(letters, row[-1], used | set(row))) is not None:
            row.append(after)
        if len(row) >= _ROW:
            used |= set(row)
            boxes = [letters[number] for number in row]
            rows.append(
                (min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes))
            )
    return rows


def _strokes(picture: NDArray[np.uint8]) -> Bools:
    """Return thin neutral strokes that are much brighter than their surroundings."""
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    hat = cv2.morphologyEx(grey, cv2.MORPH_TOPHAT, cv2.getStructuringElement(cv2.MORPH_RECT, (_WIDEST, _WIDEST)))
    darkest = np.minimum(np.minimum(picture[..., 0], picture[..., 1]), picture[..., 2])
    spread = brightest(picture) - darkest
    strokes: Bools = (hat > 60) & (spread < 70) & (grey > 110)
    return strokes


def _letters(strokes: Bools) -> list[tuple[int, int, int, int]]:
    count, _, stats, _ = cv2.connectedComponentsWithStats(strokes.astype(np.uint8), connectivity=8)
    letters = []
    for number in range(1, count):
        left, top, width, height, area = (int(value) for value in stats[number])
        if 6 <= height <= 26 and 1 <= width <= 1.6 * height and area >= 6 and area < 0.85 * width * height + 6:
            letters.append((left, top, left + width, top + height))
    return sorted(letters)


def _next(letters: list[tuple[int, int, int, int]], at: int, used: set[int]) -> int | None:
    """Return the next letter on the line: of similar height and base line, less than a letter away."""
    _, top, right, bottom = letters[at]
    height = bottom - top
    best: tuple[int, int] | None = None
    for number, (left, other_top, _, other_bottom) in enumerate(letters):
        gap = left - right
        if number in used or not -2 <= gap <= 1.1 * height:
            continue
        tall = max(height, other_bottom - other_top)
        same_foot, as_high = abs(other_bottom - bottom), abs((other_bottom - other_top) - height)
        even = same_foot <= 0.18 * tall + 1 and as_high <= 0.35 * tall
        if even and (best is None or gap < best[0]):
            best = (gap, number)
    return None if best is None else best[1]
