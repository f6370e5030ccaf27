"""Reading of untrusted DICOM files: bounds before decoding, one frame at a time, only tags of the pixels.

Only the elements below are parsed, so patient data is not even in memory; messages never quote a file, because a
damaged element may hold anything.

Conversion of a frame to 8-bit RGB:

- grey: stored values → modality (rescale slope and intercept, or its table) → window → 8 bits; MONOCHROME1 is
  inverted. The window is the requested one, else the file's first table or window (LINEAR, LINEAR_EXACT, SIGMOID as in
  PS3.3 C.11.2), else, for more than 8 bits, the darkest and brightest value of the frame without padding;
- colour: RGB, YBR_FULL, YBR_FULL_422, YBR_RCT and YBR_ICT become RGB; more than 8 bits keep the high byte;
- palette: its table is applied; 16-bit tables keep the high byte.

Conversion of a frame to a mask: stored values listed in ``label_values``; without them the higher of two values, an
error for several labels up to 20, else values brighter than half of the brightest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask
from medtest.core.files.images import BadFileError, damage_is, opened_file
from medtest.core.files.masks import MAX_LABEL
from medtest.core.portable import exp
from medtest.volumes.dicom_series import DEFLATED, transfer_syntax
from medtest.volumes.libraries import pydicom_library

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

MOST_FRAMES = 100_000
MOST_BYTES = 8 * 2**30
_SEGMENTATION = ("1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7")
_IMAGE_ELEMENTS = 0x0028
_KEPT = [0x00080016, 0x52009229, 0x52009230]
_COLOUR = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_RCT", "YBR_ICT")
_GREY = ("MONOCHROME1", "MONOCHROME2")
_HINT = "pip install pylibjpeg pylibjpeg-libjpeg pylibjpeg-openjpeg pyjpegls, or convert it with gdcmconv --raw"


@cache
def _tags() -> tuple[int, ...]:
    """Return the only elements parsed: those of the image, its class, and per-frame groups."""
    from pydicom.datadict import keyword_dict

    return (*(tag for tag in keyword_dict.values() if tag >> 16 == _IMAGE_ELEMENTS), *_KEPT)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, Dataset]]:
    """Open a file and read its header; parser errors become one reason that quotes nothing of the file."""
    pydicom = pydicom_library()
    with opened_file(path) as (file, size):
        if size == 0:
            raise BadFileError("is empty (0 bytes)")
        if size > MOST_BYTES:
            raise BadFileError(f"is {size / 1e9:.1f} GB; the bound for a DICOM file is {MOST_BYTES / 1e9:.1f} GB")
        with damage_is("is not a DICOM file, or its header is damaged"):
            if transfer_syntax(file) == DEFLATED:
                raise BadFileError("is a deflated DICOM file, which is not read; convert it with gdcmconv --raw")
            file.seek(0)
            header = pydicom.dcmread(file, stop_before_pixels=True, specific_tags=list(_tags()))
        yield file, header


def _number(header: Dataset, name: str, default: int = 0) -> int:
    try:
        return int(header.get(name, default) or default)
    except (TypeError, ValueError, ArithmeticError):
        raise BadFileError("has a damaged header") from None


def _shape(header: Dataset, max_pixels: int) -> tuple[int, int, int]:
    """Return the number of frames, rows and columns after checking them against the bounds."""
    rows, columns = _number(header, "Rows"), _number(header, "Columns")
    frames = _number(header, "NumberOfFrames", 1)
    if str(header.get("SOPClassUID", "")) in _SEGMENTATION:
        raise BadFileError("is a DICOM SEG object, which is not read; export its segments as pictures or NIfTI")
    if rows <= 0 or columns <= 0 or frames <= 0:
        raise BadFileError("is a DICOM file without an image")
    if rows * columns > max_pixels:
        size = f"{columns}×{rows}, {rows * columns / 1e6:.1f} Mpixel"
        raise BadFileError(f"is {size}; the bound is {max_pixels / 1e6:g} Mpixel")
    if frames > MOST_FRAMES:
        raise BadFileError(f"has {frames:,} frames; the bound is {MOST_FRAMES:,}")
    if _number(header, "SamplesPerPixel", 1) not in (1, 3) or _number(header, "BitsAllocated") not in (1, 8, 16, 32):
        raise BadFileError("holds pixels of a kind that is not read")
    return frames, rows, columns


def dicom_shape(path: Path, *, max_pixels: int) -> tuple[int, int, int]:
    """Return the number of frames, rows and columns from the header without decoding.

    Raises:
        BadFileError: The file is not a readable DICOM image within the bounds, or pydicom is missing.
    """
    with _opened(path) as (_, header):
        return _shape(header, max_pixels)


def dicom_rgb(path: Path, index: int, *, max_pixels: int, window: Sequence[float] = ()) -> Image:
    """Return one frame as uint8 H×W×3 RGB.

    Args:
        path: The file.
        index: Frame, from 0.
        max_pixels: Bound on the frame's pixels.
        window: Centre and width, in the units after rescaling; empty for the file's own.

    Raises:
        BadFileError: The frame cannot be read; the message gives the reason.
    """
    with _opened(path) as (file, header):
        _shape(header, max_pixels)
        colours = _colours(header)
        values = _frame(file, header, index)
        with damage_is("has a damaged palette, table or window"):
            if colours in _COLOUR:
                bits = _number(header, "BitsStored", 8)
                return np.ascontiguousarray((values >> max(0, bits - 8)).astype(np.uint8))
            if colours == "PALETTE COLOR":
                return _palette(values, header)
            grey = _windowed(values, header, index, tuple(window))
        return np.repeat(grey[..., None], 3, axis=2)


def dicom_mask(path: Path, index: int, *, max_pixels: int, values: Sequence[int] = ()) -> Mask:
    """Return one frame as bool H×W mask.

    Args:
        path: The file.
        index: Frame, from 0.
        max_pixels: Bound on the frame's pixels.
        values: Stored values that mark the lesion; empty applies the rules above.

    Raises:
        BadFileError: The frame cannot be read; the message gives the reason.
    """
    with _opened(path) as (file, header):
        _shape(header, max_pixels)
        colours = _colours(header)
        stored = _frame(file, header, index).astype(np.int64)
        if stored.ndim == 3:
            stored = stored.max(axis=2)
        if values:
            return np.ascontiguousarray(np.isin(stored, values))
        if colours == "MONOCHROME1":
            stored = int(stored.max()) - stored
        low, high = int(stored.min()), int(stored.max())
        if low < 0:
            raise BadFileError(f"is a mask with values from {low}")
        if high <= MAX_LABEL or colours == "PALETTE COLOR":
            labels = np.unique(stored[stored > 0])
            if len(labels) > 1:
                shown = ", ".join(str(label) for label in labels[:6])
                raise BadFileError(f"holds several labels ({shown}); label_values=[…] says which are lesion")
            return np.ascontiguousarray(stored > 0)
        two = bool(np.isin(stored, (low, high)).all())
        return np.ascontiguousarray(stored > (0 if two and low == 0 else high / 2))


def _colours(header: Dataset) -> str:
    colours = str(header.get("PhotometricInterpretation", "")).strip()
    if colours not in (*_COLOUR, *_GREY, "PALETTE COLOR"):
        raise BadFileError("has colours of a kind that is not read (read are MONOCHROME, RGB, YBR_FULL and palette)")
    if (colours in _COLOUR) != (_number(header, "SamplesPerPixel", 1) == 3):
        raise BadFileError("has a header that contradicts itself about colours")
    return colours


def _frame(file: BinaryIO, header: Dataset, index: int) -> NDArray[Any]:
    """Decode one frame, reading only its bytes if the encoding allows it.

    A JPEG stream larger than the header states is caught by Pillow's bound and then by the check of its size.
    """
    pydicom = pydicom_library()
    _check_decoder(pydicom, header)
    with damage_is("is damaged: its pixels cannot be decoded, or some are missing"):
        file.seek(0)
        values: NDArray[Any] = pydicom.pixels.pixel_array(file, index=index)
    if values.shape[:2] != (_number(header, "Rows"), _number(header, "Columns")):
        raise BadFileError("holds pixels of another size than its header says")
    return values


def _check_decoder(pydicom: Any, header: Dataset) -> None:
    uid = header.file_meta.get("TransferSyntaxUID")
    if uid is None:
        raise BadFileError("does not say how its pixels are encoded (no transfer syntax)")
    try:
        decoder = pydicom.pixels.get_decoder(uid)
    except NotImplementedError:
        encoding = uid.name if str(uid) != uid.name else "in a way that DICOM does not define"
        raise BadFileError(
            f"is encoded ({encoding}) in a way that is not read; convert it with gdcmconv --raw"
        ) from None
    if not decoder.is_available:
        raise BadFileError(f"is compressed as {decoder.UID.name}, for which no decoder is installed; {_HINT}")


# ---------------------------------------------------------------------------------------------------------- values


def _palette(values: NDArray[Any], header: Dataset) -> Image:
    coloured = pydicom_library().pixels.apply_color_lut(values, header)[..., :3]
    bits = int(header.RedPaletteColorLookupTableDescriptor[2])
    # Some files store 8-bit entries in 16-bit tables.
    wide = bits > 8 and int(coloured.max()) > 255
    return np.ascontiguousarray((coloured >> 8 if wide else coloured).astype(np.uint8))


def _windowed(values: NDArray[Any], header: Dataset, index: int, window: tuple[float, ...]) -> NDArray[np.uint8]:
    """Return grey values as 8 bits: rescaled, windowed, and inverted for MONOCHROME1."""
    pixels = pydicom_library().pixels
    padding = header.get("PixelPaddingValue")
    shown = values != padding if isinstance(padding, int) else None
    level = pixels.apply_rescale(values, _functional(header, index, "PixelValueTransformationSequence") or header)
    voi = _functional(header, index, "FrameVOILUTSequence") or header
    bits = _number(header, "BitsStored", 8)
    if len(window) == 2:
        grey = _window(level, window[0], window[1], "LINEAR")
    elif "VOILUTSequence" in voi:
        table = voi.VOILUTSequence[0]
        grey = pixels.apply_voi_lut(level.astype(np.int64), voi) / (2.0 ** int(table.LUTDescriptor[2]) - 1)
    elif "WindowCenter" in voi and "WindowWidth" in voi:
        centre, width = (float(np.atleast_1d(voi[name].value)[0]) for name in ("WindowCenter", "WindowWidth"))
        grey = _window(level, centre, width, str(voi.get("VOILUTFunction", "LINEAR") or "LINEAR").strip())
    elif bits <= 8 and level.dtype.kind in "iu" and int(level.min()) >= 0 and int(level.max()) <= 255:
        grey = level / (2.0**bits - 1)
    else:
        grey = _stretched(level.astype(np.float64), shown)
    if not np.isfinite(grey).all():
        raise BadFileError("holds values that are not numbers")
    if str(header.PhotometricInterpretation).strip() == "MONOCHROME1":
        grey = 1.0 - grey
    return np.rint(255 * np.clip(grey, 0.0, 1.0)).astype(np.uint8)


def _functional(header: Dataset, index: int, name: str) -> Any:
    """Return a frame's functional group item, or the shared one, of an enhanced file; None without one."""
    frames = header.get("PerFrameFunctionalGroupsSequence") or []
    shared = header.get("SharedFunctionalGroupsSequence") or []
    for group in [*frames[index : index + 1], *shared[:1]]:
        item = group.get(name)
        if item:
            return item[0]
    return None


def _window(values: NDArray[Any], centre: float, width: float, function: str) -> NDArray[np.float64]:
    """Apply a window (DICOM PS3.3 C.11.2.1.2 and C.11.2.1.3) and return values of 0 to 1."""
    level = values.astype(np.float64)
    if function == "SIGMOID" and width > 0:
        return 1.0 / (1.0 + exp(np.clip(-4.0 * (level - centre) / width, -700.0, 700.0)))
    if function == "LINEAR_EXACT" and width > 0:
        return np.clip((level - centre) / width + 0.5, 0.0, 1.0)
    if not width >= 1:
        raise BadFileError("has a window narrower than one")
    if width == 1:
        return (level > centre - 0.5).astype(np.float64)
    return np.clip((level - (centre - 0.5)) / (width - 1.0) + 0.5, 0.0, 1.0)


def _stretched(level: NDArray[np.float64], shown: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    inside = level[shown] if shown is not None and shown.any() else level
    low, high = float(inside.min()), float(inside.max())
    return np.clip((level - low) / (high - low), 0.0, 1.0) if high > low else np.zeros_like(level)
