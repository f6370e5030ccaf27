"""Broken links in a folder, and how to restore their files. Messages never contain the target of a link."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

_MENDS = (
    (".git/annex/", "run git annex get"),
    (".dvc/cache/", "run dvc pull"),
    ("/files/md5/", "run dvc pull"),
    ("/blobs/", "download the snapshot of the Hugging Face hub again"),
)
"""How to restore the target of a link, by a part of the target's path."""


def unreadable(path: Path, error: OSError) -> str:
    """Return the reason why a path is unreadable, as a phrase that continues its name, without a link's target."""
    if error.errno in (errno.ELOOP, errno.ENOENT) and path.is_symlink():
        return broken(path)
    return f"cannot be read ({error.strerror or type(error).__name__})"


def broken(path: Path) -> str:
    """Describe a broken link and how to restore its file, as far as the target reveals that."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "is a link that leads to itself"
    leads = path.readlink().as_posix() if path.is_symlink() else ""
    remedy = next((command for part, command in _MENDS if part in leads), "bring back the file that it leads to")
    return f"is a broken link; {remedy}"


def is_broken(path: Path) -> bool:
    """Return True if a path is a link to a missing file or to itself."""
    if not path.is_symlink():
        return False
    try:
        path.stat()
    except OSError:
        return True
    return False


def broken_in(folder: Path, names: Callable[[str], bool] = lambda _name: True) -> list[str]:
    """Return the sorted names of broken links directly in a folder; empty if the folder is unreadable."""
    try:
        with os.scandir(folder) as listing:
            links = [entry.name for entry in listing if entry.is_symlink() and names(entry.name)]
    except OSError:
        return []
    return sorted(name for name in links if is_broken(folder / name))
