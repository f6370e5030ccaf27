"""Sample pictures stacked on a few sheets; MLflow shows each sheet as a step of an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

MOST = 3
"""Maximum number of sheets of a run; each costs two requests, one of them for its thumbnail."""
_FEWEST, _HIGHEST = 4, 10
"""Pictures on a full sheet."""
_WIDTH = 1100
_GAP = 12
_PAPER = "white"


def sheets(pictures: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, int, Image]]:
    """Yield key, step and image (at most 1100 pixels wide) of at most :data:`MOST` sheets, those of a key in order.

    Surplus pictures are left out.

    Args:
        pictures: Key and file of each picture; those of a key share sheets.
    """
    by_key: dict[str, list[Path]] = {}
    for key, path in pictures:
        by_key.setdefault(key, []).append(path)
    shown = dict(list(by_key.items())[:MOST])
    rows = _FEWEST
    while rows < _HIGHEST and sum(ceil(len(group) / rows) for group in shown.values()) > MOST:
        rows += 1
    room = MOST - len(shown)  # beyond the first sheet of each key
    for key, group in shown.items():
        more = min(room, ceil(len(group) / rows) - 1)
        room -= more
        for step in range(1 + more):
            yield key, step, _below_one_another(group[step * rows : (step + 1) * rows])


def _below_one_another(paths: Sequence[Path]) -> Image:
    from PIL import Image

    drawn = []
    for path in paths:
        with Image.open(path) as opened:
            shown = opened.convert("RGB")
        shown.thumbnail((_WIDTH, _WIDTH))
        drawn.append(shown)
    height = sum(image.height for image in drawn) + _GAP * (len(drawn) - 1)
    sheet = Image.new("RGB", (max(image.width for image in drawn), height), _PAPER)
    top = 0
    for image in drawn:
        sheet.paste(image, (0, top))
        top += image.height + _GAP
    return sheet
