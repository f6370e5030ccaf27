"""Which files hold images, told by their names: pictures, DICOM, NIfTI; and the stem that joins image and mask."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["picture", "dicom", "nifti"]

PICTURES = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".dib", ".tif", ".tiff", ".webp")
"""Suffixes of files that are taken for pictures; what they hold decides how they are read."""

DICOM = (".dcm", ".dicom", ".dic", ".ima")
NIFTI = (".nii.gz", ".nii")

UNREAD = (".gif", ".heic", ".heif", ".avif", ".jp2", ".jxl", ".npy", ".mat", ".svg", ".ppm", ".pgm", ".mha", ".nrrd")
"""Suffixes of pictures in formats that are not read: left out they would be lost without a word."""

IGNORED = ("thumbs.db", "ehthumbs.db", "desktop.ini", "__macosx", "$recycle.bin", "@eadir", "thumbnails", "thumbs")
"""What operating systems leave in folders; names that begin with a dot are ignored too."""

_THUMBNAIL = re.compile(r"(?:thumb(?:nail)?s?[_\- .].*|.*[_\- .]thumb(?:nail)?s?)\.[a-z]{3,4}", re.S)
_WITHOUT_SUFFIX = re.compile(r"[^.]*|.*\.[0-9]+", re.S)
"""DICOM files from archives are often called IM0001 or 1.2.840.…; only such names are looked into."""


def is_ignored(name: str) -> bool:
    """Say whether an operating system's leftover or a thumbnail has this name."""
    lower = name.lower()
    return name.startswith(".") or lower in IGNORED or lower == "icon\r" or bool(_THUMBNAIL.fullmatch(lower))


def suffix_of(name: str) -> str:
    """Return the suffix of a file that is read, in lower case, or ""."""
    lower = name.lower()
    return next((s for s in (*NIFTI, *DICOM, *PICTURES) if lower.endswith(s) and len(lower) > len(s)), "")


def kind_of_name(name: str) -> Kind | None:
    """Return what a file of this name holds; None where the name does not say."""
    suffix = suffix_of(name)
    if suffix in NIFTI:
        return "nifti"
    if suffix in DICOM:
        return "dicom"
    return "picture" if suffix else None


def kind_of(name: str) -> Kind:
    """Return what a file that was listed holds: DICOM where its name has no suffix that says otherwise."""
    return kind_of_name(name) or "dicom"


def has_no_suffix(name: str) -> bool:
    """Say whether a name has no suffix, or one of digits alone, as DICOM files from archives do."""
    return bool(_WITHOUT_SUFFIX.fullmatch(name))


def is_unnamed_dicom(path: Path) -> bool:
    """Say whether a file without suffix is DICOM (by the four letters at byte 128); directories of DICOM are not."""
    if not has_no_suffix(path.name) or path.name.upper() == "DICOMDIR" or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(132)[128:] == b"DICM"
    except OSError:
        return False


def without_suffix(path: PurePosixPath) -> PurePosixPath:
    """Return a path without the suffix of a format that is read; other dots belong to the name."""
    suffix = suffix_of(path.name)
    return path.with_name(path.name[: -len(suffix)]) if suffix else path
