"""Files below a trusted folder typed by the user: links are followed, and broken ones are reported.

DVC, git-annex, the Hugging Face cache and staging scripts place links in data folders. A file is identified by the path
of its link below the folder, never by the target, which no message contains.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

from medtest.core.files.images import BadFileError
from medtest.core.files.links import unreadable

HERE = PurePosixPath(".")
MOST_FILES = 1_000_000
"""Upper limit of files; more are not a data set but a wrong folder."""

DEEPEST = 64
"""Default limit on nested folders."""

KEPT_APART = (".git", ".dvc")
"""Folders in which tools keep the targets of links."""

LOOP = "is a link to a folder that holds it; it is passed over"
TOO_DEEP = "is too deep a folder; its files are not read"

_Id = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedFolder:
    """One visited folder.

    Attributes:
        path: Its path relative to the root.
        files: Sorted names of files, including broken links.
        broken: The broken links among them.
        passed: Names that were ignored.
        troubles: Folders in it, or "" for itself, that were not visited, and why.
    """

    path: PurePosixPath
    files: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    troubles: list[WalkTrouble] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkTrouble:
    """Folder that was not visited.

    Attributes:
        path: Its path relative to the root.
        reason: The reason, in one phrase.
        loses: True if files are missed; a link to a parent folder shows only files that are visited anyway.
    """

    path: PurePosixPath
    reason: str
    loses: bool = True


def walk(
    root: Path,
    start: PurePosixPath = HERE,
    *,
    deepest: int,
    ignored: Callable[[str], bool] = lambda _name: False,
    most: int = MOST_FILES,
) -> Iterator[WalkedFolder]:
    """Yield a folder and its subfolders, the last name first; links are followed.

    Args:
        root: The user's folder.
        start: Starting folder, relative to ``root``.
        deepest: Limit on nested folders below ``start``.
        ignored: Returns True for names of files and folders to ignore.
        most: Limit on files and folders together.

    Raises:
        BadFileError: There are more than ``most``.
    """
    waiting: list[tuple[PurePosixPath, int, frozenset[_Id]]] = [(start, 0, frozenset())]
    count = 0
    while waiting:
        current, depth, parents = waiting.pop()
        folder = WalkedFolder(path=current)
        place = os.path.join(root, current)
        try:
            parents = parents | {_identity(os.stat(place))} if parents else frozenset(_parent_identities(place))
            with os.scandir(place) as listing:
                entries = sorted(islice(listing, most + 1), key=lambda entry: entry.name)
        except OSError as error:
            folder.troubles.append(WalkTrouble(path=current, reason=_error_reason(Path(place), error)))
            yield folder
            continue
        count += len(entries)
        if count > most:
            raise BadFileError(f"holds more than {most:,} files; give a smaller folder")
        for entry in entries:
            if ignored(entry.name):
                folder.passed.append(entry.name)
            elif not is_folder(entry):
                folder.files.append(entry.name)
                if entry.is_symlink() and not _is_file(entry):
                    folder.broken.append(entry.name)
            elif (identity := _identity_of(entry)) is None:
                folder.troubles.append(WalkTrouble(path=current / entry.name, reason="folder cannot be read"))
            elif identity in parents:
                folder.troubles.append(WalkTrouble(path=current / entry.name, reason=LOOP, loses=False))
            elif depth >= deepest:
                folder.troubles.append(WalkTrouble(path=current / entry.name, reason=TOO_DEEP))
            else:
                waiting.append((current / entry.name, depth + 1, parents))
        yield folder


def files_below(root: Path, ignored: Callable[[str], bool] = lambda name: name in KEPT_APART) -> Iterator[Path]:
    """Yield the files below a folder, following links; skip broken links and unreadable folders.

    Args:
        root: The user's folder; nothing is yielded if it does not exist.
        ignored: Returns True for names of files and folders to ignore.

    Raises:
        BadFileError: There are too many.
    """
    for folder in walk(root, deepest=DEEPEST, ignored=ignored):
        for name in folder.files:
            path = root / folder.path / name
            if name not in folder.broken and path.is_file():
                yield path


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return True if an entry is a folder or a link to one; False for a link to itself."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _error_reason(place: Path, error: OSError) -> str:
    reason = unreadable(place, error)
    return f"folder {reason}" if reason.startswith("cannot") else reason


def _identity_of(entry: os.DirEntry[str]) -> _Id | None:
    """Return the identity of a folder, links followed; None if it cannot be entered or no longer exists."""
    try:
        return _identity(os.stat(entry.path))
    except OSError:
        return None


def _identity(status: os.stat_result) -> _Id:
    return status.st_dev, status.st_ino


def _parent_identities(place: str) -> Iterator[_Id]:
    """Yield device and inode of a folder and of all its parents, with links resolved."""
    real = Path(place).resolve(strict=True)
    yield from (_identity(folder.stat()) for folder in (real, *real.parents))


def named_below(root: Path, relative: str) -> Path | None:
    """Return the path of a file named relative to a folder: its links may lead anywhere, its name may not.

    Returns:
        None if the name leads out of the folder.
    """
    path = PurePosixPath(relative)
    return None if path.is_absolute() or ".." in path.parts or "\0" in relative else root / path


def file_below(root: Path, relative: str) -> Path | None:
    """Return the path of an existing file named relative to a folder; None if there is none, or its name leads out."""
    path = named_below(root, relative)
    with suppress(OSError):  # no file has a name that is too long
        return path if path is not None and path.is_file() else None
    return None
