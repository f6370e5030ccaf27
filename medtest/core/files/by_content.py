"""Pictures kept by content: one PNG for each set of pixels, named by their SHA-256.

PNG and not lossless WebP, by measurement (``benchmarks/followups.py --formats``: 512×512 phantoms and their follow-ups
on one core): with the filter "up" and run-length coding a PNG takes 10 ms to write, 5 ms to read, 264 KiB; OpenCV's
default 11, 5 and 287; the other filters and levels 9-28 ms to write at 253-395 KiB; lossless WebP at its fastest 15 ms
to write, 6 ms to read, 216 KiB. The fifth that WebP would save on disk costs half as much time again, and every tool
reads PNG, so that an export is a copy.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import cv2
import numpy as np

from medtest.core.cases import Image, Mask, image_sha256
from medtest.core.errors import MedtestError
from medtest.core.files.images import MOST_PIXELS, PNG_SIGNATURE, BadFileError, png_header, read_bytes

Kind = Literal["images", "masks"]
KINDS: Final[tuple[Kind, ...]] = ("images", "masks")
SUFFIX = ".png"
DRAFT = ".part"

IMAGE_PNG: Final = (
    cv2.IMWRITE_PNG_COMPRESSION,
    1,
    cv2.IMWRITE_PNG_FILTER,
    cv2.IMWRITE_PNG_FILTER_UP,
    cv2.IMWRITE_PNG_STRATEGY,
    cv2.IMWRITE_PNG_STRATEGY_RLE,
)
MASK_PNG: Final = (cv2.IMWRITE_PNG_COMPRESSION, 1)

_SHA = re.compile(r"[0-9a-f]{64}")
_NAMED = re.compile(rf"[0-9a-f]{{64}}{re.escape(SUFFIX)}")
_COLOURS = {"images": 2, "masks": 0}  # IHDR's colour types: truecolour, greyscale


class DamagedFile(MedtestError):
    """A picture that is kept by content is missing, truncated or altered."""


def relative_path(kind: Kind, sha256: str) -> str:
    """Return where a picture lies below the store: ``images/ab/abcd….png``.

    Raises:
        ValueError: It is no SHA-256 in hexadecimal.
    """
    if not _SHA.fullmatch(sha256):
        raise ValueError(f"{sha256[:80]!r} is no SHA-256 in lower-case hexadecimal")
    return f"{kind}/{sha256[:2]}/{sha256}{SUFFIX}"


def mask_sha256(mask: Mask) -> str:
    """Return the name of a mask: :func:`medtest.core.cases.image_sha256` of the bool H×W array."""
    return image_sha256(np.ascontiguousarray(mask, dtype=np.bool_))


def encode(kind: Kind, pixels: Image) -> bytes:
    """Return pixels as PNG: images as 8-bit RGB, masks as 8-bit grey of 0 and 255.

    Args:
        kind: What they are.
        pixels: uint8 H×W×3 for images, bool H×W for masks.

    Raises:
        ValueError: They are something else.
    """
    if kind == "images":
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
            raise ValueError(f"the store keeps uint8 H×W×3 images, not {pixels.dtype} of shape {pixels.shape}")
        good, data = cv2.imencode(SUFFIX, cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), IMAGE_PNG)
    else:
        if pixels.dtype != np.bool_ or pixels.ndim != 2:
            raise ValueError(f"the store keeps bool H×W masks, not {pixels.dtype} of shape {pixels.shape}")
        grey = np.ascontiguousarray(pixels).view(np.uint8) * np.uint8(255)
        good, data = cv2.imencode(SUFFIX, grey, MASK_PNG)
    if not good:
        raise ValueError(f"{pixels.shape} could not be encoded")
    return data.tobytes()


_PIXEL_CHUNKS = (b"IHDR", b"IDAT", b"IEND")
_PLAIN = bytes((8, 2, 0, 0, 0))
"""IHDR after width and height: 8 bits, truecolour, the only compression and filter method, not interlaced."""


def without_metadata(content: bytes) -> bytes | None:
    """Return a PNG file of 8-bit RGB without anything but its pixels, as :func:`encode` would hold them.

    Args:
        content: A file that decodes.

    Returns:
        None where it is a picture of another kind, or one whose pixels need another chunk to be read.
    """
    if png_header(content) is None or content[24:29] != _PLAIN:
        return None
    parts, place, view = [PNG_SIGNATURE], len(PNG_SIGNATURE), memoryview(content)
    while place + 12 <= len(content):
        end = place + 12 + int.from_bytes(view[place : place + 4], "big")
        name = bytes(view[place + 4 : place + 8])
        if name == b"tRNS" or end > len(content) or (name not in _PIXEL_CHUNKS and not name[0] & 0x20):
            return None
        if name in _PIXEL_CHUNKS:
            parts.append(bytes(view[place:end]))
        place = end
        if name == b"IEND":
            return b"".join(parts)
    return None


def decode(kind: Kind, sha256: str, content: bytes) -> Image:
    """Return a file's pixels, checked against its name.

    Args:
        kind: What it holds.
        sha256: Its name.
        content: The file's bytes.

    Returns:
        uint8 H×W×3 RGB, or bool H×W.

    Raises:
        DamagedFile: It holds something else than its name says.
    """
    name = relative_path(kind, sha256)
    _check_head(kind, name, content)
    flags = cv2.IMREAD_COLOR if kind == "images" else cv2.IMREAD_GRAYSCALE
    try:
        found = cv2.imdecode(np.frombuffer(content, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise _damaged(name, "cannot be decoded") from error
    if found is None:
        raise _damaged(name, "cannot be decoded")
    pixels: Image = cv2.cvtColor(found, cv2.COLOR_BGR2RGB) if kind == "images" else found > 0
    if image_sha256(pixels) != sha256:
        raise _damaged(name, "holds other pixels than its name says (altered or truncated)")
    return pixels


def _check_head(kind: Kind, name: str, content: bytes) -> None:
    """Check size and kind of the picture before anything is decoded."""
    header = png_header(content)
    if header is None:
        raise _damaged(name, "is no PNG file" if content else "is empty")
    width, height, depth, colour = header
    if width * height > MOST_PIXELS or not width * height:
        raise _damaged(name, f"claims {width}×{height} pixels")
    if depth != 8 or colour != _COLOURS[kind]:
        raise _damaged(name, f"is a PNG of another kind (depth {depth}, colour type {colour})")
    _check_chunks(name, content)


def _check_chunks(name: str, content: bytes) -> None:
    """Check every chunk's length and CRC (PNG specification, 5.3): libpng would print what it finds on the terminal."""
    place, view = len(PNG_SIGNATURE), memoryview(content)
    while place < len(content):
        end = place + 12 + int.from_bytes(view[place : place + 4], "big")
        if end > len(content):
            raise _damaged(name, "cannot be decoded (it is truncated)")
        if zlib.crc32(view[place + 4 : end - 4]) != int.from_bytes(view[end - 4 : end], "big"):
            raise _damaged(name, "cannot be decoded (it was altered)")
        place = end


