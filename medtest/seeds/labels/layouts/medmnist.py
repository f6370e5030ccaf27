"""MedMNIST: one .npz file with images and labels of a training, a validation and a test part."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.core.files.images import BadFileError
from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found
from medtest.seeds.datasets.facts import known
from medtest.seeds.folders.files import table_below
from medtest.seeds.folders.layout import LayoutError, shown
from medtest.seeds.labels.entries import LabelEntry, LabelledFolder
from medtest.seeds.labels.settings import LabelFolderSettings
from medtest.seeds.volumes.npz_file import Member, items_of, npz_members, read_whole

PARTS = ("train", "val", "test")

_NAME = re.compile(r"(?P<name>[a-z]+mnist)(?:_(?:28|64|128|224))?")


def medmnist_id(stem: str) -> str:
    """Return the set's id from a file name (``pathmnist_224`` is ``pathmnist``); "" for other names."""
    match = _NAME.fullmatch(stem.lower())
    return match["name"] if match and match["name"] in known() else ""


def read_medmnist(root: Path, dataset: Found, settings: LabelFolderSettings) -> LabelledFolder:
    """Read the labels of the requested part; images are read one at a time on demand.

    Raises:
        LayoutError: The file holds no such arrays, or cannot be read.
    """
    name = dataset.tables[0]
    facts = known().get(medmnist_id(PurePosixPath(name).stem))
    try:
        path = table_below(root, str(name), "table")
        members = npz_members(path)
        parts = [part for part in PARTS if f"{part}_images" in members and f"{part}_labels" in members]
        if not parts:
            raise BadFileError(f"holds {', '.join(sorted(members))}; train_images, train_labels, … are read")
        selected = _select_parts(parts, settings.split)
        labels = {part: _labels(path, members, part, settings) for part in selected}
    except BadFileError as error:
        raise LayoutError(
            f"{shown(name)} {error}", "download it again, or see the page on label data", key="table"
        ) from error
    width = max(array.shape[1] for array in labels.values())
    multi = width > 1
    highest = max((int(array.max(initial=0)) for array in labels.values()), default=0)
    count = width if multi else highest + 1
    names = facts.classes if facts is not None and len(facts.classes) >= count else tuple(map(str, range(count)))
    laid = LabelledFolder(names=names, multi=multi)
    for part, array in labels.items():
        digits = len(str(max(0, len(array) - 1)))
        for index, row in enumerate(array):
            entry = LabelEntry(image=name, name=f"{part}/{index:0{digits}d}", labels=None, index=index)
            if min(row) < 0 or (multi and max(row) > 1):
                reason = f"{part}_labels, row {index}: {' '.join(map(str, row))[:80]}"
                allowed = "columns of 0 and 1" if multi else "whole numbers from 0"
                wrong = SeedProblem(file=shown(name), key="table", reason=reason, allowed=allowed)
                laid.entries.append(replace(entry, wrong=wrong))
                continue
            own = tuple(n for n, flag in zip(names, row, strict=False) if flag) if multi else (names[int(row[0])],)
            laid.entries.append(replace(entry, labels=own))
    if len(selected) < len(parts):
        laid.notices.append(
            f"The {selected[0]} part is taken, {len(laid.entries):,} images; split: all takes every part."
        )
    return laid


def _select_parts(parts: list[str], split: str) -> list[str]:
    if split == "all":
        return parts
    part = split if split != "auto" else "test" if "test" in parts else parts[0]
    if part not in parts:
        raise LayoutError(f"no {part} part", f"parts: {', '.join(parts)}", key="split")
    return [part]


def _labels(path: Path, members: dict[str, Member], part: str, settings: LabelFolderSettings) -> NDArray[Any]:
    """Return the labels of one part, N×1 or N×C, after checking that its images are 8-bit and within bounds."""
    images, labels = members[f"{part}_images"], members[f"{part}_labels"]
    _check_images(images, settings.max_pixels)
    array = read_whole(path, labels)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != images.shape[0]:
        raise BadFileError(f"holds {labels.name} of shape {labels.shape} for {images.shape[0]} images")
    if array.dtype.kind not in "iub" or (array.size and int(array.max()) < 0):
        raise BadFileError(f"holds {labels.name} as {array.dtype}; whole numbers from 0 are read")
    if array.shape[1] > 1 and array.size and int(array.min()) > 1:
        raise BadFileError(f"holds {labels.name} in {array.shape[1]} columns with values above 1")
    return array


def _check_images(images: Member, max_pixels: int) -> None:
    shape = images.shape
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] != 3):
        kind = "volumes; the sets of flat images are read" if len(shape) in (4, 5) else "no list of images"
        raise BadFileError(f"holds {images.name} of shape {shape}: {kind}")
    if images.dtype != np.uint8:
        raise BadFileError(f"holds {images.name} as {images.dtype}; uint8 is read")
    if not 0 < shape[1] * shape[2] <= max_pixels:
        raise BadFileError(f"holds images of {shape[2]}×{shape[1]}; the bound is {max_pixels / 1e6:g} Mpixel")


def read_image(path: Path, part: str, index: int) -> Image:
    """Return one image as uint8 H×W×3 RGB.

    Raises:
        BadFileError: The file can no longer be read.
    """
    pixels = items_of(path, f"{part}_images").read(index)
    return np.ascontiguousarray(pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=2))
