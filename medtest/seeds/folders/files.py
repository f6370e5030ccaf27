"""Helpers shared by sources that read the user's folder: root, ids, contained paths and error reports."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from medtest.core.cases import Mask
from medtest.core.errors import Mistake, UserMistakes
from medtest.core.files.images import BadFileError
from medtest.core.files.links import broken, is_broken
from medtest.core.files.walk import named_below
from medtest.seeds.base import SeedProblem
from medtest.seeds.folders.layout import shown
from medtest.seeds.folders.metadata import Metadata, read_metadata

LONGEST_ID = 120
"""Maximum length of seed ids; longer ones are cut and end in a hash."""

CHANGED = "leave the data alone while a run lasts, or start again"
"""Advice for a file that has become unreadable."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def id_of(parts: Sequence[str]) -> str:
    """Return a seed id from the parts of a path; characters other than letters, digits and ``._-`` become _."""
    text = _UNSAFE.sub("_", "_".join(parts)).lstrip(".") or "_"
    return hashed_id(text, text) if len(text) > LONGEST_ID else text


def distinct_ids(names: Sequence[str]) -> list[str]:
    """Return an id for each image from its name, a path with ``/``; names must be distinct.

    Names in other scripts lose their letters; a hash of the whole name keeps their ids distinct.
    """
    ids = [id_of(PurePosixPath(name).parts) for name in names]
    often = Counter(ids)
    return [
        seed_id if often[seed_id] == 1 else hashed_id(seed_id, name) for seed_id, name in zip(ids, names, strict=True)
    ]


def ids_in_place(names: Sequence[str], good: Sequence[bool]) -> list[str]:
    """Return an id for each image or row; unusable ones never change the id of a usable one.

    Args:
        names: As in :func:`distinct_ids`; unusable ones may repeat a name.
        good: Whether each is usable.
    """
    own = iter(distinct_ids([name for name, fits in zip(names, good, strict=True) if fits]))
    ids = [next(own) if fits else "" for fits in good]
    used = set(ids)
    for place, name in enumerate(names):
        if good[place]:
            continue
        seed_id = id_of(PurePosixPath(name).parts)
        if seed_id in used:
            seed_id = hashed_id(seed_id, f"{name} {place}")
        ids[place] = seed_id
        used.add(seed_id)
    return ids


def hashed_id(seed_id: str, name: str) -> str:
    """Return an id that ends in a hash of a name."""
    return f"{seed_id[: LONGEST_ID - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def data_root(root: Path | None, content: str) -> Path:
    """Return the user's folder.

    Args:
        root: Folder given as ``data=``, or None.
        content: Description of the folder's content, for messages.

    Raises:
        UserMistakes: No folder is given, or the path is not a folder.
    """
    where, key = "command line", "data"
    if root is None:
        allowed = f"the folder with {content}"
        raise Mistake(where=where, key=key, found="nothing", allowed=allowed, fix="add data=PATH").as_error()
    if not root.is_dir():
        problem = "is a file" if root.exists() else "does not exist"
        raise Mistake(where=where, key=key, found=f"{shown(root)} {problem}", allowed="a folder").as_error()
    return root


def below(root: Path, relative: str) -> Path:
    """Return a file's path after checking that it exists inside the root.

    Raises:
        BadFileError: The file is missing, or its name leads out of the folder.
    """
    path = named_below(root, relative)
    if path is None:
        raise BadFileError("leads out of the data folder")
    if is_broken(path):
        raise BadFileError(broken(path))
    if not path.exists():
        raise BadFileError("no longer exists")
    return path


def frozen(mask: Mask | None) -> Mask | None:
    """Make a mask read-only and return it."""
    if mask is not None:
        mask.setflags(write=False)
    return mask


def marked(mask: Mask | None) -> Mask | None:
    """Return a mask read-only; None for an empty one, which has nothing to avoid or score."""
    return frozen(mask) if mask is not None and mask.any() else None


def nothing_left(root: Path, problems: Sequence[SeedProblem], problem: str = "no images") -> UserMistakes:
    """Return the error report on a folder without usable images."""
    reasons = [Mistake(where=p.file, found=p.reason) for p in problems]
    return UserMistakes(
        reasons or [Mistake(where=shown(root.name or "."), key="data", found=problem)],
        heading="the data folder holds no usable image",
    )


def metadata_of(root: Path, name: str) -> Metadata | None:
    """Return the CSV of patients and strata that a suite names below the root; None if it names none.

    Raises:
        UserMistakes: The file is missing or cannot be read.
    """
    if not name:
        return None
    return read_metadata(table_below(root, name, "metadata"), shown(name))


def table_below(root: Path, name: str, key: str) -> Path:
    """Return the path of a table that a suite names below the root.

    Raises:
        UserMistakes: The file is missing.
    """
    path = root / name
    if is_broken(path):
        raise Mistake(where=shown(name), key=key, found=broken(path)).as_error()
    if not path.exists():
        raise Mistake(where=shown(name), key=key, found="does not exist in the data folder").as_error()
    return path
