"""Small pictures of the images whose answers flip most, made again: ``samples/asked-*.png``, one sheet an image."""

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
"""Height of a small picture in pixels; its width follows the image, at most twice that."""
_QUALITY = 82


def sheet_pictures(worst: Sequence[Illustration]) -> list[ReplayedPicture]:
    """Return the sheets of one system; nothing is asked of it, for its answers are in the records.

    Args:
        worst: What :func:`medtest.tasks.ask.tables.worst.worst_images` chose.
    """
    return [_picture(number, one) for number, one in enumerate(worst, start=1)]


def sheets(folder: Path, worst: Sequence[Illustration]) -> list[list[str]]:
    """Return the small pictures of each image as ``data:`` addresses; none of an image that has no sheet."""
    known = {tuple(entry.get("addresses") or ()): entry for entry in sample_index(folder, SHEETS.index)}
    return [_pictures(folder, known.get(tuple(one.address(shown) for shown in one.pictures))) for one in worst]


def _pictures(folder: Path, entry: dict[str, Any] | None) -> list[str]:
    from PIL import Image, UnidentifiedImageError

    path = None if entry is None else picture_of(folder, entry)
    widths = entry.get("widths") if entry is not None else None
    if path is None or not isinstance(widths, list) or not all(isinstance(one, int) and one > 0 for one in widths):
        return []
    found, left = [], 0
    try:
        with Image.open(path) as sheet:
            if sheet.height > SIDE or sheet.width != sum(widths):
                return []
            whole = sheet.convert("RGB")
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError):
        return []
    for width in widths:
        buffer = io.BytesIO()
        whole.crop((left, 0, left + width, whole.height)).save(buffer, "JPEG", quality=_QUALITY)
        found.append("data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"))
        left += width
    return found


def _picture(number: int, one: Illustration) -> ReplayedPicture:
    addresses = [one.address(shown) for shown in one.pictures]
    entry = {"file": f"asked-{number:02d}.png", "addresses": addresses}
    return ReplayedPicture(entry=entry, addresses=addresses, draw=lambda images, path: {"widths": _save(images, path)})


def _save(images: Sequence[Any], path: Path) -> list[int]:
    """Write small pictures side by side; return their widths. A follow-up without an image is a grey one."""
    from PIL import Image

    small = []
    for image in images:
        if image is None:
            small.append(Image.new("RGB", (SIDE, SIDE), (236, 236, 236)))
            continue
        picture = Image.fromarray(image)
        width = min(2 * SIDE, max(1, round(SIDE * picture.width / picture.height)))
        small.append(picture.resize((width, SIDE), Image.Resampling.LANCZOS))
    sheet = Image.new("RGB", (sum(one.width for one in small), SIDE))
    left = 0
    for one in small:
        sheet.paste(one, (left, 0))
        left += one.width
    with writing(path) as file:
        sheet.save(file, format="PNG")
    return [one.width for one in small]
