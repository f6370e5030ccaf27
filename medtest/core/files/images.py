"""Reading untrusted picture files: size limits before decoding, format by content, one clear reason for bad files.

Formats are PNG, JPEG, BMP, TIFF and WebP, regardless of the suffix (many copies of Kvasir-SEG hold JPEG data in files
named .png). Pillow decodes, because it refuses truncated data, which OpenCV fills with grey.

Conversion to 8-bit RGB:

- orientation from EXIF (or TIFF's own tag) is applied;
- 16-bit grey values are divided by 257, unless none is above 255; 16-bit colour keeps its high byte; floats are taken
  as 0-1 if none is above 1, else as 0-255;
- transparent parts become black; palettes are resolved; CMYK and other colour spaces are converted; colour profiles are
  ignored, as networks trained on plain files expect.

Colour TIFFs declared as grey are read as RGB (:mod:`medtest.core.files.tiffheader`). Conversion to masks is in
:mod:`medtest.core.files.masks`.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import (  # the plugins register the formats below and no others
    BmpImagePlugin,  # noqa: F401
    ImageOps,
    JpegImagePlugin,  # noqa: F401
    MpoImagePlugin,  # noqa: F401
    PngImagePlugin,  # noqa: F401
    TiffImagePlugin,  # noqa: F401
    UnidentifiedImageError,
    WebPImagePlugin,  # noqa: F401
)
from PIL import Image as Pillow

from medtest.core.cases import Image
from medtest.core.files.links import unreadable
from medtest.core.files.tiffheader import declared_rgb, described
from medtest.core.files.truncation import refusing_truncated

FORMATS = ("PNG", "JPEG", "BMP", "DIB", "TIFF", "WEBP")
"""Pillow's names of the accepted formats."""

READABLE = "PNG, JPEG, BMP, TIFF, WebP"

MAX_PIXELS = 64_000_000
"""Largest picture that is decoded, unless a setting says otherwise."""

MOST_PIXELS = 178_000_000
"""Upper limit of that setting: Pillow refuses larger pictures."""

MAX_BYTES_A_PIXEL = 16
"""Largest file size per allowed pixel (float RGBA), plus ``SPARE_BYTES``."""

SPARE_BYTES = 16 * 2**20

LOSSY = ("JPEG", "MPO", "WEBP")
"""Formats that change values. MPO is the format of phone JPEGs with a second picture; only the first is read."""

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

_POINTERS = (
    (b"/annex/objects/", "a pointer of git-annex", "run git annex get"),
    (b"version https://git-lfs", "a pointer of Git LFS", "run git lfs pull"),
)
"""Beginnings of pointer files that replace pictures not fetched yet."""

_ORIENTATION = 274
"""EXIF tag of the orientation; values 5 to 8 exchange width and height."""

# Pillow warns from half of its own limit on; medtest checks its limit before decoding.
warnings.simplefilter("ignore", Pillow.DecompressionBombWarning)


class BadFileError(Exception):
    """Raised if a file cannot be used; the message is the reason, a phrase without the file's name."""


@contextmanager
def damage_is(reason: str) -> Iterator[None]:
    """Convert any exception from the parser of an untrusted file to one reason, without quoting the file.

    Raises:
        BadFileError: With that reason, or the one raised inside.
        MemoryError: As raised inside.
    """
    try:
        yield
    except (BadFileError, MemoryError):
        raise
    except Exception as error:
        raise BadFileError(reason) from error


@contextmanager
def opened_file(path: Path) -> Iterator[tuple[io.BufferedReader, int]]:
    """Open a regular file for reading; yield it and its size in bytes.

    Raises:
        BadFileError: It is not a regular file (a pipe would hang), or opening or reading fails.
    """
    try:
        # Opened without blocking, so that a pipe that replaces the file in between does not hang either.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise BadFileError("is not a regular file")
            yield file, status.st_size
    except OSError as error:
        raise BadFileError(unreadable(path, error)) from error


def read_bytes(path: Path, *, max_pixels: int = MAX_PIXELS) -> bytes:
    """Read a regular file within the size limit of a picture; a colour TIFF declared as grey gets a corrected header.

    Raises:
        BadFileError: It is not a regular file (a pipe would hang), empty, too large, or unreadable.
    """
    limit = max_pixels * MAX_BYTES_A_PIXEL + SPARE_BYTES
    with opened_file(path) as (file, size):
        if size > limit:
            raise BadFileError(f"is {size / 1e6:.0f} MB, more than {max_pixels / 1e6:g} Mpixel can take")
        content = file.read(limit + 1)
    if not content:
        raise BadFileError("is empty (0 bytes)")
    if len(content) > limit:
        raise BadFileError("grows while it is read")
    return declared_rgb(content)


