"""File formats by name (pictures, DICOM, NIfTI) and the stem that joins image and mask."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["picture", "dicom", "nifti"]

PICTURES = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".dib", ".tif", ".tiff", ".webp")
"""Suffixes of pictures; their content decides how they are read."""

DICOM = (".dcm", ".dicom", ".dic", ".ima")
NIFTI = (".nii.gz", ".nii")

UNREAD = (".gif", ".heic", ".heif", ".avif", ".jp2", ".jxl", ".npy", ".mat", ".svg", ".ppm", ".pgm", ".mha", ".nrrd")
"""Suffixes of unsupported picture formats, which are reported instead of silently skipped."""

IGNORED = ("thumbs.db", "ehthumbs.db", "desktop.ini", "__macosx", "$recycle.bin", "@eadir", "thumbnails", "thumbs")
"""Leftovers of operating systems; names that begin with a dot are ignored too."""

_THUMBNAIL = re.compile(r"(?:thumb(?:nail)?s?[_\- .].*|.*[_\- .]thumb(?:nail)?s?)\.[a-z]{3,4}", re.S)
_WITHOUT_SUFFIX = re.compile(r"[^.]*|.*\.[0-9]+", re.S)
"""Names of DICOM files from archives (IM0001 or 1.2.840.…); only these are opened to check."""


def is_ignored(name: str) -> bool:
    """Return True if the name belongs to an operating system's leftover or a thumbnail."""
    lower = name.lower()
    return name.startswith(".") or lower in IGNORED or lower == "icon\r" or bool(_THUMBNAIL.fullmatch(lower))


def suffix_of(name: str) -> str:
    """Return the suffix of a supported file in lower case, or ""."""
    lower = name.lower()
    return next((s for s in (*NIFTI, *DICOM, *PICTURES) if lower.endswith(s) and len(lower) > len(s)), "")


def kind_of_name(name: str) -> Kind | None:
    """Return the kind of file that the name implies; None if the name does not tell."""
    suffix = suffix_of(name)
    if suffix in NIFTI:
        return "nifti"
    if suffix in DICOM:
        return "dicom"
    return "picture" if suffix else None


def kind_of(name: str) -> Kind:
    """Return the kind of a listed file: DICOM unless its suffix says otherwise."""
    return kind_of_name(name) or "dicom"


def has_no_suffix(name: str) -> bool:
    """Return True if a name has no suffix, or only digits as suffix like DICOM files from archives."""
    return bool(_WITHOUT_SUFFIX.fullmatch(name))


def is_unnamed_dicom(path: Path) -> bool:
    """Return True if a file without suffix is DICOM (``DICM`` at byte 128) and not a DICOM directory."""
    if not has_no_suffix(path.name) or path.name.upper() == "DICOMDIR" or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(132)[128:] == b"DICM"
    except OSError:
        return False


def without_suffix(path: PurePosixPath) -> PurePosixPath:
    """Return a path without its supported suffix; other dots belong to the name."""
    suffix = suffix_of(path.name)
    return path.with_name(path.name[: -len(suffix)]) if suffix else path
