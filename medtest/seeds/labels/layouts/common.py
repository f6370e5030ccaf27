"""Helpers shared by layouts of labelled images: finding images by name and masks by their image."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TypeAlias, TypeVar

from medtest.core.errors import nearest_name
from medtest.core.files.images import BadFileError
from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found
from medtest.seeds.folders.formats import without_suffix
from medtest.seeds.folders.layout import IMAGE_FOLDERS, MASK_FOLDERS, LayoutError, natural_key, shown
from medtest.seeds.folders.pairing import Files, composed, list_files, mask_of, same_names
from medtest.seeds.labels.entries import LabelledFolder
from medtest.seeds.labels.settings import LabelFolderSettings

Row = TypeVar("Row")

Reader: TypeAlias = Callable[[Path, Found, LabelFolderSettings], LabelledFolder]
"""Reader of labels and image names of a recognised data set; it opens no image."""

LOOK = "medtest data inspect PATH says what is there"

_MASK_NAMES = (re.compile(r"(?P<stem>.+)m", re.S | re.I), re.compile(r"(?P<stem>.+)_a", re.S | re.I))
"""Mask names of KID and CAD-CAP, besides the usual ones."""


def key_of(name: str) -> str:
    """Return an image's name for comparison: without picture suffix, in composed form."""
    path = PurePosixPath(name.strip().replace("\\", "/"))
    return composed(str(without_suffix(path)))


