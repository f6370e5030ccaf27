"""Reading of a folder of DICOM slices as one volume, by pydicom (extra ``dicom``).

Only the elements below are parsed, so patient data is not even in memory.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from medtest.core.files.images import BadFileError, damage_is, opened_file
from medtest.core.files.links import broken, is_broken
from medtest.volumes.libraries import pydicom_library
from medtest.volumes.orientation import Turn, VolumeInfo, check_size, turn_of

MOST_SLICES = 10_000
MOST_BYTES = 512 * 2**20
DEFLATED = "1.2.840.10008.1.2.1.99"
"""Transfer syntax of deflated files, which may inflate from kilobytes to gigabytes."""
_GREY = ("MONOCHROME1", "MONOCHROME2")
_UNEVEN = 0.05
_TAGS = [
    "SeriesInstanceUID",
    "ImagePositionPatient",
    "ImageOrientationPatient",
    "PixelSpacing",
    "Rows",
    "Columns",
    "NumberOfFrames",
    "SamplesPerPixel",
    "BitsAllocated",
    "BitsStored",
    "PixelRepresentation",
    "PhotometricInterpretation",
    "RescaleSlope",
    "RescaleIntercept",
    "SliceThickness",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    path: Path
    shape: tuple[int, int]
    place: float
    position: tuple[float, float, float]
    slope: float
    shift: float


def is_dicom(path: Path) -> bool:
    """Return True if a file is DICOM (``DICM`` at byte 128)."""
    try:
        with path.open("rb") as file:
            return file.read(132)[128:] == b"DICM"
    except OSError:
        return False


def slices_of(folder: Path) -> list[Path]:
    """Return the DICOM files directly in a folder, by name.

    Raises:
        BadFileError: A link in the folder is broken, or there are too many files.
    """
    listed = [p for p in sorted(folder.iterdir()) if not p.name.startswith(".")]
    lost = next((p for p in listed if is_broken(p)), None)
    if lost is not None:
        raise BadFileError(f"holds {lost.name}, which {broken(lost)}")
    slices = [p for p in listed if p.name.upper() != "DICOMDIR" and p.is_file() and is_dicom(p)]
    if len(slices) > MOST_SLICES:
        raise BadFileError(f"holds {len(slices):,} slices; the bound is {MOST_SLICES:,}")
    return slices


def read(folder: Path) -> tuple[NDArray[np.float32], VolumeInfo]:
    """Return values after rescaling, and the volume's properties."""
    slices, turn = opened(folder)
    # Slices in the order of their positions along the normal; axes slice, row, column.
    stack = np.empty((len(slices), *slices[0].shape), np.float32)
    for target, item in zip(stack, slices, strict=True):
        values = _pixels(item.path)
        if values.shape != target.shape:
            raise BadFileError("has a slice whose pixels are of another size than its header says")
        target[:] = values
        if (item.slope, item.shift) != (1.0, 0.0):
            target *= np.float32(item.slope)
            target += np.float32(item.shift)
    return np.ascontiguousarray(turn.apply(stack.transpose(2, 1, 0))), turn.info


def _pixels(path: Path) -> NDArray[Any]:
    pydicom = pydicom_library()
    with damage_is("has a slice that is damaged, or compressed in a way for which no decoder is installed"):
        values: NDArray[Any] = pydicom.pixels.pixel_array(path)
    return values


def _header(path: Path) -> Any:
    pydicom = pydicom_library()
    with opened_file(path) as (file, size):
        if size > MOST_BYTES:
            raise BadFileError("has a slice that is larger than a slice can be")
        with damage_is("has a slice that is not a DICOM file, or whose header is damaged"):
            if transfer_syntax(file) == DEFLATED:
                raise BadFileError("has deflated slices, which are not read; convert them with gdcmconv --raw")
            file.seek(0)
            return pydicom.dcmread(file, stop_before_pixels=True, specific_tags=_TAGS)


