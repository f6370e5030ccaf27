"""Drawing helpers: images at one height, outlines, fitted text, atomic PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont

from medtest.core.cases import Image, Mask
from medtest.runner.folder import writing

Picture: TypeAlias = NDArray[np.uint8]
Colour: TypeAlias = tuple[int, int, int]
Font: TypeAlias = "ImageFont.FreeTypeFont | ImageFont.ImageFont"

PAPER, INK, FAINT = (255, 255, 255), (28, 30, 34), (104, 108, 116)
_EMPTY = 236


def panel(image: Image | None, height: int) -> Picture:
    """Scale an image to a height, keeping its aspect ratio; None gives a grey square.

    Args:
        image: uint8 H×W×3; any other is stretched from its least to its greatest value, and grey.
        height: Pixels.
    """
    if image is None:
        return np.full((height, height, 3), _EMPTY, dtype=np.uint8)
    rows, columns = image.shape[:2]
    size = (max(1, round(height * columns / rows)), height)
    small = cv2.resize(_as_bytes(image), size, interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(small, dtype=np.uint8)


def mask_panel(mask: Mask, picture: Picture) -> Picture:
    """Draw a mask of 0 and 1 at the size of a panel."""
    size = (picture.shape[1], picture.shape[0])
    small = cv2.resize(np.ascontiguousarray(mask).view(np.uint8), size, interpolation=cv2.INTER_NEAREST)
    return np.asarray(small, dtype=np.uint8)


def outline(picture: Picture, mask: Mask | None, colour: Colour, width: int = 1) -> None:
    """Draw the outline of a mask of any size on a panel; does nothing without a mask."""
    if mask is not None:
        outlines, _ = cv2.findContours(mask_panel(mask, picture), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
        cv2.drawContours(picture, outlines, -1, colour, width, cv2.LINE_AA)


def canvas(size: tuple[int, int]) -> tuple[PillowImage.Image, ImageDraw.ImageDraw]:
    """Return a white canvas of this width and height, and an object that draws on it."""
    paper = PillowImage.new("RGB", size, PAPER)
    return paper, ImageDraw.Draw(paper)


def paste(paper: PillowImage.Image, picture: Picture, at: tuple[int, int]) -> None:
    """Paste a picture on a canvas with its upper left corner at ``at``."""
    paper.paste(PillowImage.fromarray(picture), at)


def save(picture: Picture, file: Path) -> None:
    """Write a picture as PNG, creating its folder.

    Raises:
        OutputProblem: It cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with writing(file) as opened:
        # a third of the time of Pillow's own level, and a sixth larger
        PillowImage.fromarray(picture).save(opened, format="PNG", compress_level=2)


def fitted(draw: ImageDraw.ImageDraw, words: str, font: Font, width: int) -> str:
    """Shorten words to a width, with an ellipsis if they were cut.

    Args:
        draw: Object that will draw them.
        words: One line.
        font: Its font.
        width: Available pixels.
    """
    if draw.textlength(words, font=font) <= width:
        return words
    while words and draw.textlength(f"{words}…", font=font) > width:
        words = words[:-1]
    return f"{words}…"


def wrapped(draw: ImageDraw.ImageDraw, words: str, font: Font, width: int) -> list[str]:
    """Wrap words into lines of a width in pixels; a longer word gets its own line."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if draw.textlength(longer, font=font) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _as_bytes(image: Image) -> Picture:
    if image.dtype == np.uint8 and image.ndim == 3:
        return image
    low, high = float(image.min()), float(image.max())
    scaled = (image.astype(np.float32) - low) * (255.0 / (high - low) if high > low else 0.0)
    grey = scaled.astype(np.uint8)
    return grey if grey.ndim == 3 else np.repeat(grey[..., None], 3, axis=2)
