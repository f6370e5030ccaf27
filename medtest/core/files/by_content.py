"""Content-addressed store of pictures: one PNG per set of pixels, named by its SHA-256.

PNG was chosen over lossless WebP by measurement (``benchmarks/followups.py --formats``: 512×512 phantoms and their
follow-ups on one core). With the filter "up" and run-length coding a PNG takes 10 ms to write, 5 ms to read, 264 KiB;
OpenCV's default 11, 5 and 287; the other filters and levels 9-28 ms to write at 253-395 KiB; lossless WebP at its
fastest 15 ms to write, 6 ms to read, 216 KiB. WebP would save a fifth of the disk space for half as much time again,
and every tool reads PNG, so that an export is a copy.
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
    """Raised if a stored picture is missing, truncated or altered."""


def relative_path(kind: Kind, sha256: str) -> str:
    """Return the path of a picture relative to the store: ``images/ab/abcd….png``.

    Raises:
        ValueError: ``sha256`` is not a SHA-256 in lower-case hexadecimal.
    """
    if not _SHA.fullmatch(sha256):
        raise ValueError(f"{sha256[:80]!r} is not a SHA-256 in lower-case hexadecimal")
    return f"{kind}/{sha256[:2]}/{sha256}{SUFFIX}"


def mask_sha256(mask: Mask) -> str:
    """Return the name of a mask: :func:`medtest.core.cases.image_sha256` of the bool H×W array."""
    return image_sha256(np.ascontiguousarray(mask, dtype=np.bool_))


def encode(kind: Kind, pixels: Image) -> bytes:
    """Encode pixels as PNG: images as 8-bit RGB, masks as 8-bit grey of 0 and 255.

    Args:
        kind: Kind of the pixels.
        pixels: uint8 H×W×3 for images, bool H×W for masks.

    Raises:
        ValueError: The pixels have another dtype or shape.
    """
    if kind == "images":
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
            raise ValueError(f"the store keeps uint8 H×W×3 images, not {pixels.dtype} of shape {pixels.shape}")
        encoded, data = cv2.imencode(SUFFIX, cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), IMAGE_PNG)
    else:
        if pixels.dtype != np.bool_ or pixels.ndim != 2:
            raise ValueError(f"the store keeps bool H×W masks, not {pixels.dtype} of shape {pixels.shape}")
        grey = np.ascontiguousarray(pixels).view(np.uint8) * np.uint8(255)
        encoded, data = cv2.imencode(SUFFIX, grey, MASK_PNG)
    if not encoded:
        raise ValueError(f"{pixels.shape} could not be encoded")
    return data.tobytes()


_PIXEL_CHUNKS = (b"IHDR", b"IDAT", b"IEND")
_PLAIN = bytes((8, 2, 0, 0, 0))
"""IHDR after width and height: 8 bits, truecolour, the only compression and filter method, not interlaced."""


def without_metadata(content: bytes) -> bytes | None:
    """Return an 8-bit RGB PNG reduced to its pixels, as :func:`encode` would write them.

    Args:
        content: A file that decodes.

    Returns:
        None for a picture of another kind, or one whose pixels need another chunk to be decoded.
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
    """Decode a file's pixels and check them against its name.

    Args:
        kind: Kind of the pixels.
        sha256: The file's name.
        content: The file's bytes.

    Returns:
        uint8 H×W×3 RGB, or bool H×W.

    Raises:
        DamagedFile: The content does not match the name.
    """
    name = relative_path(kind, sha256)
    _check_head(kind, name, content)
    flags = cv2.IMREAD_COLOR if kind == "images" else cv2.IMREAD_GRAYSCALE
    try:
        raster = cv2.imdecode(np.frombuffer(content, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise _damaged(name, "cannot be decoded") from error
    if raster is None:
        raise _damaged(name, "cannot be decoded")
    pixels: Image = cv2.cvtColor(raster, cv2.COLOR_BGR2RGB) if kind == "images" else raster > 0
    if image_sha256(pixels) != sha256:
        raise _damaged(name, "holds other pixels than its name says (altered or truncated)")
    return pixels


def _check_head(kind: Kind, name: str, content: bytes) -> None:
    """Check size and kind of the picture before decoding."""
    header = png_header(content)
    if header is None:
        raise _damaged(name, "is not a PNG file" if content else "is empty")
    width, height, depth, colour = header
    if width * height > MOST_PIXELS or not width * height:
        raise _damaged(name, f"claims {width}×{height} pixels")
    if depth != 8 or colour != _COLOURS[kind]:
        raise _damaged(name, f"is a PNG of another kind (depth {depth}, colour type {colour})")
    _check_chunks(name, content)


def _check_chunks(name: str, content: bytes) -> None:
    """Check every chunk's length and CRC (PNG specification, 5.3): libpng would print errors on the terminal."""
    place, view = len(PNG_SIGNATURE), memoryview(content)
    while place < len(content):
        end = place + 12 + int.from_bytes(view[place : place + 4], "big")
        if end > len(content):
            raise _damaged(name, "cannot be decoded (it is truncated)")
        if zlib.crc32(view[place + 4 : end - 4]) != int.from_bytes(view[end - 4 : end], "big"):
            raise _damaged(name, "cannot be decoded (it was altered)")
        place = end


def _damaged(name: str, defect: str) -> DamagedFile:
    return DamagedFile(f"{name} {defect}.")


class PictureFiles:
    """Pictures of one folder.

    Args:
        folder: The store's folder.
        durable: Sync each file to disk before renaming it, for pictures that other files refer to at once. Otherwise a
            file may be empty after a power failure; syncing takes a tenth of a second on a busy disk.
    """

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        self.folder = folder
        self._durable = durable

    def path(self, kind: Kind, sha256: str) -> Path:
        """Return the path of a picture, whether or not it exists."""
        return self.folder / relative_path(kind, sha256)

    def size(self, kind: Kind, sha256: str) -> int | None:
        """Return the size of a picture's file in bytes, or None if it does not exist."""
        try:
            status = os.lstat(self.path(kind, sha256))
        except FileNotFoundError:
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def put(self, kind: Kind, sha256: str, pixels: Image) -> int:
        """Write a picture atomically unless it exists, and return the bytes written (0 if it existed).

        The file is renamed into place: other processes never see a partial file, and a killed process leaves at most a
        draft.

        Raises:
            OSError: The picture cannot be written.
            ValueError: The store does not keep pixels of this kind.
        """
        return self.put_bytes(kind, sha256, encode(kind, pixels))

    def put_bytes(self, kind: Kind, sha256: str, content: bytes) -> int:
        """Write an encoded picture like :meth:`put`.

        Raises:
            OSError: The picture cannot be written.
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
            DamagedFile: The picture is missing or does not match its name.
        """
        try:
            content = read_bytes(self.path(kind, sha256), max_pixels=MOST_PIXELS)
        except BadFileError as error:
            raise _damaged(relative_path(kind, sha256), str(error)) from error
        return decode(kind, sha256, content)


def forget_pictures(folder: Path) -> None:
    """Delete the pictures of :class:`PictureFiles` from a folder and leave other files alone.

    Raises:
        OSError: A file cannot be deleted.
    """
    for kind in KINDS:
        for path in (folder / kind).glob("[0-9a-f][0-9a-f]/*"):
            if path.suffix == DRAFT or _NAMED.fullmatch(path.name):
                path.unlink(missing_ok=True)
        for folders in ((folder / kind).glob("[0-9a-f][0-9a-f]"), [folder / kind]):
            for empty in folders:
                with suppress(OSError):
                    empty.rmdir()
    with suppress(OSError):
        folder.rmdir()
