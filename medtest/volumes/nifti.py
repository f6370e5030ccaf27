"""Reading of NIfTI volumes, by nibabel (extra ``nifti``)."""

from __future__ import annotations

import gzip
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.files.images import BadFileError, damage_is, opened_file
from medtest.volumes.libraries import nibabel_library
from medtest.volumes.orientation import Turn, VolumeInfo, check_size, turn_of

MOST_HEADER = 2**20
"""Largest header with extensions in bytes; extensions may hold anything and are not read."""

_BAD = "is not a NIfTI file, or is damaged or truncated"
_LPS = np.diag([-1.0, -1.0, 1.0])
"""NIfTI's axes point right, front, head; ours left, back, head."""


def read(path: Path) -> tuple[NDArray[np.float32], VolumeInfo]:
    """Return values and properties of a volume."""
    image, turn = opened(path)
    proxy = image.dataobj
    with damage_is(_BAD):
        # Read as stored and rescaled in place, because nibabel would convert to float64.
        stored = np.asanyarray(proxy.get_unscaled()).reshape(image.shape[:3])
    values = np.ascontiguousarray(turn.apply(stored), dtype=np.float32)
    slope, shift = float(proxy.slope), float(proxy.inter)
    if math.isfinite(slope) and math.isfinite(shift) and slope and (slope, shift) != (1.0, 0.0):
        values *= np.float32(slope)
        values += np.float32(shift)
    return values, turn.info


def opened(path: Path) -> tuple[Any, Turn]:
    """Return a volume whose values are not read yet, and the conversion of its axes."""
    nibabel = nibabel_library()
    check_head(path)
    with damage_is(_BAD):
        image = nibabel.load(path)
        shape = tuple(int(n) for n in image.shape)
        matrix = np.asarray(image.affine, dtype=np.float64)
        kind = image.get_data_dtype()
    if not isinstance(image, nibabel.Nifti1Image):
        raise BadFileError("is not a NIfTI file")
    if any(n > 1 for n in shape[3:]):
        raise BadFileError(f"has {len(shape)} axes ({'×'.join(map(str, shape))}); give one volume a file")
    if kind.kind not in "iuf":
        raise BadFileError("holds values of a kind that is not read")
    check_size(shape[:3])
    if path.suffix.lower() == ".nii" and path.stat().st_size < math.prod(shape) * kind.itemsize + 348:
        raise BadFileError("is truncated")
    return image, turn_of(_LPS @ matrix[:3, :3], _LPS @ matrix[:3, 3], shape[:3])


def check_head(path: Path) -> None:
    """Check the offset of the values before nibabel opens a file, because it would read all extensions before it.

    Args:
        path: A NIfTI file, packed or not.

    Raises:
        BadFileError: It is not a NIfTI file, empty, truncated, or its values begin after :data:`MOST_HEADER` bytes.
    """
    with opened_file(path) as (file, size):
        if size == 0:
            raise BadFileError("is empty (0 bytes)")
        try:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            head = (gzip.GzipFile(fileobj=file).read(540) if packed else file.read(540)).ljust(540, b"\0")
        except (OSError, EOFError, ValueError) as error:
            raise BadFileError(_BAD) from error
    for order in "<>":
        kind = struct.unpack_from(f"{order}i", head)[0]
        if kind in (348, 540):
            begins = struct.unpack_from(*((f"{order}f", head, 108) if kind == 348 else (f"{order}q", head, 168)))[0]
            if not 0 <= begins <= MOST_HEADER:
                raise BadFileError("has a header that is too long")
            return
    raise BadFileError("is not a NIfTI file")