def png_header(content: bytes) -> tuple[int, int, int, int] | None:
    """Return width, height, bits per sample and colour type of a PNG (PNG specification, 11.2.1) without decoding.

    Args:
        content: The file's bytes, at least the first 33.

    Returns:
        None if it is not a PNG.
    """
    if len(content) < 33 or not content.startswith(PNG_SIGNATURE) or content[12:16] != b"IHDR":
        return None
    width, height, bits, colour = struct.unpack(">IIBB", content[16:26])
    return width, height, bits, colour


def webp_header(content: bytes) -> tuple[int, int, bool] | None:
    """Return width, height and whether there is alpha of a lossless WebP (RFC 9649, 3.4) without decoding.

    Args:
        content: The file's bytes, at least the first 25.

    Returns:
        None if it is not a lossless WebP of one picture.
    """
    if len(content) < 25 or content[:4] != b"RIFF" or content[8:16] != b"WEBPVP8L" or content[20] != 0x2F:
        return None
    bits = int.from_bytes(content[21:25], "little")
    return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, bool(bits >> 28 & 1)


@contextmanager
def opened_picture(content: bytes, max_pixels: int, *, page: int | None = None) -> Iterator[Pillow.Image]:
    """Open a picture, check its size, and convert any decoder exception to one reason.

    Args:
        content: The file's bytes.
        max_pixels: Limit, checked before decoding.
        page: Index from 0 for a file with several pictures; None if the file must hold exactly one.

    Raises:
        BadFileError: It is not a picture, damaged, over the limit, has too few pages, or holds several pictures.
    """
    try:
        with (
            refusing_truncated,
            Pillow.open(io.BytesIO(declared_rgb(content)), formats=FORMATS) as picture,
        ):
            _check_bound(picture.size, max_pixels)
            if page is None:
                _check_single(picture)
            else:
                _seek_page(picture, page)
                _check_bound(picture.size, max_pixels)
            yield picture
    except BadFileError:
        raise
    except Pillow.DecompressionBombError as error:
        raise BadFileError(f"has more pixels than the bound of {max_pixels / 1e6:g} Mpixel") from error
    except UnidentifiedImageError as error:
        raise BadFileError(_unsupported_reason(content)) from error
    except Exception as error:
        raise BadFileError(_damage_reason(error)) from error


def _check_bound(size: tuple[int, int], max_pixels: int) -> None:
    width, height = size
    if width * height > max_pixels:
        raise BadFileError(
            f"is {width}×{height}, {width * height / 1e6:.1f} Mpixel; the bound is {max_pixels / 1e6:g} Mpixel"
        )


def _check_single(picture: Pillow.Image) -> None:
    if picture.format == "MPO" or not hasattr(picture, "seek"):
        return
    try:
        picture.seek(1)
    except EOFError:
        picture.seek(0)
        return
    raise BadFileError(f"holds several pictures ({picture.format}); each file must hold one")


def _seek_page(picture: Pillow.Image, page: int) -> None:
    try:
        picture.seek(page)
    except EOFError:
        raise BadFileError(f"has not {page + 1} pages") from None


def _unsupported_reason(content: bytes) -> str:
    for magic, name in ((b"GIF8", "a GIF"), (b"%PDF", "a PDF"), (b"PK\x03\x04", "a ZIP archive")):
        if content.startswith(magic):
            return f"is {name}, not one of {READABLE}"
    if content[128:132] == b"DICM":
        return f"is a DICOM file, not one of {READABLE}"
    for start, name, advice in _POINTERS:
        if content.startswith(start):
            return f"is {name} and not the picture itself; {advice}"
    tiff = described(content)
    if tiff:
        return f"is a TIFF of {tiff}, which is not read; save it as RGB or grey of 8 bits"
    head = content[:512]
    if not head.strip(b"\0"):
        return "holds only zeros, no picture"
    if b"\0" not in head and sum(byte < 9 for byte in head) == 0:
        return f"is text, not one of {READABLE}"
    return f"is not one of {READABLE}, or its beginning is damaged"


def _damage_reason(error: Exception) -> str:
    text = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
    if isinstance(error, MemoryError):
        return "is too large for this machine's memory"
    if "truncated" in text.lower() or isinstance(error, EOFError):
        return f"is truncated ({text})"
    return f"is damaged ({text})"


# ---------------------------------------------------------------------------------------------------------- pixels


