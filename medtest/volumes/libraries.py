"""The optional libraries that read DICOM and NIfTI, silenced: their log lines quote what a patient's file says."""

from __future__ import annotations

import logging
import warnings
from functools import cache
from typing import Any

from medtest.imagefile import BadFileError


@cache
def pydicom_library() -> Any:
    """Return pydicom; its warnings and log lines quote values of a file's elements.

    Raises:
        BadFileError: It is not installed; the message says how to.
    """
    try:
        import pydicom
        import pydicom.pixels
    except ImportError as error:
        raise BadFileError("is DICOM; reading it needs pydicom: pip install 'medtest[dicom]'") from error
    warnings.filterwarnings("ignore", module=r"pydicom(\..*)?")
    logging.getLogger("pydicom").setLevel(logging.CRITICAL + 1)
    pydicom.config.settings.reading_validation_mode = pydicom.config.IGNORE
    return pydicom


@cache
def nibabel_library() -> Any:
    """Return nibabel; its log lines quote what a header says.

    Raises:
        BadFileError: It is not installed; the message says how to.
    """
    try:
        import nibabel
    except ImportError as error:
        raise BadFileError("is NIfTI; reading it needs nibabel: pip install 'medtest[nifti]'") from error
    for name in ("nibabel", "nibabel.global"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return nibabel
