"""Where images and masks lie in a user's folder. Names of folders only, no contents."""

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
"""Names of image folders, lower case, in the order they are preferred."""

MASK_FOLDERS = ("masks", "mask", "ground truth", "ground_truth", "ground-truth", "groundtruth", "gt", "segmentations")
"""Names of mask folders, lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """The folders of one data set, relative to the root.

    Attributes:
        name: Its id.
        images: Folder of images.
        masks: Folder of masks; the same as ``images`` where they lie side by side; None for images alone.
        image_names: Pattern that the names of images match, in either case and without suffix; every one where empty.
        mask_names: Pattern for those of masks, where both lie in one folder and other files beside them.
    """

    name: str
    images: PurePosixPath
    masks: PurePosixPath | None
    image_names: str = ""
    mask_names: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What belongs to one image.

    Attributes:
        key: What joins its files: their name without suffix, composed; "" where something else did.
        image: Its file, relative to the root.
        mask: Its mask's.
        avoid: Its rough mask's, relative to the folder of those.
    """

    key: str = ""
    image: PurePosixPath
    mask: PurePosixPath | None = None
    avoid: PurePosixPath | None = None


class LayoutError(Exception):
    """The folder is not laid out in a way that is understood; the message says what was looked for."""

    def __init__(self, found: str, fix: str, key: str = "data") -> None:
        super().__init__(found)
        self.found, self.fix, self.key = found, fix, key


# --------------------------------------------------------------------------------------------------------- folders


def shown(path: PurePosixPath | Path | str) -> str:
    """Return a path for people: control characters and undecodable bytes escaped."""
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


def _one_of(names: Iterable[str], wanted: Sequence[str], where: PurePosixPath) -> str | None:
    by_rank: dict[int, list[str]] = defaultdict(list)
    for name in names:
        if name.lower() in wanted:
            by_rank[wanted.index(name.lower())].append(name)
    if not by_rank:
        return None
    best = by_rank[min(by_rank)]
    if len(best) > 1:
        raise LayoutError(
            f"{shown(where)} holds {' and '.join(repr(b) for b in best)}", "keep one of them, or name one in the suite"
        )
    return best[0]


def _pair_of_folders(
    root: Path, relative: PurePosixPath, images: Sequence[str], masks: Sequence[str]
) -> DataSet | None:
    names = _subfolders(root, relative)
    image_folder, mask_folder = _one_of(names, images, relative), _one_of(names, masks, relative)
    if image_folder is None:
        return None
    return DataSet(
        name="", images=relative / image_folder, masks=None if mask_folder is None else relative / mask_folder
    )


def dataset_id(folder: str) -> str:
    """Return a data set's id from its folder's name: lower case, other characters than ``[a-z0-9_-]`` become ``-``."""
    text = unicodedata.normalize("NFKD", folder).encode("ascii", "ignore").decode().lower()
    text = re.sub(r"[^a-z0-9_-]+", "-", text).strip("-_")[:64]
    return text if ID_PATTERN.fullmatch(text) else "set"


def _sets_below(root: Path, relative: PurePosixPath, images: Sequence[str], masks: Sequence[str]) -> list[DataSet]:
    found: dict[str, DataSet] = {}
    for name in _subfolders(root, relative):
        pair = _pair_of_folders(root, relative / name, images, masks)
        if pair is None:
            continue
        identifier = dataset_id(name)
        if identifier in found:
            first = found[identifier].images.parent
            raise LayoutError(
                f"folders {shown(first)} and {shown(relative / name)} would both be data set {identifier!r}",
                "rename one of them",
            )
        found[identifier] = DataSet(name=identifier, images=pair.images, masks=pair.masks)
    return list(found.values())


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
        name: Id of the data set when there is only one.
        layout: Where to look; ``auto`` tries a pair of folders in the root, then in its sub-folders (also below one
            called ``TestDataset``), then the archives of known data sets, then pictures in the root itself;
            ``known`` looks for those archives alone, and gives data sets their usual names.
        images: Name of the image folder, instead of the known ones; "." for the root itself.
        masks: Name of the mask folder, instead of the known ones.
        known: Finds the archives of known data sets; several parts may share a name.

    Raises:
        LayoutError: Nothing of the kind is there.
    """
    here = PurePosixPath(".")
    if images or masks:
        named = DataSet(name=name, images=here / images, masks=here / masks if masks else None)
        if _is_folder(root, named.images) and (named.masks is None or _is_folder(root, named.masks)):
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
        pair = _pair_of_folders(root, here, image_names, mask_names)
        if pair is not None:
            return [DataSet(name=name, images=pair.images, masks=pair.masks)]
    if layout in ("auto", "sets"):
        below = [here / folder for folder in _subfolders(root, here) if folder.lower() == "testdataset"]
        for start in [*below, here]:
            sets = _sets_below(root, start, image_names, mask_names)
            if sets:
                return sets
    sets = known(root) if layout == "auto" else []
    if sets:
        return sets
    if layout in ("auto", "images") and _has_pictures(root, here):
        return [DataSet(name=name, images=here, masks=here)]
    check_folder_links(root, here)
    raise LayoutError(
        f"layout {layout}: no {' or '.join(image_names[:2])} folder{'' if layout == 'sets' else ' and no pictures'}",
        "give the folder that holds images/ and masks/ (or Original/ and 'Ground Truth/'), or folders of such pairs; "
        "medtest data inspect PATH says what is there",
    )


def check_folder_links(root: Path, relative: PurePosixPath) -> None:
    """See that no folder is missed because its link is broken.

    Raises:
        LayoutError: There is a broken link right below ``relative`` that may have been to a folder.
    """
    lost = broken_in(root / relative, lambda name: not is_ignored(name) and has_no_suffix(name))
    if lost:
        path = relative / lost[0]
        raise LayoutError(f"{shown(path)} {broken(root / path)}", "see that what links lead to is there")


def _is_folder(root: Path, relative: PurePosixPath) -> bool:
    return (root / relative).is_dir()


def holds_pairs(folder: Path) -> Path | None:
    """Return the folder to type in the place of ``images/`` or ``masks/``: the one that holds both; None elsewhere.

    Args:
        folder: What was typed.
    """
    for own, other in ((IMAGE_FOLDERS, MASK_FOLDERS), (MASK_FOLDERS, IMAGE_FOLDERS)):
        if folder.name.lower() in own:
            with suppress(OSError), os.scandir(folder.parent) as entries:
                if any(entry.name.lower() in other and entry.is_dir() for entry in entries):
                    return folder.parent
    return None
