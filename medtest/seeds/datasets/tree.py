"""Names of the files below a folder or inside an archive, bounded; nothing is opened or unpacked."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import IO, Any

from medtest.core.files.images import BadFileError
from medtest.core.files.links import broken as said_of_broken
from medtest.core.files.walk import HERE, walk
from medtest.seeds.folders.formats import has_no_suffix, is_ignored, is_unnamed_dicom, kind_of_name

DEEPEST = 10
MOST_MEMBERS = 2_000_000
MOST_UNPACKED = 100 * 2**30
"""A packed tar is read to its end for its names; more than this (or a hundred times its size) is no data set."""

_LONG = 40
"""Longer names are not listed one by one."""

MOST_HEADER = 2**20
"""Bound on one header of a tar; a path takes a few hundred bytes."""

_PACKERS: tuple[tuple[bytes, Callable[[Any], Any]], ...] = (
    (b"\x1f\x8b", lambda file: gzip.GzipFile(fileobj=file)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
UNREAD_ARCHIVES = (".rar", ".7z")


@dataclass(frozen=True, slots=True)
class Tree:
    """Files by folder.

    Attributes:
        name: Name of the root folder, or of the archive without its suffix.
        folders: Names of files in each folder, by the folder's path below the root; what systems leave is not there,
            nor what has no suffix and is no DICOM file.
        ignored: Paths of what was passed over, and how many files of each name or kind.
        unreadable: Folders that cannot be read, broken links, and links to folders above.
    """

    name: str
    folders: Mapping[PurePosixPath, tuple[str, ...]]
    ignored: Mapping[str, int] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    _children: Mapping[PurePosixPath, list[PurePosixPath]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        # Looked up for every folder by every recogniser; archives of DICOM have tens of thousands of folders.
        found: dict[PurePosixPath, set[PurePosixPath]] = defaultdict(set)
        for path in self.folders:
            for inner, outer in pairwise((path, *path.parents)):
                if inner in found[outer]:
                    break
                found[outer].add(inner)
        object.__setattr__(self, "_children", {outer: sorted(inner) for outer, inner in found.items()})

    def below(self, folder: PurePosixPath) -> Iterator[PurePosixPath]:
        """Yield the sub-folders right below a folder that hold files somewhere."""
        yield from self._children.get(folder, ())

    def files(self, folder: PurePosixPath) -> list[PurePosixPath]:
        """Return every file below a folder, relative to it."""
        found, waiting = [], [folder]
        while waiting:
            here = waiting.pop()
            found += [here.relative_to(folder) / name for name in self.folders.get(here, ())]
            waiting += self.below(here)
        return found

    def matching(self, pattern: re.Pattern[str]) -> Iterator[tuple[PurePosixPath, re.Match[str]]]:
        """Yield the files whose name matches: their folder and the match."""
        for folder, names in self.folders.items():
            yield from ((folder, match) for name in names if (match := pattern.fullmatch(name)) is not None)

    def all_folders(self) -> list[PurePosixPath]:
        """Return every folder that holds files, and those above them, the root first."""
        found = {PurePosixPath(".")}
        for path in self.folders:
            found.add(path)
            found.update(path.parents)
        return sorted(found)


def is_archive(name: str) -> bool:
    """Say whether a file of this name is an archive that can be looked into."""
    return name.lower().endswith(ARCHIVES)


def tree_of_folder(root: Path) -> Tree:
    """Return the names of the files below a folder; links are followed, and known by their own names.

    Raises:
        BadFileError: It holds too many files, or cannot be read.
    """
    folders: dict[PurePosixPath, tuple[str, ...]] = {}
    ignored: dict[str, int] = defaultdict(int)
    unreadable: list[str] = []
    for folder in walk(root, deepest=DEEPEST, ignored=is_ignored):
        here, broken = folder.path, set(folder.broken)
        for trouble in folder.troubles:
            if trouble.path == HERE:
                raise BadFileError(trouble.reason.removeprefix("folder "))
            unreadable.append(f"{trouble.path} ({trouble.reason})")
        for name in folder.passed:
            ignored[_junk(name)] += 1
        names = []
        for name in folder.files:
            if name in broken and kind_of_name(name) is None:  # an image's is listed, and looking at it says so
                unreadable.append(f"{here / name} ({said_of_broken(root / here / name)})")
            elif not has_no_suffix(name) or is_unnamed_dicom(root / here / name):  # LICENSE is no image
                names.append(name)
            else:
                ignored[name if len(name) < _LONG else "files without suffix"] += 1
        if names:
            folders[here] = tuple(names)
    return Tree(Path(os.path.abspath(root)).name, folders, dict(ignored), tuple(unreadable))


def _junk(name: str) -> str:
    return "._*" if name.startswith("._") else name if len(name) < 40 and name.startswith((".", "_")) else _plain(name)


def _plain(name: str) -> str:
    return name if name.lower() in ("thumbs.db", "ehthumbs.db", "desktop.ini") else "thumbnails"


def tree_of_archive(path: Path) -> Tree:
    """Return the names of the files in a .zip or .tar archive, from its directory; nothing is unpacked.

    Raises:
        BadFileError: It is no readable archive, or lists too much.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise BadFileError("is not a regular file")
    try:
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as packed:
                return _tree_of_names(path, (i.filename for i in packed.infolist() if not i.is_dir()))
        with _opened_tar(path) as tar:
            return _tree_of_names(path, _members(tar, status.st_size))
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise BadFileError("is no archive that can be read, or is damaged") from error
    except (ValueError, RuntimeError, MemoryError) as error:
        raise BadFileError("is no archive that can be read, or is damaged") from error


