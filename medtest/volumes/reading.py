"""Uniform reading of volumes of any format, in one orientation.

Axes are z from foot to head, y from front to back, x from the patient's right to the left (array order z, y, x), with
voxel sizes in millimetres. An oblique volume is rotated to the nearest axes, not resampled. Patient data of a header is
never kept, and no message quotes a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.files.images import BadFileError
from medtest.volumes import dicom_series, metaimage, nifti
from medtest.volumes.orientation import VolumeInfo

Kind: TypeAlias = Literal["nifti", "metaimage", "dicom"]
NIFTI = (".nii.gz", ".nii")
METAIMAGE = (".mhd", ".mha")
SUFFIXES = (*NIFTI, *METAIMAGE)
_READERS: dict[Kind, Any] = {"nifti": nifti, "metaimage": metaimage, "dicom": dicom_series}


def kind_of(path: Path) -> Kind | None:
    """Return the kind of a volume by its path: a folder is a DICOM series; None if the name does not tell."""
    if path.is_dir():
        return "dicom"
    name = path.name.lower()
    if name.endswith(NIFTI):
        return "nifti"
    return "metaimage" if name.endswith(METAIMAGE) else None


def volume_info(path: Path) -> VolumeInfo:
    """Return a volume's properties from its header without decoding.

    Raises:
        BadFileError: The volume cannot be read; the message gives the reason.
    """
    properties: VolumeInfo = _reader(path).opened(path)[1].info
    return properties


def read_volume(path: Path) -> tuple[NDArray[np.float32], VolumeInfo]:
    """Return a volume's values after rescaling (Hounsfield units for CT), float32 D×H×W, and its properties.

    Raises:
        BadFileError: The volume cannot be read; the message gives the reason.
    """
    try:
        values, info = _reader(path).read(path)
    except MemoryError as error:
        raise BadFileError("is too large for this machine's memory") from error
    if not np.isfinite(values).all():
        raise BadFileError("holds values that are not numbers")
    return values, info


def read_labels(path: Path, labels: Sequence[int] = ()) -> tuple[NDArray[np.bool_], VolumeInfo]:
    """Return the mask of a volume of labels: values other than 0, or those in ``labels``.

    Raises:
        BadFileError: The volume cannot be read; the message gives the reason.
    """
    values, info = read_volume(path)
    rounded = np.rint(values, out=values)
    return (np.isin(rounded, labels) if labels else rounded != 0), info


def _reader(path: Path) -> Any:
    kind = kind_of(path)
    if kind is not None:
        return _READERS[kind]
    raise BadFileError(f"is not a volume (read are {', '.join(SUFFIXES)}, and folders of DICOM slices)")
