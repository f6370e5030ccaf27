"""One folder per class: the user's own, Kvasir-Capsule, KID and CAD-CAP."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from medtest.phantoms.classes import CAPSULE
from medtest.seeds.datasets.base import Found
from medtest.seeds.datasets.facts import known
from medtest.seeds.folders.formats import is_ignored
from medtest.seeds.folders.layout import LayoutError, natural_key, shown
from medtest.seeds.folders.pairing import Files, list_files
from medtest.seeds.labels.entries import MOST_CLASSES, LabelEntry, LabelledFolder, fold
from medtest.seeds.labels.layouts.common import entry_name, join_masks, masks_among, single
from medtest.seeds.labels.settings import LabelFolderSettings

_MASK_SUFFIX = ("-annotations", "_annotations", " annotations")


STYLES = ("class_folders", "kvasir_capsule", "kid", "cad_cap")
"""Layouts in class folders; those of known data sets are named after their ids."""

_MASK_NAMES = {"kid": r"(?P<stem>.+)m", "cad_cap": r"(?P<stem>.+)_a"}
"""Patterns of masks' names, in the class folder or in one called ``<class>-annotations``, by layout."""

_VIDEO = re.compile(r"(?P<video>[0-9a-f]{8,})_[0-9]+")
"""Image names of Kvasir-Capsule, of which a group is the cluster."""


def read_class_folders(root: Path, dataset: Found, settings: LabelFolderSettings) -> LabelledFolder:
    """Read class folders.

    Raises:
        LayoutError: There are no class folders, or too many.
    """
    style = dataset.reader
    folders = class_folders(root, dataset.where, masks=settings.masks)
    if len(folders) > MOST_CLASSES:
        raise LayoutError(
            f"{len(folders):,} folders in {shown(dataset.where)} are not classes", "name the right folder"
        )
    mapping = {} if style == "class_folders" else known()[style.replace("_", "-")].mapping
    own = {fold(name): name for name in mapping}
    laid = LabelledFolder(names=(), mapping=mapping, classes=CAPSULE.names if mapping else ())
    names: dict[str, None] = {}
    for folder in folders:
        name = own.get(fold(folder.name), folder.name)
        if _add(root, dataset.where, folder, name, style, laid):
            names[name] = None
    laid.names = tuple(dict.fromkeys([*mapping, *names]))
    if settings.masks:
        join_masks(root, PurePosixPath(settings.masks), laid)
    if not laid.entries:
        raise LayoutError(f"no folders of images in {shown(dataset.where)}", "give the folder that holds class folders")
    return laid


def class_folders(root: Path, where: PurePosixPath, *, masks: str = "") -> list[PurePosixPath]:
    """Return the direct sub-folders that may be classes, without those of masks and annotations."""
    try:
        inside = [where / path.name for path in (root / where).iterdir() if path.is_dir() and not is_ignored(path.name)]
    except OSError as error:
        raise LayoutError(f"folder {shown(where)} cannot be read ({error.strerror})", "give read permission") from error
    candidates = [path for path in inside if not path.name.lower().endswith(_MASK_SUFFIX)]
    if masks:
        candidates = [path for path in candidates if not PurePosixPath(masks).is_relative_to(path)]
    return sorted(candidates, key=lambda path: natural_key(path.name))


def _add(root: Path, where: PurePosixPath, folder: PurePosixPath, name: str, style: str, laid: LabelledFolder) -> bool:
    """Add the images of one class and return True if there are any."""
    files = list_files(root, folder)
    laid.take(files)
    masks = _masks(root, folder, files, style, laid)
    count = len(laid.entries)
    for key, paths in sorted(files.by_key.items(), key=lambda item: natural_key(item[0].casefold())):
        path = single(paths, where, laid)
        if path is None:
            continue
        below = entry_name(path, where)
        match = _VIDEO.fullmatch(PurePosixPath(below).name) if style == "kvasir_capsule" else None
        laid.entries.append(
            LabelEntry(
                image=path,
                name=below,
                labels=(name,),
                cluster=match["video"] if match else "",
                mask=masks.get(key),
            )
        )
    return len(laid.entries) > count


def _masks(
    root: Path, folder: PurePosixPath, files: Files, style: str, laid: LabelledFolder
) -> dict[str, PurePosixPath]:
    """Return masks by the keys of their images, and remove masks from the listed images."""
    if style not in _MASK_NAMES:
        return {}
    beside = masks_among(files.by_key, _MASK_NAMES[style])
    masks = {key: files.by_key[mask][0] for key, mask in beside.items()}
    for mask in beside.values():
        del files.by_key[mask]
    for suffix in _MASK_SUFFIX:
        other = folder.with_name(f"{folder.name}{suffix}")
        if not (root / other).is_dir():
            continue
        listed = list_files(root, other)
        laid.take(listed)
        rule = re.compile(_MASK_NAMES[style], re.S | re.I)
        for key, paths in listed.by_key.items():
            match = rule.fullmatch(key)
            masks |= {base: paths[0] for base in (key, match["stem"] if match else key) if base in files.by_key}
    return masks
