"""Reading of MetaImage volumes (.mhd with .raw, .mha), by SimpleITK (extra ``volumes``)."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.files.images import BadFileError, damage_is, opened_file
from medtest.volumes.libraries import simpleitk_library
from medtest.volumes.orientation import Turn, VolumeInfo, check_size, turn_of

MOST_HEADER = 65_536
_BAD = "is not a MetaImage file, or is damaged or truncated"


def read(path: Path) -> tuple[NDArray[np.float32], VolumeInfo]:
    """Return values and properties of a volume."""
    sitk = simpleitk_library()
    reader, turn = opened(path)
    with damage_is(_BAD):
        image = reader.Execute()
        # SimpleITK's array has reversed axes: k, j, i.
        stored = sitk.GetArrayViewFromImage(image).transpose(2, 1, 0)
    return np.ascontiguousarray(turn.apply(stored), dtype=np.float32), turn.info


def opened(path: Path) -> tuple[Any, Turn]:
    """Return a volume whose values are not read yet, and the conversion of its axes."""
    _check_head(path)
    sitk = simpleitk_library()
    reader = sitk.ImageFileReader()
    reader.SetImageIO("MetaImageIO")
    reader.SetFileName(str(path))
    with damage_is(_BAD):
        reader.ReadImageInformation()
        shape = tuple(int(n) for n in reader.GetSize())
        parts = int(reader.GetNumberOfComponents())
        spacing = np.asarray(reader.GetSpacing(), dtype=np.float64)
        direction = np.asarray(reader.GetDirection(), dtype=np.float64)
        origin = np.asarray(reader.GetOrigin(), dtype=np.float64)
    if parts != 1:
        raise BadFileError("holds several numbers a voxel")
    check_size(shape)
    # ITK's axes equal ours: left, back, head.
    return reader, turn_of(direction.reshape(3, 3) * spacing, origin, shape)


def _check_head(path: Path) -> None:
    """Check that the values are in this file or beside it, because a header may name any file of the machine."""
    with opened_file(path) as (file, size):
        if size == 0:
            raise BadFileError("is empty (0 bytes)")
        head = file.read(MOST_HEADER)
    where = ""
    for line in head.split(b"\n"):
        key, equals, value = line.partition(b"=")
        if equals and key.strip().lower() == b"elementdatafile":
            where = value.strip().decode("utf-8", "replace")
            break
    if not where:
        raise BadFileError("is not a MetaImage file (it does not name its data file)")
    if where == "LOCAL":
        return
    plain = PurePosixPath(where).name == where == PureWindowsPath(where).name
    if not plain or "%" in where or where == "LIST" or not (path.parent / where).is_file():
        raise BadFileError("names a data file that is not in its folder")
