"""Optional libraries for reading volumes, with logging silenced because their messages quote patient data."""

from __future__ import annotations

import importlib
import logging
import warnings
from functools import cache
from typing import Any

from medtest.core.files.images import BadFileError


def _library(name: str, content: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        needed = name.partition(".")[0]
        raise BadFileError(f"is {content}; reading it needs {needed}: pip install 'medtest[{extra}]'") from error


@cache
def pydicom_library() -> Any:
    """Return pydicom, whose warnings and log messages would quote values of a file's elements.

    Raises:
        BadFileError: It is not installed; the message gives the command.
    """
    _library("pydicom.pixels", "DICOM", "dicom")
    pydicom = _library("pydicom", "DICOM", "dicom")
    warnings.filterwarnings("ignore", module=r"pydicom(\..*)?")
    logging.getLogger("pydicom").setLevel(logging.CRITICAL + 1)
    pydicom.config.settings.reading_validation_mode = pydicom.config.IGNORE
    return pydicom


@cache
def nibabel_library() -> Any:
    """Return nibabel, whose log messages would quote headers.

    Raises:
        BadFileError: It is not installed; the message gives the command.
    """
    nibabel = _library("nibabel", "NIfTI", "nifti")
    for name in ("nibabel", "nibabel.global"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return nibabel


@cache
def simpleitk_library() -> Any:
    """Return SimpleITK, whose warnings would quote headers.

    Raises:
        BadFileError: It is not installed; the message gives the command.
    """
    simpleitk = _library("SimpleITK", "MetaImage", "volumes")
    simpleitk.ProcessObject.SetGlobalWarningDisplay(False)
    return simpleitk
