"""Words on pictures that a run leaves."""

from __future__ import annotations

from typing import TypeAlias

from PIL import ImageDraw, ImageFont

Font: TypeAlias = "ImageFont.FreeTypeFont | ImageFont.ImageFont"


def fitted(draw: ImageDraw.ImageDraw, words: str, font: Font, width: int) -> str:
    """Return words as far as they fit, with an ellipsis where they were cut.

    Args:
        draw: What they will be drawn with.
        words: One line.
        font: Its font.
        width: Pixels there are.
    """
    if draw.textlength(words, font=font) <= width:
        return words
    while words and draw.textlength(f"{words}…", font=font) > width:
        words = words[:-1]
    return f"{words}…"