def _damaged(name: str, what: str) -> DamagedFile:
    return DamagedFile(f"{name} {what}.")


class PictureFiles:
    """The pictures of one folder.

    Args:
        folder: The store's folder.
        durable: Each file is forced to disk before it gets its name, for what is named by others at once. Else not, for
            that takes a tenth of a second on a busy disk: after a power failure a file may be empty.
    """

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        self.folder = folder
        self._durable = durable

    def path(self, kind: Kind, sha256: str) -> Path:
        """Return where a picture lies or would lie."""
        return self.folder / relative_path(kind, sha256)

    def size(self, kind: Kind, sha256: str) -> int | None:
        """Return the bytes of a picture's file, or None where there is none."""
        try:
            status = os.lstat(self.path(kind, sha256))
        except FileNotFoundError:
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def put(self, kind: Kind, sha256: str, pixels: Image) -> int:
        """Write a picture unless it is there, whole or not at all, and return the bytes written (0 if it was there).

        The file is renamed into place, so that another process never sees half of it and killing this one leaves at
        most a draft behind.

        Raises:
            OSError: It cannot be written.
            ValueError: The pixels are of a kind that is not kept.
        """
        return self.put_bytes(kind, sha256, encode(kind, pixels))

    def put_bytes(self, kind: Kind, sha256: str, content: bytes) -> int:
        """As :meth:`put`, with the picture encoded already.

        Raises:
            OSError: It cannot be written.
        """
        path = self.path(kind, sha256)
        if self.size(kind, sha256) == len(content):
            with suppress(OSError):
                if path.read_bytes() == content:
                    return 0
        return self._write(path, content)

    def _write(self, path: Path, content: bytes) -> int:
        draft = path.with_name(f".{path.stem[:16]}-{os.getpid()}-{secrets.token_hex(4)}{DRAFT}")
        try:
            try:
                handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                if self._durable:
                    file.flush()
                    os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        return len(content)

    def read(self, kind: Kind, sha256: str) -> Image:
        """Return a picture, checked against its name.

        Raises:
            DamagedFile: It is missing, or holds something else.
        """
        try:
            content = read_bytes(self.path(kind, sha256), max_pixels=MOST_PIXELS).content
        except BadFileError as error:
            raise _damaged(relative_path(kind, sha256), str(error)) from error
        return decode(kind, sha256, content)


def forget_pictures(folder: Path) -> None:
    """Delete what :class:`PictureFiles` keeps in a folder, and nothing else that lies there.

    Raises:
        OSError: Something cannot be deleted.
    """
    for kind in KINDS:
        for path in (folder / kind).glob("[0-9a-f][0-9a-f]/*"):
            if path.suffix == DRAFT or _NAMED.fullmatch(path.name):
                path.unlink(missing_ok=True)
        for below in ((folder / kind).glob("[0-9a-f][0-9a-f]"), [folder / kind]):
            for empty in below:
                with suppress(OSError):
                    empty.rmdir()
    with suppress(OSError):
        folder.rmdir()
