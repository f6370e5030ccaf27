"""Text of endoscope overlays: patterns of lines, and letters as small cached pictures.

The patterns follow colonoscopy images (MedTest report, figure 2, and Kvasir-SEG): date, clock or stopwatch, printer
counter, contrast and enhancement settings, device and patient fields. All values are invented.

The font is Aileron by Sora Sagano, "No Rights Reserved" (CC0 1.0), included in Pillow (``ImageFont.load_default``); the
memory indicator's square is drawn here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont

from medtest.core.errors import MissingSystemLibrary

Coverage: TypeAlias = NDArray[np.uint8]
SQUARE = "\N{BLACK SQUARE}"
_EM = 0.86
"""Font size as fraction of the line's height."""
_BASELINE = 0.78
"""Distance of the baseline from the line's top, as fraction of the line's height."""
_BOLDNESS = 150
"""Amplification of the font's coverage, percent."""


def draw_lines(count: int, rng: np.random.Generator) -> list[list[str]]:
    """Invent ``count`` lines of overlay text.

    Args:
        count: Total number of lines, ≥ 1.
        rng: The case's random generator.

    Returns:
        Blocks of related lines; the first holds date and time.
    """
    first = _MAIN[int(rng.integers(len(_MAIN)))]
    others = [_MORE[int(i)] for i in rng.permutation(len(_MORE))]
    blocks: list[list[str]] = []
    remaining = count
    # The lists cover the shipped levels; larger counts start over with new values.
    while remaining > 0:
        for make in (first, *others):
            block = make(rng)[:remaining]
            blocks.append(block)
            remaining -= len(block)
            if remaining == 0:
                break
    return blocks


def line_width(text: str, height: int) -> int:
    """Return the width of a line in pixels."""
    return sum(glyph(letter, height).shape[1] for letter in text)


def set_block(lines: list[str], height: int) -> Coverage:
    """Typeset lines one below the other, flush left.

    Args:
        lines: At least one line.
        height: Line height in pixels.

    Returns:
        uint8 (lines · height)×width, coverage of each pixel by ink, 0–255.
    """
    layer = np.zeros((len(lines) * height, max(1, *(line_width(line, height) for line in lines))), np.uint8)
    for row, line in enumerate(lines):
        column = 0
        for letter in line:
            picture = glyph(letter, height)
            layer[row * height : (row + 1) * height, column : column + picture.shape[1]] = picture
            column += picture.shape[1]
    return layer


@lru_cache(maxsize=8192)
def glyph(letter: str, height: int) -> Coverage:
    """Return one letter in a cell as high as the line and as wide as its advance; read-only.

    Digits and the square share one width, as counters on overlays do not shift.
    """
    font = _font(height)
    alike = "0123456789" if letter.isdigit() or letter == SQUARE else letter
    cell = PillowImage.new("L", (max(_ink_and_advance(font, each) for each in alike), height), 0)
    pen = ImageDraw.Draw(cell)
    baseline = round(_BASELINE * height)
    if letter == SQUARE:
        side = cell.width - max(2, round(0.12 * height))
        pen.rectangle((1, baseline - side, side, baseline - 1), fill=255)
    else:
        left, _, right, _ = font.getbbox(letter, anchor="ls")
        # Whole-pixel positions keep the hinting and avoid cutting letters at the cell's edge.
        start = (cell.width - (math.ceil(right) - math.floor(left))) // 2 - math.floor(left)
        pen.text((start, baseline), letter, fill=255, font=font, anchor="ls")
    # Strokes thinner than a pixel would be grey, but overlays are white.
    coverage: Coverage = np.minimum(np.array(cell, dtype=np.uint16) * _BOLDNESS // 100, 255).astype(np.uint8)
    coverage.flags.writeable = False
    return coverage


def _ink_and_advance(font: ImageFont.FreeTypeFont, letter: str) -> int:
    """Return the width of a letter in whole pixels, including a pixel of spacing."""
    left, _, right, _ = font.getbbox(letter, anchor="ls")
    return max(round(font.getlength(letter)), math.ceil(right) - math.floor(left) + 1)


@lru_cache(maxsize=64)
def _font(height: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(max(6.0, _EM * height))
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise MissingSystemLibrary(
            "Pillow was built without FreeType, so text cannot be printed; the wheels on the package index have it: "
            "pip install --force-reinstall --only-binary :all: pillow"
        )
    return font


def _number(rng: np.random.Generator, low: int, high: int, digits: int = 1) -> str:
    return f"{int(rng.integers(low, high)):0{digits}d}"


def _date(rng: np.random.Generator, first: int = 2009, last: int = 2024) -> str:
    return f"{_number(rng, 1, 29, 2)}/{_number(rng, 1, 13, 2)}/{_number(rng, first, last + 1)}"


def _clock(rng: np.random.Generator) -> str:
    return f"{_number(rng, 7, 19, 2)}:{_number(rng, 0, 60, 2)}:{_number(rng, 0, 60, 2)}"


def _stopwatch(rng: np.random.Generator) -> str:
    return f"00:{_number(rng, 0, 60, 2)}:{_number(rng, 0, 60, 2)}"


def _date_and_settings(rng: np.random.Generator) -> list[str]:
    time = _clock(rng) if rng.random() < 0.5 else f"<{_stopwatch(rng)}>"
    return [
        _date(rng),
        time,
        f"CVP:{_number(rng, 1, 15)}",
        f"Cr:N    Eh:A{_number(rng, 1, 8)}",
    ]


def _date_and_times(rng: np.random.Generator) -> list[str]:
    return [_date(rng), _clock(rng), _stopwatch(rng), f"Cr:N  Ce:{_number(rng, 0, 4)}"]


def _patient(rng: np.random.Generator) -> list[str]:
    sex = "MF"[int(rng.integers(2))]
    return [
        f"ID: {_number(rng, 0, 10**8, 8)}",
        f"Sex: {sex}   Age: {_number(rng, 18, 92)}",
        f"D.O.B.: {_date(rng, 1930, 2000)}",
    ]


def _memory(rng: np.random.Generator) -> list[str]:
    total = int(rng.integers(1, 10))
    return [f"{SQUARE * 3}/{SQUARE * 3}", f"{int(rng.integers(total + 1))}/{total}"]


def _device(rng: np.random.Generator) -> list[str]:
    return [
        f"SN: {_number(rng, 2 * 10**6, 3 * 10**6)}",
        f"Zm: {1 + 0.1 * int(rng.integers(11)):.1f}x",
        f"AGC: {_number(rng, 1, 4)}   Iris: {'PA'[int(rng.integers(2))]}",
    ]


def _physician(rng: np.random.Generator) -> list[str]:
    return [f"Dr: {_number(rng, 1, 100, 3)}", f"Facility: {_number(rng, 10, 100)}-{_number(rng, 1, 10)}"]


_MAIN: tuple[Callable[[np.random.Generator], list[str]], ...] = (_date_and_settings, _date_and_times)
_MORE: tuple[Callable[[np.random.Generator], list[str]], ...] = (_patient, _memory, _device, _physician)
