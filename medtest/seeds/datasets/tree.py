"""Names of the files below a folder or in an archive, bounded; nothing is opened or unpacked."""

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
from medtest.core.files.links import broken as broken_reason
from medtest.core.files.walk import HERE, walk
from medtest.seeds.folders.formats import has_no_suffix, is_ignored, is_unnamed_dicom, kind_of_name

DEEPEST = 10
MOST_MEMBERS = 2_000_000
MOST_UNPACKED = 100 * 2**30
"""Most bytes read from a packed tar to list its names; larger ones (or over a hundred times its size) are refused."""

_LONG = 40
"""Longer names are not listed individually."""

MOST_HEADER = 2**20
"""Largest header of a tar; a path takes a few hundred bytes."""

_PACKERS: tuple[tuple[bytes, Callable[[Any], Any]], ...] = (
    (b"\x1f\x8b", lambda file: gzip.GzipFile(fileobj=file)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)

_UNREADABLE = (OSError, ValueError, RuntimeError, MemoryError)
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
UNREAD_ARCHIVES = (".rar", ".7z")


@dataclass(frozen=True, slots=True)
class Tree:
    """Files by folder.

    Attributes:
        name: Name of the root folder, or of the archive without its suffix.
        folders: Names of files in each folder, by the folder's path below the root, without system leftovers
            and files without suffix that are not DICOM.
        ignored: Number of files skipped, by name or kind.
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
        # Every recogniser looks up every folder; archives of DICOM have tens of thousands of folders.
        children: dict[PurePosixPath, set[PurePosixPath]] = defaultdict(set)
        for path in self.folders:
            for inner, outer in pairwise((path, *path.parents)):
                if inner in children[outer]:
                    break
                children[outer].add(inner)
        object.__setattr__(self, "_children", {outer: sorted(inner) for outer, inner in children.items()})

    def below(self, folder: PurePosixPath) -> Iterator[PurePosixPath]:
        """Yield the direct sub-folders that hold files at any depth."""
        yield from self._children.get(folder, ())

    def files(self, folder: PurePosixPath) -> list[PurePosixPath]:
        """Return every file below a folder, relative to it."""
        paths, waiting = [], [folder]
        while waiting:
            current = waiting.pop()
            paths += [current.relative_to(folder) / name for name in self.folders.get(current, ())]
            waiting += self.below(current)
        return paths

    def matching(self, pattern: re.Pattern[str]) -> Iterator[tuple[PurePosixPath, re.Match[str]]]:
        """Yield the folder and match of every file whose name matches."""
        for folder, names in self.folders.items():
            yield from ((folder, match) for name in names if (match := pattern.fullmatch(name)) is not None)

    def all_folders(self) -> list[PurePosixPath]:
        """Return every folder that holds files, and their parents, the root first."""
        folders = {PurePosixPath(".")}
        for path in self.folders:
            folders.add(path)
            folders.update(path.parents)
        return sorted(folders)


def is_archive(name: str) -> bool:
    """Return True if a file of this name is an archive that can be inspected."""
    return name.lower().endswith(ARCHIVES)


def tree_of_folder(root: Path) -> Tree:
    """Return the names of the files below a folder; links are followed and keep their own names.

    Raises:
        BadFileError: The folder holds too many files or cannot be read.
    """
    folders: dict[PurePosixPath, tuple[str, ...]] = {}
    ignored: dict[str, int] = defaultdict(int)
    unreadable: list[str] = []
    for folder in walk(root, deepest=DEEPEST, ignored=is_ignored):
        current, broken = folder.path, set(folder.broken)
        for trouble in folder.troubles:
            if trouble.path == HERE:
                raise BadFileError(trouble.reason.removeprefix("folder "))
            unreadable.append(f"{trouble.path} ({trouble.reason})")
        for name in folder.passed:
            ignored[_junk(name)] += 1
        names = []
        for name in folder.files:
            if name in broken and kind_of_name(name) is None:  # broken image links are listed and reported when checked
                unreadable.append(f"{current / name} ({broken_reason(root / current / name)})")
            elif not has_no_suffix(name) or is_unnamed_dicom(root / current / name):  # skips LICENSE and similar files
                names.append(name)
            else:
                ignored[name if len(name) < _LONG else "files without suffix"] += 1
        if names:
            folders[current] = tuple(names)
    return Tree(Path(os.path.abspath(root)).name, folders, dict(ignored), tuple(unreadable))


def _junk(name: str) -> str:
    if name.startswith("._"):
        return "._*"
    known = name.lower() in ("thumbs.db", "ehthumbs.db", "desktop.ini") or (len(name) < 40 and name[0] in "._")
    return name if known else "thumbnails"


def tree_of_archive(path: Path) -> Tree:
    """Return the names of the files in a .zip or .tar archive, from its directory, without unpacking.

    Raises:
        BadFileError: The archive cannot be read or lists too many files.
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
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, *_UNREADABLE) as error:
        raise BadFileError("is not a readable archive, or is damaged") from error


class _Bounded:
    """File wrapper that bounds each read: a header in a packed tar may claim gigabytes."""

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
            raise BadFileError("unpacks to more than any data set")
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
            # Archive members are not opened: DICOM files without suffix have numbers in their names, LICENSE has none.
            folders[PurePosixPath(*parts[:-1])].append(parts[-1])
    stem = path.name
    for suffix in sorted(ARCHIVES, key=len, reverse=True):
        if stem.lower().endswith(suffix):
            stem = stem[: -len(suffix)]
            break
    return Tree(stem, {folder: tuple(sorted(members)) for folder, members in folders.items()}, dict(ignored))


def common_folder(folders: Sequence[PurePosixPath]) -> PurePosixPath:
    """Return the nearest folder that contains all given ones."""
    for folder in (folders[0], *folders[0].parents):
        if all(other.is_relative_to(folder) for other in folders):
            return folder
    return PurePosixPath(".")
