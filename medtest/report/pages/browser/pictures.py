"""Pictures of the browser: thumbnails of runs as WebP inside the page, or as files beside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from medtest.runner.records.thumbnails import SIDE

FOLDER = "browser"
"""Folder beside the page for pictures that are not inside it."""
JPEG = b"\xff\xd8"
"""First bytes of a stored thumbnail that is a picture."""
_QUALITY, _METHOD = 35, 2
_THREADS = 4
_MOST_BYTES = 1 << 20
"""Largest thumbnail that is read; those of runs have a few kilobytes."""
_MOST_PIXELS = (8 * SIDE) ** 2


@dataclass
class ShownPictures:
    """Pictures of a page, each once.

    Attributes:
        inside: True for data inside the page, False for files beside it.
        shown: Base64 of WebP, or the path of a file, in the order in which they were added.
        files: Content of the files by their names below :data:`FOLDER`.
    """

    inside: bool = True
    shown: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _ready: dict[str, bytes] = field(default_factory=dict)

    def convert(self, thumbnails: Mapping[str, bytes]) -> None:
        """Prepare thumbnails for :meth:`add`; undecodable ones are left out.

        Args:
            thumbnails: JPEG by name.
        """
        names = [name for name in thumbnails if name not in self._numbers and name not in self._ready]
        with ThreadPoolExecutor(_THREADS) as pool:
            encoded = pool.map(_webp, [thumbnails[name] for name in names])
            self._ready |= {name: data for name, data in zip(names, encoded, strict=True) if data}

    def cost(self, names: Iterable[str]) -> int:
        """Return the bytes by which pictures would enlarge the page."""
        new = (self._ready[name] for name in dict.fromkeys(names) if name in self._ready and name not in self._numbers)
        return sum(len(data) * 4 // 3 for data in new) if self.inside else 0

    def add(self, name: str) -> int | None:
        """Return the number of a picture in ``shown``, None if there is none of this name."""
        if name in self._numbers:
            return self._numbers[name]
        data = self._ready.pop(name, None)
        if data is None:
            return None
        if self.inside:
            self.shown.append(base64.b64encode(data).decode("ascii"))
        else:
            self.files[f"{name}.webp"] = data
            self.shown.append(f"{FOLDER}/{name}.webp")
        self._numbers[name] = len(self.shown) - 1
        return self._numbers[name]

    def drop_unused(self) -> None:
        """Forget converted pictures that were not added."""
        self._ready.clear()


def _webp(jpeg: bytes) -> bytes:
    """Return a thumbnail as WebP; b"" if it cannot be decoded."""
    from PIL import Image, UnidentifiedImageError

    if len(jpeg) > _MOST_BYTES:
        return b""
    try:
        with Image.open(io.BytesIO(jpeg), formats=("JPEG",)) as picture:
            if picture.width * picture.height > _MOST_PIXELS:
                return b""
            buffer = io.BytesIO()
            picture.convert("RGB").save(buffer, "WEBP", quality=_QUALITY, method=_METHOD)
    except (OSError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError):
        return b""
    return buffer.getvalue()