def transfer_syntax(file: BinaryIO) -> str:
    """Return the transfer syntax of a DICOM file, from its first group alone; "" if missing."""
    file.seek(0)
    read = pydicom_library().filereader.read_partial(file, stop_when=lambda tag, _vr, _length: tag.group > 2)
    return str(read.file_meta.get("TransferSyntaxUID", ""))


def opened(folder: Path) -> tuple[list[_Slice], Turn]:
    """Return the slices, whose pixels are not read yet, and the conversion of their axes."""
    paths = slices_of(folder)
    if not paths:
        raise BadFileError("holds no DICOM slice")
    headers = [_header(path) for path in paths]
    series = {hashlib.sha256(str(h.get("SeriesInstanceUID", "")).encode()).hexdigest() for h in headers}
    if len(series) > 1:
        raise BadFileError(f"holds slices of {len(series)} series; give one a folder")
    try:
        return _ordered(paths, headers)
    except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
        raise BadFileError("has slices without position, orientation or spacing, or with damaged ones") from error


def _ordered(paths: list[Path], headers: list[Any]) -> tuple[list[_Slice], Turn]:
    first = headers[0]
    rows, columns = int(first.Rows), int(first.Columns)
    check_size((len(paths), rows, columns))
    axes = np.array([float(x) for x in first.ImageOrientationPatient]).reshape(2, 3)
    gap = np.array([float(x) for x in first.PixelSpacing])
    normal = np.cross(axes[0], axes[1])
    slices = []
    for path, header in zip(paths, headers, strict=True):
        if int(header.get("NumberOfFrames", 1) or 1) > 1 or int(header.get("SamplesPerPixel", 1)) != 1:
            raise BadFileError("has slices with several frames or colours, which are not read as a volume")
        if str(header.get("PhotometricInterpretation", "")).strip() not in _GREY:
            raise BadFileError("has slices that are not grey")
        other = np.array([float(x) for x in header.ImageOrientationPatient]).reshape(2, 3)
        same = np.allclose(other, axes, atol=1e-3) and np.allclose([float(x) for x in header.PixelSpacing], gap, 1e-3)
        if not same or (int(header.Rows), int(header.Columns)) != (rows, columns):
            raise BadFileError("has slices of different size, spacing or orientation")
        x, y, z = (float(n) for n in header.ImagePositionPatient)
        position = (x, y, z)
        slope, shift = float(header.get("RescaleSlope", 1) or 1), float(header.get("RescaleIntercept", 0) or 0)
        if not all(math.isfinite(x) for x in (*position, slope, shift)):
            raise BadFileError("has slices with NaN or infinite values")
        place = float(np.dot(position, normal))
        slices.append(
            _Slice(path=path, shape=(rows, columns), place=place, position=position, slope=slope, shift=shift)
        )
    slices.sort(key=lambda item: item.place)
    step = _step([item.place for item in slices], first)
    # A step along a row crosses columns, so its length is the second value of PixelSpacing.
    matrix = np.stack([axes[0] * gap[1], axes[1] * gap[0], normal * step], axis=1)
    return slices, turn_of(matrix, np.array(slices[0].position), (columns, rows, len(slices)))


def _step(places: list[float], header: Any) -> float:
    """Return the distance between slices.

    Raises:
        BadFileError: Slices share a position, or are unevenly spaced because some are missing.
    """
    if len(places) == 1:
        return float(header.get("SliceThickness", 0) or 0) or 1.0
    gaps = np.diff(places)
    middle = float(np.median(gaps))
    if middle <= 1e-3:
        raise BadFileError("has several slices at one place")
    if np.abs(gaps - middle).max() > max(_UNEVEN * middle, 0.02):
        raise BadFileError(f"has slices {gaps.min():.2f} to {gaps.max():.2f} mm apart: some are missing or twice there")
    return float(places[-1] - places[0]) / (len(places) - 1)
