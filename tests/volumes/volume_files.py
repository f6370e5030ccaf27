"""Volumes for tests: the same voxels stored in any orientation, and as DICOM slices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

SHAPE = (5, 6, 7)
"""z, y, x in our axes."""
SPACING = (3.0, 2.0, 1.5)


def truth() -> np.ndarray:
    """Each voxel's value says where it is: 100 z + 10 y + x, foot to head, front to back, right to left."""
    z, y, x = np.indices(SHAPE)
    return (100 * z + 10 * y + x).astype(np.int16)


def stored(order: tuple[int, ...], flips: tuple[bool, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the truth stored with other axes: array (i, j, k), LPS matrix, LPS origin.

    ``order`` says which of our x, y, z axes is i, j, k; ``flips`` which of them run backwards.
    """
    ours = truth().transpose(2, 1, 0)  # x, y, z
    steps = np.array(SPACING[::-1])
    array = ours.transpose(order)
    matrix, origin = np.zeros((3, 3)), np.array([-20.0, -30.0, 40.0])
    for own, (body, flip) in enumerate(zip(order, flips, strict=True)):
        matrix[body, own] = -steps[body] if flip else steps[body]
        if flip:
            array = np.flip(array, own)
            origin[body] += steps[body] * (ours.shape[body] - 1)
    return np.ascontiguousarray(array), matrix, origin


def write_series(folder: Path, *, names: str = "image_{}", skip: tuple[int, ...] = (), **changes: Any) -> None:
    """Write the truth as axial DICOM slices in shuffled order, values stored with slope 2 and intercept -1024."""
    pydicom = pytest.importorskip("pydicom")
    folder.mkdir(parents=True, exist_ok=True)
    values = truth().astype(np.int32)
    for z in range(SHAPE[0]):
        if z in skip:
            continue
        one = pydicom.Dataset()
        one.file_meta = pydicom.dataset.FileMetaDataset()
        one.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        one.file_meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
        one.file_meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
        one.SOPClassUID, one.SOPInstanceUID = pydicom.uid.CTImageStorage, pydicom.uid.generate_uid()
        one.SeriesInstanceUID = changes.get("series", {}).get(z, "1.2.3")
        one.PatientName = "Secret^Name"
        one.Rows, one.Columns = SHAPE[1], SHAPE[2]
        one.SamplesPerPixel, one.PhotometricInterpretation = 1, "MONOCHROME2"
        one.BitsAllocated = one.BitsStored = 16
        one.HighBit, one.PixelRepresentation = 15, 1
        one.RescaleSlope, one.RescaleIntercept = 2, -1024
        one.PixelSpacing = [SPACING[1], SPACING[2]]
        one.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
        one.ImagePositionPatient = [-20, -30, 40 + SPACING[0] * z]
        for key, value in changes.get("tags", {}).items():
            setattr(one, key, value)
        one.PixelData = ((values[z] + 1024) // 2).astype(np.int16).tobytes()
        one.save_as(folder / names.format((z * 3) % 7), enforce_file_format=True)