def upright(picture: Pillow.Image) -> Pillow.Image:
    """Decode an opened picture and apply its orientation."""
    picture.load()
    return ImageOps.exif_transpose(picture)


def to_eight_bits(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Convert grey values of a wider type to 8 bits."""
    if values.dtype.kind == "f":
        floats = values.astype(np.float64)
        if not np.isfinite(floats).all():
            raise BadFileError("holds values that are not numbers")
        low, high = float(floats.min()), float(floats.max())
        if low < 0 or high > 255:
            raise BadFileError(f"holds values from {low:g} to {high:g}; floats must lie in 0-1 or 0-255")
        return np.rint(floats * 255 if high <= 1 else floats).astype(np.uint8)
    wide = values.astype(np.int64)
    low, high = int(wide.min()), int(wide.max())
    if low < 0 or high > 65535:
        raise BadFileError(f"holds values from {low} to {high}; integers must fit 16 bits")
    return (wide if high <= 255 else (wide + 128) // 257).astype(np.uint8)


def rgb_of(picture: Pillow.Image) -> Image:
    """Convert a decoded picture to uint8 H×W×3 RGB."""
    mode = picture.mode
    if mode.startswith(("I", "F")):
        return cast(Image, cv2.cvtColor(to_eight_bits(np.asarray(picture)), cv2.COLOR_GRAY2RGB))
    if "transparency" in picture.info or mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        coloured = np.asarray(picture.convert("RGBA"))
        alpha = coloured[..., 3]
        if int(alpha.min()) < 255:
            scaled = coloured[..., :3].astype(np.uint16) * alpha[..., None]
            return cast(Image, ((scaled + 127) // 255).astype(np.uint8))
        return np.ascontiguousarray(coloured[..., :3])
    return np.array(picture if mode == "RGB" else picture.convert("RGB"), dtype=np.uint8, order="C")


def decode_rgb(content: bytes, *, max_pixels: int = MAX_PIXELS) -> Image:
    """Decode a file's bytes to uint8 H×W×3 RGB, upright and contiguous.

    Raises:
        BadFileError: It is not a readable picture within the limit.
    """
    with opened_picture(content, max_pixels) as picture:
        return rgb_of(upright(picture))


def decode_size(content: bytes, *, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Return height and width of the upright picture, from its header alone.

    Raises:
        BadFileError: It is not a readable picture within the limit.
    """
    with opened_picture(content, max_pixels) as picture:
        # To find EXIF data after the pixels Pillow would decode the whole PNG; hardly any PNG has them there.
        may_have_exif = picture.format != "PNG" or "exif" in picture.info
        return _upright_size(picture, picture.size, look=may_have_exif)


def _upright_size(picture: Pillow.Image, size: tuple[int, int], *, look: bool = True) -> tuple[int, int]:
    """Return height and width after rotation; Pillow reports a TIFF's size already rotated."""
    width, height = size
    if look and picture.format != "TIFF" and picture.getexif().get(_ORIENTATION, 1) in (5, 6, 7, 8):
        return width, height
    return height, width


def is_turned(content: bytes, *, max_pixels: int = MAX_PIXELS) -> bool:
    """Return True if the header says that the picture must be rotated or mirrored.

    Raises:
        BadFileError: It is not a readable picture within the limit.
    """
    with opened_picture(content, max_pixels) as picture:
        if picture.format == "PNG" and "exif" not in picture.info:
            return False  # see decode_size
        return bool(picture.getexif().get(_ORIENTATION, 1) != 1)


def check_decodes(content: bytes, *, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Check that a picture decodes completely, as cheaply as its format allows; return its upright height and width.

    JPEG data are read to the end but transformed at an eighth of the size.

    Raises:
        BadFileError: It is not a readable picture within the limit.
    """
    with opened_picture(content, max_pixels) as picture:
        size = picture.size
        if picture.format in ("JPEG", "MPO"):
            picture.draft(None, (max(1, picture.width // 8), max(1, picture.height // 8)))
        if picture.mode.startswith(("I", "F")):
            to_eight_bits(np.asarray(picture))
        else:
            picture.load()
        return _upright_size(picture, size)


def read_rgb(path: Path, *, max_pixels: int = MAX_PIXELS) -> Image:
    """Read a picture file as uint8 H×W×3 RGB.

    Raises:
        BadFileError: With the reason.
    """
    return decode_rgb(read_bytes(path, max_pixels=max_pixels), max_pixels=max_pixels)


def read_size(path: Path, *, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Return height and width of an upright picture file without decoding it.

    Raises:
        BadFileError: With the reason.
    """
    return decode_size(read_bytes(path, max_pixels=max_pixels), max_pixels=max_pixels)
