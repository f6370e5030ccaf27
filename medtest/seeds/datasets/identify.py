"""Identification of known data sets by the names of folders above and files beside."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from medtest.seeds.datasets.facts import by_alias, known, plain
from medtest.seeds.datasets.tree import Tree
from medtest.seeds.folders.formats import has_no_suffix, kind_of_name, without_suffix

_KVASIR_NAMES = re.compile(r"cju[a-z0-9]{15,}", re.I)
"""Kvasir-SEG's files are named by keys of its annotation tool."""


def identify(tree: Tree, where: PurePosixPath, names: Collection[str]) -> str:
    """Return the id of the known data set in a folder, or "".

    Args:
        tree: The files below the root.
        where: The folder that holds images and masks.
        names: Names of its images, without suffix.
    """
    aliases = by_alias()
    for folder in (where, *where.parents):
        beside = {name.casefold() for name in tree.folders.get(folder, ())}
        signed = (f.key for f in known().values() if not beside.isdisjoint(sign.casefold() for sign in f.signs))
        if key := next(signed, ""):
            return key
        dataset = aliases.get(plain(folder.name)) if folder.name else None
        if dataset:
            return dataset
    dataset = aliases.get(plain(tree.name)) or _within(plain(tree.name))
    if dataset:
        return dataset
    if names and all(_KVASIR_NAMES.fullmatch(name) for name in names):
        return "kvasir"
    return ""


def _within(name: str) -> str:
    """Return the data set whose name starts the name of a root or archive (Kvasir-SEG-v2, CVC-ClinicDB (1))."""
    # Kvasir-Capsule and Kvasir-VQA share Kvasir-SEG's prefix and have no masks.
    every = (*by_alias(), *by_alias("labels"), *by_alias("questions"))
    fitting = [alias for alias in every if len(alias) >= 5 and name.startswith(alias)]
    return by_alias().get(max(fitting, key=len), "") if fitting else ""


def image_stems(tree: Tree, folder: PurePosixPath) -> list[str]:
    """Return the names of the image files below a folder, without folders and suffix, lower case."""
    return stems_of(path.name for path in tree.files(folder))


def stems_of(names: Iterable[str]) -> list[str]:
    """Return the names of image files, without suffix, lower case."""
    return [
        without_suffix(PurePosixPath(name)).name.casefold()
        for name in names
        if kind_of_name(name) is not None or (has_no_suffix(name) and name.upper() != "DICOMDIR")
    ]
