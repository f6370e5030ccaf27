"""Files below a folder that the user typed, which is trusted: links are followed, and what is wrong with them is said.

DVC, git-annex, the cache of Hugging Face and scripts that stage data put links where files are looked for. A file is
known by the path of its link below the folder, never by where the link leads: that stands in no message.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

from medtest.core.files.images import BadFileError
from medtest.core.files.links import unreadable

HERE = PurePosixPath(".")
MOST_FILES = 1_000_000
"""More files than this are not a data set but a wrong folder."""

DEEPEST = 64
"""Folders below one another that are followed where nothing else is asked for."""

KEPT_APART = (".git", ".dvc")
"""Folders in which tools keep what links elsewhere lead to."""

LOOP = "is a link to a folder that holds it; it is passed over"
TOO_DEEP = "is too deep a folder; its files are not read"

_Id = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedFolder:
    """One folder.

    Attributes:
        path: It, relative to the root.
        files: Names of what is no folder, broken links among them, in order.
        broken: Those of them that are links to nothing.
        passed: Names that were passed over.
        troubles: Folders in it, or "" for itself, that are not walked, and why.
    """

    path: PurePosixPath
    files: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A folder that is not walked.

    Attributes:
        path: It, relative to the root.
        reason: Why, in one phrase.
        loses: Whether files are lost by it: a link to a folder above shows none but those that are there anyway.
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
    """Yield a folder and those below it, the last named first; links are followed.

    Args:
        root: The user's folder.
        start: Where to begin, relative to it.
        deepest: How many folders below ``start`` are looked into, one in the other.
        ignored: Says whether a file or folder of a name is passed over.
        most: Bound on files and folders together.

    Raises:
        BadFileError: There are more than ``most``.
    """
    waiting: list[tuple[PurePosixPath, int, frozenset[_Id]]] = [(start, 0, frozenset())]
    count = 0
    while waiting:
        here, depth, above = waiting.pop()
        found = WalkedFolder(path=here)
        place = os.path.join(root, here)
        try:
            above = above | {_identity(os.stat(place))} if above else frozenset(_holders(place))
            with os.scandir(place) as listing:
                entries = sorted(islice(listing, most + 1), key=lambda entry: entry.name)
        except OSError as error:
            found.troubles.append(Trouble(path=here, reason=_why(Path(place), error)))
            yield found
            continue
        count += len(entries)
        if count > most:
            raise BadFileError(f"holds more than {most:,} files; give a smaller folder")
        for entry in entries:
            if ignored(entry.name):
                found.passed.append(entry.name)
            elif not is_folder(entry):
                found.files.append(entry.name)
                if entry.is_symlink() and not _is_file(entry):
                    found.broken.append(entry.name)
            elif _identity(os.stat(entry.path)) in above:
                found.troubles.append(Trouble(path=here / entry.name, reason=LOOP, loses=False))
            elif depth >= deepest:
                found.troubles.append(Trouble(path=here / entry.name, reason=TOO_DEEP))
            else:
                waiting.append((here / entry.name, depth + 1, above))
        yield found


def files_below(root: Path, ignored: Callable[[str], bool] = lambda name: name in KEPT_APART) -> Iterator[Path]:
    """Yield the files below a folder, links followed; broken links are none, and what cannot be read is empty.

    Args:
        root: The user's folder; of one that is not there nothing is yielded.
        ignored: Says whether a file or folder of a name is passed over.

    Raises:
        BadFileError: There are too many.
    """
    for folder in walk(root, deepest=DEEPEST, ignored=ignored):
        for name in folder.files:
            path = root / folder.path / name
            if name not in folder.broken and path.is_file():
                yield path


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Say whether an entry is a folder or a link to one; a link that leads to itself is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _why(place: Path, error: OSError) -> str:
    reason = unreadable(place, error)
    return f"folder {reason}" if reason.startswith("cannot") else reason


def _identity(status: os.stat_result) -> _Id:
    return status.st_dev, status.st_ino


def _holders(place: str) -> Iterator[_Id]:
    """Yield what a folder and all those above it are on their devices, wherever links to it lie."""
    real = Path(place).resolve(strict=True)
    yield from (_identity(folder.stat()) for folder in (real, *real.parents))


def named_below(root: Path, relative: str) -> Path | None:
    """Return the path of a file that is named below a folder: its links may lead anywhere, its name may not.

    Returns:
        None where the name leads out of the folder.
    """
    path = PurePosixPath(relative)
    return None if path.is_absolute() or ".." in path.parts or "\0" in relative else root / path