class _Bounded:
    """A file of which no one read is large: a header in a packed tar may claim gigabytes, which would be kept whole."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MOST_HEADER:
            raise tarfile.ReadError("a header is too long")
        return self._file.read(size)


@contextmanager
def _opened_tar(path: Path) -> Iterator[tarfile.TarFile]:
    with path.open("rb") as plain:
        start = plain.read(6)
        plain.seek(0)
        opener = next((opener for magic, opener in _PACKERS if start.startswith(magic)), None)
        with nullcontext(plain) if opener is None else opener(plain) as unpacked:
            bounded: Any = _Bounded(unpacked)
            with tarfile.TarFile(fileobj=bounded) as tar:
                yield tar


def _members(tar: tarfile.TarFile, size: int) -> Iterator[str]:
    total, bound = 0, min(MOST_UNPACKED, 100 * size + 2**30)
    for member in tar:
        total += max(0, member.size)
        if total > bound:
            raise BadFileError("unpacks to far more than a data set")
        if member.isfile():
            yield member.name


def _tree_of_names(path: Path, names: Iterable[str]) -> Tree:
    folders: dict[PurePosixPath, list[str]] = defaultdict(list)
    ignored: dict[str, int] = defaultdict(int)
    for number, name in enumerate(names):
        if number > MOST_MEMBERS:
            raise BadFileError(f"lists more than {MOST_MEMBERS:,} files")
        inside = PurePosixPath(name.replace("\\", "/"))
        parts = [part for part in inside.parts if part not in ("/", ".")]
        if not parts or ".." in parts or inside.is_absolute():
            ignored["paths that lead out of the archive"] += 1
            continue
        junk = next((part for part in parts if is_ignored(part)), None)
        if junk is not None:
            ignored[_junk(junk)] += 1
        elif len(parts) <= DEEPEST + 1 and not (has_no_suffix(parts[-1]) and not any(map(str.isdigit, parts[-1]))):
            # What lies in an archive is not opened: DICOM files without suffix carry numbers, LICENSE does not.
            folders[PurePosixPath(*parts[:-1])].append(parts[-1])
    stem = path.name
    for suffix in sorted(ARCHIVES, key=len, reverse=True):
        if stem.lower().endswith(suffix):
            stem = stem[: -len(suffix)]
            break
    return Tree(stem, {folder: tuple(sorted(found)) for folder, found in folders.items()}, dict(ignored))


def common_folder(folders: Sequence[PurePosixPath]) -> PurePosixPath:
    """Return the nearest folder that holds all of these."""
    for folder in (folders[0], *folders[0].parents):
        if all(other.is_relative_to(folder) for other in folders):
            return folder
    return PurePosixPath(".")
