"""Which labelled data set below a folder is meant, and its parts read together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from medtest.core.files.links import broken, is_broken
from medtest.seeds.datasets.base import Found, recognise
from medtest.seeds.datasets.tree import tree_of_folder
from medtest.seeds.folders.layout import LayoutError, shown
from medtest.seeds.labels.entries import LabelEntry, LabelledFolder
from medtest.seeds.labels.layouts import READERS
from medtest.seeds.labels.layouts.class_folders import STYLES
from medtest.seeds.labels.layouts.common import LOOK, entry_name, images_folder, pictures_below, single
from medtest.seeds.labels.settings import LabelFolderSettings

HERE = PurePosixPath(".")

_GENERIC = ("table", "class_folders")
"""Layouts that give way to those of a known set below the same folder."""

_OWN_PARTS = ("chestxray14", "medmnist")
"""Layouts whose readers choose the part themselves."""


def read_folder(root: Path, settings: LabelFolderSettings) -> LabelledFolder:
    """Read the labelled images that a suite means.

    Raises:
        LayoutError: None is found, several are, or the asked part is not there.
        UserMistakes: A table cannot be read.
        BadFileError: The folder cannot be read.
    """
    if settings.labels == "none":
        return _pictures(root, settings)
    parts = _explicit(root, settings) or _recognised(root, settings)
    chosen = _of_split(parts, settings.split)
    laid = [READERS[found.reader](root, found, settings) for found in chosen]
    notice = ""
    if len(chosen) < len(parts):
        count = sum(len(one.entries) for one in laid)
        notice = f"The {chosen[0].part} part is taken, {count:,} images; split: all takes every part."
    together = laid[0] if len(laid) == 1 else _merged(chosen, laid)
    if notice:
        together.notices.insert(0, notice)
    return together


def _explicit(root: Path, settings: LabelFolderSettings) -> list[Found]:
    """Return what the suite names outright; nothing where it is to be told by names."""
    usual = images_folder(root, settings.images)
    images = HERE / settings.images
    if settings.table:
        table = HERE / settings.table
        if not (root / table).exists():
            found = f"{shown(table)} {broken(root / table)}" if is_broken(root / table) else f"no file {shown(table)}"
            raise LayoutError(found, "name a table below data=PATH", key="table")
        reader = "medmnist" if table.suffix.lower() == ".npz" else settings.layout
        reader = "table" if reader in ("auto", *STYLES) else reader
        if not settings.images and reader == "table":
            images = usual
        return [_found(reader, images, tables=(table,))]
    if settings.layout in STYLES and (settings.images or settings.layout == "class_folders"):
        return [_found(settings.layout, images, where=images)]
    return []


def _found(
    reader: str, images: PurePosixPath, *, where: PurePosixPath = HERE, tables: tuple[PurePosixPath, ...] = ()
) -> Found:
    return Found(layout=reader, where=where, images=images, count=0, holds="labels", reader=reader, tables=tables)


def labelled_below(root: Path) -> list[Found]:
    """Return every labelled data set below a folder; guesses only where no known set is.

    Raises:
        BadFileError: The folder cannot be read.
    """
    found = [one for one in recognise(tree_of_folder(root)) if one.holds == "labels"]
    known = [one for one in found if one.reader not in _GENERIC]
    return known or found


def _recognised(root: Path, settings: LabelFolderSettings) -> list[Found]:
    """Return the parts of the one labelled data set below the root that has the asked layout."""
    everything = labelled_below(root)
    found = [one for one in everything if settings.layout in ("auto", one.reader)]
    if settings.images:
        found = [replace(one, images=HERE / settings.images) for one in found]
    if not found:
        there = ", ".join(dict.fromkeys(one.reader for one in everything))
        raise LayoutError(
            f"layout {settings.layout}: no labelled images" + (f" (there are: {there})" if there else ""),
            "give the folder that holds a folder for each class, or images and a table of labels (table: …); "
            f"labels: none tests images that have none; {LOOK}",
            key="data" if settings.layout == "auto" else "layout",
        )
    sets: dict[tuple[str, str, str], list[Found]] = {}
    for one in found:
        place = "" if one.part else str(one.tables[0] if one.tables else one.where)
        sets.setdefault((one.reader, one.dataset, place), []).append(one)
    if len(sets) > 1:
        names = [shown(parts[0].tables[0] if parts[0].tables else parts[0].where) for parts in sets.values()]
        raise LayoutError(
            f"{len(sets)} labelled data sets: {', '.join(names[:6])}",
            "give the folder of one, or name its table or layout",
        )
    return next(iter(sets.values()))


def _of_split(parts: Sequence[Found], split: str) -> list[Found]:
    """Return the parts that a split takes."""
    if len(parts) == 1 and not parts[0].part and parts[0].reader not in _OWN_PARTS and split not in ("auto", "all"):
        raise LayoutError("no parts of their own", "leave split out", key="split")
    if split == "all" or (len(parts) == 1 and (split == "auto" or not parts[0].part)):
        return list(parts)
    wanted = "test" if split == "auto" else split
    chosen = [one for one in parts if one.part == wanted]
    if chosen or split == "auto":
        return chosen or list(parts)
    there = ", ".join(dict.fromkeys(one.part for one in parts if one.part))
    raise LayoutError(f"no {split} part", f"parts that are there: {there}", key="split")


def _merged(parts: Sequence[Found], laid: Sequence[LabelledFolder]) -> LabelledFolder:
    """Return several parts as one; an image's id begins with its part."""
    together = LabelledFolder(names=tuple(dict.fromkeys(name for one in laid for name in one.names)))
    together.multi = any(one.multi for one in laid)
    together.mapping, together.classes = laid[0].mapping, laid[0].classes
    for found, one in zip(parts, laid, strict=True):
        part = found.part or found.where.name
        together.entries += [replace(entry, name=f"{part}/{entry.name}") for entry in one.entries]
        together.take(one)
    return together


def _pictures(root: Path, settings: LabelFolderSettings) -> LabelledFolder:
    """Return every picture below the folder of images, without labels; masks among them are no images."""
    folder = images_folder(root, settings.images)
    files = pictures_below(root, folder)
    laid = LabelledFolder(names=())
    laid.take(files)
    for paths in files.by_key.values():
        path = single(paths, folder, laid)
        if path is not None:
            laid.entries.append(LabelEntry(image=path, name=entry_name(path, folder), labels=None))
    return laid
