"""What every source of seeds from a user's folder needs: its root, ids, files that stay inside, one report."""

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
"""Seed ids are cut to this many characters, with a hash at the end."""

CHANGED = "leave the data alone while a run lasts, or start again"
"""How a file that cannot be read any more is mended."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def id_of(parts: Sequence[str]) -> str:
    """Return a seed's id of the parts of a path: other characters than letters, digits and ``._-`` replaced by _."""
    text = _UNSAFE.sub("_", "_".join(parts)).lstrip(".") or "_"
    return hashed_id(text, text) if len(text) > LONGEST_ID else text


def distinct_ids(names: Sequence[str]) -> list[str]:
    """Return an id for each image by its name, a path with ``/``; names must be distinct.

    Names in other scripts lose their letters in an id, which a hash of the whole name then tells apart.
    """
    ids = [id_of(PurePosixPath(name).parts) for name in names]
    often = Counter(ids)
    return [one if often[one] == 1 else hashed_id(one, name) for one, name in zip(ids, names, strict=True)]


def ids_in_place(names: Sequence[str], good: Sequence[bool]) -> list[str]:
    """Return an id for each image or row; those that cannot be used never change the id of one that can.

    Args:
        names: As of :func:`distinct_ids`; those that cannot be used may repeat one.
        good: Which can be used.
    """
    own = iter(distinct_ids([name for name, fits in zip(names, good, strict=True) if fits]))
    ids = [next(own) if fits else "" for fits in good]
    taken = set(ids)
    for place, name in enumerate(names):
        if good[place]:
            continue
        seed_id = id_of(PurePosixPath(name).parts)
        if seed_id in taken:
            seed_id = hashed_id(seed_id, f"{name} {place}")
        ids[place] = seed_id
        taken.add(seed_id)
    return ids


def hashed_id(seed_id: str, name: str) -> str:
    """Return an id with a hash of a name at its end."""
    return f"{seed_id[: LONGEST_ID - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def data_root(root: Path | None, what: str) -> Path:
    """Return the user's folder.

    Args:
        root: What ``data=`` named, or None.
        what: What the folder holds, in words.

    Raises:
        UserMistakes: There is none, or it is no folder.
    """
    where, key = "command line", "data"
    if root is None:
        allowed = f"the folder that holds {what}"
        raise Mistake(where=where, key=key, found="nothing", allowed=allowed, fix="add data=PATH").as_error()
    if not root.is_dir():
        found = "is a file" if root.exists() else "does not exist"
        raise Mistake(where=where, key=key, found=f"{shown(root)} {found}", allowed="a folder").as_error()
    return root


def below(root: Path, relative: str) -> Path:
    """Return a file's path, once more made sure of.

    Raises:
        BadFileError: It is gone, or its name leads out of the folder.
    """
    path = named_below(root, relative)
    if path is None:
        raise BadFileError("leads out of the data folder")
    if is_broken(path):
        raise BadFileError(broken(path))
    if not path.exists():
        raise BadFileError("is not there any more")
    return path


def frozen(mask: Mask | None) -> Mask | None:
    """Return a mask that cannot be written to."""
    if mask is not None:
        mask.setflags(write=False)
    return mask


def marked(mask: Mask | None) -> Mask | None:
    """Return a mask that cannot be written to; None for an empty one: nothing to keep off, nothing to score."""
    return frozen(mask) if mask is not None and mask.any() else None


def nothing_left(root: Path, problems: Sequence[SeedProblem], found: str = "no images at all") -> UserMistakes:
    """Return the report on a folder of which nothing can be used."""
    reasons = [Mistake(where=p.file, found=p.reason) for p in problems]
    return UserMistakes(
        reasons or [Mistake(where=shown(root.name or "."), key="data", found=found)],
        heading="the data folder holds no usable image",
    )


def metadata_of(root: Path, name: str) -> Metadata | None:
    """Return the CSV of patients and strata that a suite names below the root; None where it names none.

    Raises:
        UserMistakes: It is not there, or cannot be read.
    """
    if not name:
        return None
    return read_metadata(table_below(root, name, "metadata"), shown(name))


def table_below(root: Path, name: str, key: str) -> Path:
    """Return the path of a table that a suite names below the root.

    Raises:
        UserMistakes: It is not there.
    """
    path = root / name
    if is_broken(path):
        raise Mistake(where=shown(name), key=key, found=broken(path)).as_error()
    if not path.exists():
        raise Mistake(where=shown(name), key=key, found="does not exist in the data folder").as_error()
    return path
