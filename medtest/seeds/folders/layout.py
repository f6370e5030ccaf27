"""Layout of images and masks in the user's folder, from folder names alone."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from medtest.core.cases import ID_PATTERN
from medtest.core.files.links import broken, broken_in
from medtest.core.files.walk import is_folder
from medtest.seeds.folders.formats import has_no_suffix, is_ignored, is_unnamed_dicom, kind_of_name

Layout: TypeAlias = Literal["auto", "images_masks", "original_ground_truth", "sets", "images", "known"]

IMAGE_FOLDERS = ("images", "image", "imgs", "img", "original", "originals")
"""Names of image folders, lower case, in order of preference."""

MASK_FOLDERS = ("masks", "mask", "ground truth", "ground_truth", "ground-truth", "groundtruth", "gt", "segmentations")
"""Names of mask folders, lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """The folders of one data set, relative to the root.

    Attributes:
        name: Its id.
        images: Folder of images.
        masks: Folder of masks; the same as ``images`` if they share a folder; None for images alone.
        image_names: Pattern of image names without suffix, ignoring case; all names if empty.
        mask_names: Pattern of mask names, if both share a folder with other files.
    """

    name: str
    images: PurePosixPath
    masks: PurePosixPath | None
    image_names: str = ""
    mask_names: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Files that belong to one image.

    Attributes:
        key: Name without suffix, in composed form, that joins the files; "" if joined otherwise.
        image: Image file, relative to the root.
        mask: Mask file, relative to the root.
        avoid: Rough mask, relative to the folder of rough masks.
    """

    key: str = ""
    image: PurePosixPath
    mask: PurePosixPath | None = None
    avoid: PurePosixPath | None = None


class LayoutError(Exception):
    """The folder has no supported layout; the message says what was expected."""

    def __init__(self, found: str, fix: str, key: str = "data") -> None:
        super().__init__(found)
        self.found, self.fix, self.key = found, fix, key


# --------------------------------------------------------------------------------------------------------- folders


def shown(path: PurePosixPath | Path | str) -> str:
    """Return a path for display: control characters and undecodable bytes escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(path))


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key in which ``img2`` comes before ``img10``."""
    parts = re.split(r"([0-9]+)", text)
    return tuple((0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts if part)


def _subfolders(root: Path, relative: PurePosixPath) -> list[str]:
    try:
        with os.scandir(root / relative) as entries:
            names = [entry.name for entry in entries if not is_ignored(entry.name) and is_folder(entry)]
    except OSError as error:
        raise LayoutError(
            f"folder {shown(relative)} cannot be read ({error.strerror})", "give yourself read permission"
        ) from error
    return sorted(names, key=natural_key)


def _unique_match(names: Iterable[str], accepted: Sequence[str], where: PurePosixPath) -> str | None:
    by_rank: dict[int, list[str]] = defaultdict(list)
    for name in names:
        if name.lower() in accepted:
            by_rank[accepted.index(name.lower())].append(name)
    if not by_rank:
        return None
    best = by_rank[min(by_rank)]
    if len(best) > 1:
        raise LayoutError(
            f"{shown(where)} holds {' and '.join(repr(b) for b in best)}", "keep one of them, or name one in the suite"
        )
    return best[0]


def _pair_of_folders(
    root: Path, relative: PurePosixPath, images: Sequence[str], masks: Sequence[str], name: str
) -> DataSet | None:
    names = _subfolders(root, relative)
    image_folder, mask_folder = _unique_match(names, images, relative), _unique_match(names, masks, relative)
    if image_folder is None:
        return None
    return DataSet(
        name=name, images=relative / image_folder, masks=None if mask_folder is None else relative / mask_folder
    )


def dataset_id(folder: str) -> str:
    """Return a data set id from a folder's name: lower case, characters other than ``[a-z0-9_-]`` become ``-``."""
    text = unicodedata.normalize("NFKD", folder).encode("ascii", "ignore").decode().lower()
    text = re.sub(r"[^a-z0-9_-]+", "-", text).strip("-_")[:64]
    return text if ID_PATTERN.fullmatch(text) else "set"


