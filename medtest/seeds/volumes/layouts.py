"""Pairs of volumes and labels in a folder, for common collections.

- SLIVER: ``liver-orig001.mhd`` with ``liver-seg001.mhd``, anywhere;
- 3D-IRCADb: ``PATIENT_DICOM/`` beside ``MASKS_DICOM/<organ>/``, folders of DICOM slices;
- LiTS: ``volume-0.nii`` with ``segmentation-0.nii``;
- Medical Segmentation Decathlon: ``imagesTr/`` with ``labelsTr/``, same names (or with nnU-Net's ``_0000``);
- anything else: ``images/`` with ``masks/`` (or ``labels/``), same names; a DICOM series is a folder there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from medtest.core.files.walk import walk
from medtest.volumes.dicom_series import slices_of
from medtest.volumes.reading import SUFFIXES, kind_of

_SLIVER = re.compile(r"liver-orig(\d+)\.(mhd|mha|nii|nii\.gz)", re.I)
_LITS = re.compile(r"volume-(\d+)\.(nii|nii\.gz)", re.I)
_PAIRS = (("imagesTr", "labelsTr"), ("images", "masks"), ("images", "labels"))
MOST_DEPTH = 5
DEEPEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePair:
    """Volume with its labels.

    Attributes:
        name: Unique within the folder; becomes the seed's id.
        volume: File or folder.
        labels: File or folder.
        layout: Name of the collection whose layout it has.
    """

    name: str
    volume: Path
    labels: Path
    layout: str


def find_pairs(root: Path, organ: str = "liver") -> list[VolumePair]:
    """Return the pairs of a folder, by name in natural order; an empty list if no layout matches.

    Args:
        root: The user's folder.
        organ: Name of the organ's folder in 3D-IRCADb.
    """
    for finder in (_sliver, _ircad, _lits, _folders):
        pairs = list(finder(root, organ))
        if pairs:
            return sorted(pairs, key=lambda pair: _natural_key(pair.name))
    return []


def _natural_key(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def _files(root: Path) -> Iterator[Path]:
    for folder in sorted(walk(root, deepest=MOST_DEPTH - 1, ignored=_is_hidden), key=lambda entry: entry.path):
        # Broken links are listed and reported when their header is checked.
        yield from (root / folder.path / name for name in folder.files if kind_of(Path(name)) is not None)


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _sliver(root: Path, organ: str) -> Iterator[VolumePair]:
    files = list(_files(root))
    labels = {path.name.lower(): path for path in files}
    for path in files:
        match = _SLIVER.fullmatch(path.name)
        segmentation = labels.get(path.name.lower().replace("-orig", "-seg")) if match else None
        if match and segmentation:
            yield VolumePair(name=f"sliver-{match[1]}", volume=path, labels=segmentation, layout="SLIVER")


def _ircad(root: Path, organ: str) -> Iterator[VolumePair]:
    folders = (root / entry.path for entry in walk(root, deepest=DEEPEST, ignored=_is_hidden))
    for patient in sorted(path for path in folders if path.name == "PATIENT_DICOM"):
        masks = patient.parent / "MASKS_DICOM" / organ
        if not patient.is_dir() or not masks.is_dir():
            continue
        # Unpacked archives often contain a nested folder of the same name.
        inner = [_inner(folder) for folder in (patient, masks)]
        name = patient.parent.name if patient.parent != root else root.name
        yield VolumePair(name=_plain(name), volume=inner[0], labels=inner[1], layout="3D-IRCADb")


def _inner(folder: Path) -> Path:
    within = folder / folder.name
    return within if within.is_dir() else folder


def _lits(root: Path, organ: str) -> Iterator[VolumePair]:
    files = {path.name.lower(): path for path in _files(root)}
    for name, path in files.items():
        match = _LITS.fullmatch(name)
        names = [f"segmentation-{match[1]}.{suffix}" for suffix in ("nii", "nii.gz")] if match else []
        segmentation = next((files[candidate] for candidate in names if candidate in files), None)
        if match and segmentation:
            yield VolumePair(name=f"volume-{match[1]}", volume=path, labels=segmentation, layout="LiTS")


def _folders(root: Path, organ: str) -> Iterator[VolumePair]:
    for images, labels in _PAIRS:
        if not (root / images).is_dir() or not (root / labels).is_dir():
            continue
        labels_by_stem = {_stem(path): path for path in sorted((root / labels).iterdir()) if _is_volume(path)}
        for path in sorted((root / images).iterdir()):
            stem = _stem(path)
            label_path = labels_by_stem.get(stem) or labels_by_stem.get(stem.removesuffix("_0000"))
            if label_path is not None and _is_volume(path):
                yield VolumePair(
                    name=_plain(stem.removesuffix("_0000")),
                    volume=path,
                    labels=label_path,
                    layout=f"{images}/ and {labels}/",
                )
        return


def _is_volume(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    return bool(slices_of(path)) if path.is_dir() else kind_of(path) is not None


def _stem(path: Path) -> str:
    lower = path.name.lower()
    suffix = next((s for s in SUFFIXES if lower.endswith(s)), "") if not path.is_dir() else ""
    return path.name[: len(path.name) - len(suffix)]


def _plain(name: str) -> str:
    """Return a name as an id: lower-case letters, digits, - and _."""
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")[:64] or "volume"
