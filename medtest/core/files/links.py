"""Links in a folder: which lead nowhere, and what brings back the file of one. Where a link leads is in no message."""

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
"""What brings the file that a link leads to, by a part of where it leads."""


def unreadable(path: Path, error: OSError) -> str:
    """Return why a path cannot be read, in one phrase that goes on from its name; where a link leads is not in it."""
    if error.errno in (errno.ELOOP, errno.ENOENT) and path.is_symlink():
        return broken(path)
    return f"cannot be read ({error.strerror or type(error).__name__})"


def broken(path: Path) -> str:
    """Return what to say of a link that leads nowhere: what brings its file, as far as where it leads shows that."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "is a link that leads to itself"
    leads = path.readlink().as_posix() if path.is_symlink() else ""
    mend = next((how for part, how in _MENDS if part in leads), "bring back the file that it leads to")
    return f"is a broken link; {mend}"


def is_broken(path: Path) -> bool:
    """Say whether a path is a link that leads nowhere or to itself."""
    if not path.is_symlink():
        return False
    try:
        path.stat()
    except OSError:
        return True
    return False


def broken_in(folder: Path, names: Callable[[str], bool] = lambda _name: True) -> list[str]:
    """Return the names of links right in a folder that lead nowhere, by name; none where it cannot be read."""
    try:
        with os.scandir(folder) as listing:
            links = [entry.name for entry in listing if entry.is_symlink() and names(entry.name)]
    except OSError:
        return []
    return sorted(name for name in links if is_broken(folder / name))
