"""Small pictures of the images with most flips, regenerated: ``samples/asked-*.png``, one sheet for each image."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medtest.report.pages.material import picture_of, sample_index
from medtest.report.replayed import PictureKind, ReplayedPicture
from medtest.runner.folder import writing
from medtest.tasks.ask.tables.worst import Illustration

SHEETS = PictureKind(
    index="asked.json",
    files="asked-*.png",
    gained=("widths",),
    undrawn="the pictures of an image could not be drawn",
)
SIDE = 132
"""Height of a small picture in pixels; the width follows the image, at most twice the height."""
_QUALITY = 82


def sheet_pictures(worst: Sequence[Illustration]) -> list[ReplayedPicture]:
    """Return the sheets of one system; the system is not called, since its answers are recorded.

    Args:
        worst: Images from :func:`medtest.tasks.ask.tables.worst.worst_images`.
    """
    return [_picture(number, image) for number, image in enumerate(worst, start=1)]


def sheets(folder: Path, worst: Sequence[Illustration]) -> list[list[str]]:
    """Return the small pictures of each image as ``data:`` addresses; empty for an image without a sheet."""
    entries = {tuple(entry.get("addresses") or ()): entry for entry in sample_index(folder, SHEETS.index)}
    return [_pictures(folder, entries.get(tuple(map(str, image.pictures)))) for image in worst]


def _pictures(folder: Path, entry: dict[str, Any] | None) -> list[str]:
    from PIL import Image, UnidentifiedImageError

    path = None if entry is None else picture_of(folder, entry)
    widths = entry.get("widths") if entry is not None else None
    if (
        path is None
        or not isinstance(widths, list)
        or not all(isinstance(width, int) and width > 0 for width in widths)
    ):
        return []
    addresses, left = [], 0
    try:
        with Image.open(path) as sheet:
            if sheet.height > SIDE or sheet.width != sum(widths):
                return []
            pixels = sheet.convert("RGB")
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError):
        return []
    for width in widths:
        buffer = io.BytesIO()
        pixels.crop((left, 0, left + width, pixels.height)).save(buffer, "JPEG", quality=_QUALITY)
        addresses.append("data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"))
        left += width
    return addresses


def _picture(number: int, image: Illustration) -> ReplayedPicture:
    addresses = list(map(str, image.pictures))
    entry = {"file": f"asked-{number:02d}.png", "addresses": addresses}
    return ReplayedPicture(entry=entry, addresses=addresses, draw=lambda images, path: {"widths": _save(images, path)})


def _save(images: Sequence[Any], path: Path) -> list[int]:
    """Write small pictures side by side and return their widths; a missing image becomes a grey square."""
    from PIL import Image

    small = []
    for image in images:
        if image is None:
            small.append(Image.new("RGB", (SIDE, SIDE), (236, 236, 236)))
            continue
        picture = Image.fromarray(image)
        width = min(2 * SIDE, max(1, round(SIDE * picture.width / picture.height)))
        small.append(picture.resize((width, SIDE), Image.Resampling.LANCZOS))
    sheet = Image.new("RGB", (sum(tile.width for tile in small), SIDE))
    left = 0
    for tile in small:
        sheet.paste(tile, (left, 0))
        left += tile.width
    with writing(path) as file:
        sheet.save(file, format="PNG")
    return [tile.width for tile in small]
