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
    """Return voxels whose value is their place: 100 z + 10 y + x, foot to head, front to back, right to left."""
    z, y, x = np.indices(SHAPE)
    return (100 * z + 10 * y + x).astype(np.int16)


def stored(order: tuple[int, ...], flips: tuple[bool, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the truth stored with other axes: array (i, j, k), LPS matrix, LPS origin.

    ``order`` has the x, y or z axis for each of i, j, k; ``flips`` says which of them run backwards.
    """
    voxels = truth().transpose(2, 1, 0)  # x, y, z
    steps = np.array(SPACING[::-1])
    array = voxels.transpose(order)
    matrix, origin = np.zeros((3, 3)), np.array([-20.0, -30.0, 40.0])
    for own, (body, flip) in enumerate(zip(order, flips, strict=True)):
        matrix[body, own] = -steps[body] if flip else steps[body]
        if flip:
            array = np.flip(array, own)
            origin[body] += steps[body] * (voxels.shape[body] - 1)
    return np.ascontiguousarray(array), matrix, origin


def write_series(folder: Path, *, names: str = "image_{}", skip: tuple[int, ...] = (), **changes: Any) -> None:
    """Write the truth as axial DICOM slices in shuffled order, values stored with slope 2 and intercept -1024."""
    pydicom = pytest.importorskip("pydicom")
    folder.mkdir(parents=True, exist_ok=True)
    values = truth().astype(np.int32)
    for z in range(SHAPE[0]):
        if z in skip:
            continue
        dataset = pydicom.Dataset()
        dataset.file_meta = pydicom.dataset.FileMetaDataset()
        dataset.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        dataset.file_meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
        dataset.file_meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
        dataset.SOPClassUID, dataset.SOPInstanceUID = pydicom.uid.CTImageStorage, pydicom.uid.generate_uid()
        dataset.SeriesInstanceUID = changes.get("series", {}).get(z, "1.2.3")
        dataset.PatientName = "Secret^Name"
        dataset.Rows, dataset.Columns = SHAPE[1], SHAPE[2]
        dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
        dataset.BitsAllocated = dataset.BitsStored = 16
        dataset.HighBit, dataset.PixelRepresentation = 15, 1
        dataset.RescaleSlope, dataset.RescaleIntercept = 2, -1024
        dataset.PixelSpacing = [SPACING[1], SPACING[2]]
        dataset.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
        dataset.ImagePositionPatient = [-20, -30, 40 + SPACING[0] * z]
        for key, value in changes.get("tags", {}).items():
            setattr(dataset, key, value)
        dataset.PixelData = ((values[z] + 1024) // 2).astype(np.int16).tobytes()
        dataset.save_as(folder / names.format((z * 3) % 7), enforce_file_format=True)