def _datasets_below(root: Path, relative: PurePosixPath, images: Sequence[str], masks: Sequence[str]) -> list[DataSet]:
    datasets: dict[str, DataSet] = {}
    for name in _subfolders(root, relative):
        identifier = dataset_id(name)
        pair = _pair_of_folders(root, relative / name, images, masks, identifier)
        if pair is None:
            continue
        if identifier in datasets:
            first = datasets[identifier].images.parent
            raise LayoutError(
                f"folders {shown(first)} and {shown(relative / name)} would both be data set {identifier!r}",
                "rename one of them",
            )
        datasets[identifier] = pair
    return list(datasets.values())


def _has_pictures(root: Path, relative: PurePosixPath) -> bool:
    with os.scandir(root / relative) as entries:
        return any(
            not is_ignored(e.name) and (kind_of_name(e.name) is not None or is_unnamed_dicom(root / relative / e.name))
            for e in entries
        )


def find_datasets(
    root: Path,
    *,
    name: str,
    layout: Layout,
    images: str,
    masks: str,
    known: Callable[[Path], list[DataSet]] = lambda _: [],
) -> list[DataSet]:
    """Return the data sets below a root.

    Args:
        root: The user's folder.
        name: Id of the data set if there is only one.
        layout: Where to look; ``auto`` tries a pair of folders in the root, then in its sub-folders (also below one
            called ``TestDataset``), then the archives of known data sets, then pictures in the root itself;
            ``known`` looks for those archives alone, and gives data sets their usual names.
        images: Name of the image folder, instead of the usual ones; "." for the root itself.
        masks: Name of the mask folder, instead of the usual ones.
        known: Function that finds the archives of known data sets; several parts may share a name.

    Raises:
        LayoutError: No data set of this layout is found.
    """
    top = PurePosixPath(".")
    if images or masks:
        named = DataSet(name=name, images=top / images, masks=top / masks if masks else None)
        if (root / named.images).is_dir() and (named.masks is None or (root / named.masks).is_dir()):
            return [named]
    image_names: Sequence[str] = (images.lower(),) if images else IMAGE_FOLDERS
    mask_names: Sequence[str] = (masks.lower(),) if masks else MASK_FOLDERS
    if layout == "original_ground_truth" and not images:
        image_names = ("original", "originals")
    if layout == "known":
        sets = known(root)
        if sets:
            return sets
        raise LayoutError("layout known: none of the known data sets", "medtest data inspect PATH says what is there")
    if layout not in ("sets", "images"):
        pair = _pair_of_folders(root, top, image_names, mask_names, name)
        if pair is not None:
            return [pair]
    if layout in ("auto", "sets"):
        below = [top / folder for folder in _subfolders(root, top) if folder.lower() == "testdataset"]
        for start in [*below, top]:
            sets = _datasets_below(root, start, image_names, mask_names)
            if sets:
                return sets
    sets = known(root) if layout == "auto" else []
    if sets:
        return sets
    if layout in ("auto", "images") and _has_pictures(root, top):
        return [DataSet(name=name, images=top, masks=top)]
    check_folder_links(root, top)
    raise LayoutError(
        f"layout {layout}: no {' or '.join(image_names[:2])} folder{'' if layout == 'sets' else ' and no pictures'}",
        "give the folder that holds images/ and masks/ (or Original/ and 'Ground Truth/'), or folders of such pairs; "
        "medtest data inspect PATH says what is there",
    )


def check_folder_links(root: Path, relative: PurePosixPath) -> None:
    """Check that no folder is missed because its link is broken.

    Raises:
        LayoutError: A broken link directly below ``relative`` may have led to a folder.
    """
    lost = broken_in(root / relative, lambda name: not is_ignored(name) and has_no_suffix(name))
    if lost:
        path = relative / lost[0]
        raise LayoutError(f"{shown(path)} {broken(root / path)}", "check that the targets of links exist")


def holds_pairs(folder: Path) -> Path | None:
    """Return the parent of a folder ``images/`` or ``masks/`` if it holds both, to suggest it; else None.

    Args:
        folder: The folder given by the user.
    """
    for own, other in ((IMAGE_FOLDERS, MASK_FOLDERS), (MASK_FOLDERS, IMAGE_FOLDERS)):
        if folder.name.lower() in own:
            with suppress(OSError), os.scandir(folder.parent) as entries:
                if any(entry.name.lower() in other and entry.is_dir() for entry in entries):
                    return folder.parent
    return None
