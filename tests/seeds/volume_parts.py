"""DICOM and NIfTI files whose patient is a canary."""

from __future__ import annotations

import numpy as np
import pytest

pydicom = pytest.importorskip("pydicom")
nibabel = pytest.importorskip("nibabel")


CANARY = "CANARYname^Secret"


def write_nifti(path, values, affine=None, **header):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = nibabel.Nifti1Image(values, np.diag([2.0, 3.0, 4.0, 1.0]) if affine is None else affine)
    image.header["descrip"] = CANARY
    for name, value in header.items():
        image.header[name] = value
    nibabel.save(image, path)


def volume(shape=(8, 10, 6), dtype=np.uint8):
    return (np.arange(np.prod(shape)) % 256).astype(dtype).reshape(shape)
