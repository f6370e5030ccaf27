"""Selection of the labelled data set below a folder, and reading of its parts."""

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
"""Generic layouts, which yield to known sets below the same folder."""

_OWN_PARTS = ("chestxray14", "medmnist")
"""Layouts whose readers select the part themselves."""


def read_folder(root: Path, settings: LabelFolderSettings) -> LabelledFolder:
    """Read the labelled images that a suite selects.

    Raises:
        LayoutError: No or several data sets are found, or the requested part is missing.
        UserMistakes: A table cannot be read.
        BadFileError: The folder cannot be read.
    """
    if settings.labels == "none":
        return _pictures(root, settings)
    parts = _explicit(root, settings) or _recognize(root, settings)
    chosen = _of_split(parts, settings.split)
    laid = [READERS[part.reader](root, part, settings) for part in chosen]
    notice = ""
    if len(chosen) < len(parts):
        count = sum(len(folder.entries) for folder in laid)
        notice = f"The {chosen[0].part} part is taken, {count:,} images; split: all takes every part."
    together = laid[0] if len(laid) == 1 else _merged(chosen, laid)
    if notice:
        together.notices.insert(0, notice)
    return together


def _explicit(root: Path, settings: LabelFolderSettings) -> list[Found]:
    """Return the data set that the suite names explicitly; empty if it is to be recognised."""
    usual = images_folder(root, settings.images)
    images = HERE / settings.images
    if settings.table:
        table = HERE / settings.table
        if not (root / table).exists():
            problem = f"{shown(table)} {broken(root / table)}" if is_broken(root / table) else f"no file {shown(table)}"
            raise LayoutError(problem, "name a table below data=PATH", key="table")
        reader = "medmnist" if table.suffix.lower() == ".npz" else settings.layout
        reader = "table" if reader in ("auto", *STYLES) else reader
        if not settings.images and reader == "table":
            images = usual
        return [_label_dataset(reader, images, tables=(table,))]
    if settings.layout in STYLES and (settings.images or settings.layout == "class_folders"):
        return [_label_dataset(settings.layout, images, where=images)]
    return []


def _label_dataset(
    reader: str, images: PurePosixPath, *, where: PurePosixPath = HERE, tables: tuple[PurePosixPath, ...] = ()
) -> Found:
    return Found(layout=reader, where=where, images=images, count=0, holds="labels", reader=reader, tables=tables)


def labelled_below(root: Path) -> list[Found]:
    """Return every labelled data set below a folder; generic layouts only if no known set is found.

    Raises:
        BadFileError: The folder cannot be read.
    """
    labelled = [dataset for dataset in recognise(tree_of_folder(root)) if dataset.holds == "labels"]
    specific = [dataset for dataset in labelled if dataset.reader not in _GENERIC]
    return specific or labelled


def _recognize(root: Path, settings: LabelFolderSettings) -> list[Found]:
    """Return the parts of the single labelled data set below the root with the requested layout."""
    everything = labelled_below(root)
    candidates = [dataset for dataset in everything if settings.layout in ("auto", dataset.reader)]
    if settings.images:
        candidates = [replace(dataset, images=HERE / settings.images) for dataset in candidates]
    if not candidates:
        present = ", ".join(dict.fromkeys(dataset.reader for dataset in everything))
        raise LayoutError(
            f"layout {settings.layout}: no labelled images" + (f" (there are: {present})" if present else ""),
            "give the folder that holds a folder for each class, or images and a table of labels (table: …); "
            f"labels: none tests images that have none; {LOOK}",
            key="data" if settings.layout == "auto" else "layout",
        )
    sets: dict[tuple[str, str, str], list[Found]] = {}
    for dataset in candidates:
        place = "" if dataset.part else str(dataset.tables[0] if dataset.tables else dataset.where)
        sets.setdefault((dataset.reader, dataset.dataset, place), []).append(dataset)
    if len(sets) > 1:
        names = [shown(parts[0].tables[0] if parts[0].tables else parts[0].where) for parts in sets.values()]
        raise LayoutError(
            f"{len(sets)} labelled data sets: {', '.join(names[:6])}",
            "give the folder of one, or name its table or layout",
        )
    return next(iter(sets.values()))


def _of_split(parts: Sequence[Found], split: str) -> list[Found]:
    """Return the parts that belong to a split."""
    if len(parts) == 1 and not parts[0].part and parts[0].reader not in _OWN_PARTS and split not in ("auto", "all"):
        raise LayoutError("no parts of their own", "leave split out", key="split")
    if split == "all" or (len(parts) == 1 and (split == "auto" or not parts[0].part)):
        return list(parts)
    part_name = "test" if split == "auto" else split
    chosen = [part for part in parts if part.part == part_name]
    if chosen or split == "auto":
        return chosen or list(parts)
    present = ", ".join(dict.fromkeys(part.part for part in parts if part.part))
    raise LayoutError(f"no {split} part", f"parts that are there: {present}", key="split")


def _merged(parts: Sequence[Found], laid: Sequence[LabelledFolder]) -> LabelledFolder:
    """Merge several parts; image ids begin with the part's name."""
    together = LabelledFolder(names=tuple(dict.fromkeys(name for folder in laid for name in folder.names)))
    together.multi = any(folder.multi for folder in laid)
    together.mapping, together.classes = laid[0].mapping, laid[0].classes
    for source, folder in zip(parts, laid, strict=True):
        part = source.part or source.where.name
        together.entries += [replace(entry, name=f"{part}/{entry.name}") for entry in folder.entries]
        together.take(folder)
    return together


def _pictures(root: Path, settings: LabelFolderSettings) -> LabelledFolder:
    """Return every picture below the image folder without labels, leaving out masks."""
    folder = images_folder(root, settings.images)
    files = pictures_below(root, folder)
    laid = LabelledFolder(names=())
    laid.take(files)
    for paths in files.by_key.values():
        path = single(paths, folder, laid)
        if path is not None:
            laid.entries.append(LabelEntry(image=path, name=entry_name(path, folder), labels=None))
    return laid