class Images:
    """Lookup of the images below a folder by path or name.

    Args:
        files: Files below the folder.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.asked: set[PurePosixPath] = set()
        self._by_name: dict[str, list[PurePosixPath]] = defaultdict(list)
        self._by_lower: dict[str, list[PurePosixPath]] = defaultdict(list)
        for key, paths in files.by_key.items():
            name = key.rpartition("/")[2]
            self._by_name[name] += paths
            self._by_lower[name.lower()] += paths

    @property
    def count(self) -> int:
        """Number of files."""
        return sum(len(paths) for paths in self.files.by_key.values())

    def find(self, name: str) -> PurePosixPath | None:
        """Return the file of a path below the folder or of a bare name; None without a match.

        Case is ignored if no file matches exactly, because tables made on Windows mix case.

        Raises:
            KeyError: Several files have that name; the message lists them.
        """
        key = key_of(name)
        bare = key.rpartition("/")[2]
        paths = self.files.by_key.get(key) or self._by_name.get(bare) or self._by_lower.get(bare.lower(), [])
        if len(paths) > 1:
            raise KeyError(f"is the name of {len(paths)} files ({', '.join(shown(p) for p in paths[:3])})")
        if not paths:
            return None
        self.asked.add(paths[0])
        return paths[0]


def images_folder(root: Path, named: str) -> PurePosixPath:
    """Return the image folder below the root: the one that a suite names, else a usual one, else the root.

    Raises:
        LayoutError: The named folder does not exist.
        BadFileError: The root cannot be read.
    """
    try:
        folders = {path.name.lower(): path.name for path in root.iterdir() if path.is_dir()}
    except OSError as error:
        raise BadFileError(f"cannot be read ({error.strerror})") from error
    if named and not (root / named).is_dir():
        near = nearest_name(named, list(folders.values()))
        fix = f"did you mean {near}?" if near else "name a folder below data=PATH"
        raise LayoutError(f"no folder {shown(named)}", fix, key="images")
    usual = next((folders[name] for name in IMAGE_FOLDERS if name in folders), "")
    return PurePosixPath(named or usual or ".")


def pictures_below(root: Path, folder: PurePosixPath, masks: str = "") -> Files:
    """Return the image files below a folder by key, in natural order, leaving out likely masks.

    Args:
        root: The user's folder.
        folder: Folder below the root.
        masks: Folder of masks that a suite names, or "".

    Raises:
        LayoutError: No picture is found.
    """
    files = list_images(root, [folder])
    images = {
        key: paths
        for key, paths in sorted(files.by_key.items(), key=lambda item: natural_key(item[0].casefold()))
        if not set(key.casefold().split("/")[:-1]) & set(MASK_FOLDERS)
        and not any(base in files.by_key for base in mask_of(key))
        and not (masks and paths[0].is_relative_to(masks))
    }
    if not images:
        raise LayoutError(f"no pictures in {shown(folder)}", f"give the folder that holds them; {LOOK}")
    return replace(files, by_key=images)


def list_images(root: Path, folders: Iterable[PurePosixPath]) -> Files:
    """Return the image files of several folders, by key below each."""
    together = Files()
    listed: set[PurePosixPath] = set()
    for folder in folders:
        files = list_files(root, folder)
        together.take(files)
        for key, paths in files.by_key.items():
            together.by_key.setdefault(key, []).extend(path for path in paths if path not in listed)
            listed.update(paths)
    return together


def join_masks(root: Path, folder: PurePosixPath, laid: LabelledFolder) -> None:
    """Assign the masks of a folder to entries, by path below it or by name; other entries stay without mask.

    Raises:
        LayoutError: The folder is missing, or none of its files is named like an image.
    """
    if not (root / folder).is_dir():
        raise LayoutError(f"no folder {shown(folder)}", "name the folder of lesion masks below data=PATH", key="masks")
    listed = list_files(root, folder)
    laid.take(listed)
    by_key: dict[str, list[int]] = defaultdict(list)
    for place, entry in enumerate(laid.entries):
        if entry.wrong is not None:
            continue
        key = key_of(entry.name)
        by_key[key].append(place)
        if "/" in key:
            by_key[key.rpartition("/")[2]].append(place)
    joined = 0
    for key, paths in listed.by_key.items():
        number = next((by_key[base][0] for base in _bases(key) if len(by_key.get(base, ())) == 1), None)
        if number is None:
            continue
        if len(paths) > 1 or laid.entries[number].mask is not None:
            problem = SeedProblem(file=shown(paths[0]), reason="is a second mask of one image")
            laid.entries[number] = replace(laid.entries[number], wrong=problem)
            continue
        laid.entries[number] = replace(laid.entries[number], mask=paths[0])
        joined += 1
    if laid.entries and not joined:
        example = shown(laid.entries[0].image.name)
        raise LayoutError(
            f"no file in {shown(folder)} is named like an image (an image is called {example})",
            "name masks like their images, <name>_mask or <name>_segmentation",
            key="masks",
        )


def _bases(key: str) -> list[str]:
    """Return the keys of images that a mask may belong to, with and without folder, most exact first."""
    folder, slash, name = key.rpartition("/")
    own = [f"{folder}{slash}{match['stem']}" for rule in _MASK_NAMES if (match := rule.fullmatch(name))]
    full = [key, *mask_of(key), *own]
    return [*full, *(base.rpartition("/")[2] for base in full)]


def masks_among(keys: Mapping[str, Sequence[PurePosixPath]], pattern: str) -> dict[str, str]:
    """Return the keys of masks by the keys of images in the same folder.

    Args:
        keys: Files by key.
        pattern: Pattern of a mask's name with the group ``stem`` for its image's.
    """
    rule = re.compile(pattern, re.S | re.I)
    masks = {}
    for key in keys:
        folder, slash, name = key.rpartition("/")
        match = rule.fullmatch(name)
        if match and f"{folder}{slash}{match['stem']}" in keys:
            masks[f"{folder}{slash}{match['stem']}"] = key
    return masks


def rows_with_images(
    rows: Iterable[tuple[str, str, Row]], images: Images, laid: LabelledFolder
) -> Iterator[tuple[PurePosixPath, Row]]:
    """Yield each row of a table with its image file; missing images are counted in ``laid.missing``.

    Args:
        rows: Position of each row, the image name it gives, and the row.
        images: Lookup of the images.
        laid: Receives unusable rows in their places: ambiguous names and duplicate images.
    """
    used: set[PurePosixPath] = {entry.image for entry in laid.entries}
    for where, name, row in rows:
        try:
            path = images.find(name)
        except KeyError as error:
            laid.add_wrong(SeedProblem(file=where, reason=f"{shown(name)} {error.args[0]}"), key_of(name))
            continue
        if path is None:
            laid.missing += 1
        elif path in used:
            laid.add_wrong(SeedProblem(file=where, reason=f"{shown(path.name)} a second time"), key_of(name))
        else:
            used.add(path)
            yield path, row


def note_missing(laid: LabelledFolder, named: str, folder: PurePosixPath, fix: str) -> None:
    """Add a notice on missing images that tables name.

    Raises:
        LayoutError: All of them are missing.
    """
    if not laid.entries and not laid.problems:
        raise LayoutError(f"none of the {laid.missing:,} {named} is in {shown(folder)}", fix, key="images")
    if laid.missing:
        laid.notices.append(f"Partial: {laid.missing:,} {named} are not there.")


def single(paths: Sequence[PurePosixPath], folder: PurePosixPath, laid: LabelledFolder) -> PurePosixPath | None:
    """Return the only path of a key; files that differ only in suffix share one unusable place."""
    if len(paths) == 1:
        return paths[0]
    first, *others = same_names(paths)
    laid.add_wrong(first, entry_name(paths[0], folder), paths[0])
    laid.problems += others
    return None


def entry_name(path: PurePosixPath, folder: PurePosixPath) -> str:
    """Return the path of an image below a folder, without suffix: the basis of its seed id."""
    return str(without_suffix(path.relative_to(folder)))
