"""Inspection of unexplained files, of prediction maps, and of several data sets in one run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from medtest.core.files.images import BadFileError, read_rgb
from medtest.core.files.mask_levels import BLACK, WHITE
from medtest.seeds.datasets.base import Found
from medtest.seeds.datasets.known import known_datasets
from medtest.seeds.datasets.tree import Tree, is_archive
from medtest.seeds.folders.formats import has_no_suffix, kind_of_name, without_suffix
from medtest.seeds.folders.layout import DataSet, LayoutError, find_datasets
from medtest.seeds.folders.pairing import composed

_SAMPLE = 5
_TINT = 8
_EXTREME = 0.7
"""Least fraction of a map that is nearly black or nearly white."""

_MOST_NAMED = 3


def unexplained(tree: Tree, datasets: Sequence[Found]) -> dict[str, list[str]]:
    """Return files other than archives that belong to no data set, by suffix."""
    tables = {table for dataset in datasets for table in dataset.tables}
    rest: dict[str, list[str]] = defaultdict(list)
    for folder, names in tree.folders.items():
        for name in names:
            path = folder / name
            image = kind_of_name(name) is not None or has_no_suffix(name)
            if image or path in tables or is_archive(name):
                continue
            rest[PurePosixPath(name).suffix.lower() or name].append(str(path))
    return dict(sorted(rest.items()))


def in_words(rest: dict[str, list[str]]) -> list[str]:
    """Describe unexplained files, one line per suffix."""
    lines = []
    for suffix, paths in rest.items():
        named = ", ".join(paths[:_MOST_NAMED]) + (" and others" if len(paths) > _MOST_NAMED else "")
        lines.append(f"{len(paths):,} {suffix} ({named})")
    return lines


# -------------------------------------------------------------------------------------------------- prediction maps


def look_like_maps(root: Path, paths: Sequence[PurePosixPath]) -> bool:
    """Return True if pictures look like maps of a lesion's probability: grey, and mostly black or white.

    Args:
        root: The inspected folder.
        paths: Pictures below it, of which a few are decoded.
    """
    step = max(1, len(paths) // _SAMPLE)
    sample = [path for path in paths[::step][:_SAMPLE] if kind_of_name(path.name) == "picture"]
    brightest = [_brightest_of_map(root / path) for path in sample]
    return bool(brightest) and min(brightest) >= 0 and max(brightest) > 127


def _brightest_of_map(path: Path) -> int:
    """Return the brightest value of a map; -1 if the picture is not a map."""
    try:
        rgb = read_rgb(path).astype(np.int16)
    except BadFileError:
        return -1
    tint = (rgb.max(axis=2) - rgb.min(axis=2)) > _TINT
    light = rgb[..., 0]
    extreme = ((light <= BLACK) | (light >= WHITE)).mean()
    return int(light.max()) if tint.mean() < 0.001 and extreme >= _EXTREME and (light <= BLACK).any() else -1


def set_of_maps(tree: Tree, maps: Found, others: Iterable[Found]) -> Found | None:
    """Return the data set that shares most image names with the maps; None without one."""
    names = _names(tree, maps.images)
    sets = [dataset for dataset in others if dataset.holds == "masks" and dataset.images != maps.images]
    shared = [len(names & _names(tree, dataset.images)) for dataset in sets]
    most = max(shared, default=0)
    return sets[shared.index(most)] if most and 2 * most >= len(names) else None


def _names(tree: Tree, folder: PurePosixPath) -> set[str]:
    return {composed(without_suffix(path).name) for path in tree.files(folder) if kind_of_name(path.name) is not None}


# ------------------------------------------------------------------------------------------------- several together


def together(root: Path, datasets: Sequence[Found]) -> tuple[tuple[str, ...], list[DataSet]]:
    """Return the settings with which one run takes most of the sets with masks, and those sets.

    Returns:
        Settings as ``key=value``, and the data sets; no data sets if a run takes one at most.
    """
    folders = {dataset.images for dataset in datasets if dataset.holds == "masks"}
    if len(folders) < 2:
        return (), []
    ways: list[tuple[tuple[str, ...], Callable[[], list[DataSet]]]] = [
        ((), lambda: find_datasets(root, name="folder", layout="auto", images="", masks="", known=known_datasets)),
        (("seeds.folder.layout=sets",), lambda: find_datasets(root, name="folder", layout="sets", images="", masks="")),
        (("seeds.folder.layout=known",), lambda: known_datasets(root)),
    ]
    best: tuple[tuple[str, ...], list[DataSet]] = ((), [])
    for settings, way in ways:
        try:
            every = way()
        except LayoutError:
            continue
        selected = [dataset for dataset in every if dataset.images in folders and dataset.masks is not None]
        if len(selected) > max(1, len(best[1])):
            names = ",".join(dataset.name for dataset in selected)
            chosen = () if len(selected) == len(every) else (f"seeds.folder.sets=[{names}]",)
            best = (*settings, *chosen), selected
    return best
