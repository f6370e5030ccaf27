"""ZIP files that strangers made, read within bounds; ZIP files of ours, whose bytes are the same each time.

What a ZIP says of itself is looked at before anything is unpacked: how many entries, how large each and all together,
how much smaller they are packed, where they would lie. What it says is then held against what it holds: no entry gives
more bytes than it declares, none shares its bytes with another, and every checksum is compared.
"""

from __future__ import annotations

import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from medtest.core.errors import MedtestError

AT_ONCE = 1 << 20
"""Bytes that are in memory at one time."""
_TAIL = struct.Struct("<4s4H2LH")
"""What stands at a ZIP's end: signature, disks, entries, size and place of its directory, length of a comment."""
_TAIL_SIGNATURE = b"PK\x05\x06"
_LONGEST_COMMENT = 0xFFFF
_LOCAL_HEADER = 30
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LONGEST_NAME, _LONGEST_PART = 512, 200
_FORBIDDEN = frozenset('\\:*?"<>|')
_DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)))
)
_HERE = "./"
"""Begins names that libarchive writes, and is one itself."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3


class RefusedZip(MedtestError):
    """A ZIP file that cannot be read, or is not unpacked; the message goes on from its name ("holds a link")."""


@dataclass(frozen=True, kw_only=True)
class ZipBounds:
    """What is read of a ZIP file.

    Attributes:
        entries: Most entries.
        total: Most bytes of all entries together, unpacked.
        entry: Most bytes of one.
        times: An entry may be this many times as large as it is packed ...
        slack: ... and these bytes more: a short text of repetitions shrinks further.
    """

    entries: int = 50_000
    total: int = 8 << 30
    entry: int = 3 << 30
    times: int = 100
    slack: int = 1 << 20

    @property
    def directory(self) -> int:
        """Most bytes of its directory, which is in memory at once."""
        return self.entries * 2 * _LONGEST_NAME


BOUNDS = ZipBounds()


class BoundedZip:
    """A ZIP file whose entries were looked at; use it in a ``with``.

    Args:
        path: The file.
        bounds: What is read of it.

    Attributes:
        names: Its files, in the order of its directory; folders are left out.

    Raises:
        RefusedZip: It is no ZIP file, is damaged, or holds what is not unpacked.
    """

    def __init__(self, path: Path, bounds: ZipBounds = BOUNDS) -> None:
        self._bounds = bounds
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise RefusedZip(f"cannot be read: {error.strerror or error}") from error
        try:
            directory, count = _check_tail(self._file, bounds)
            with _readable():
                self._zip = zipfile.ZipFile(self._file)
            found = self._zip.infolist()
            if len(found) != count:
                raise RefusedZip(f"is damaged: it declares {count:,} entries and lists {len(found):,}")
            self._entries = dict(_checked(found, directory, bounds))
        except BaseException:
            self._file.close()
            raise
        self.names = tuple(self._entries)

    def __enter__(self) -> BoundedZip:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def size(self, name: str) -> int:
        """Return how many bytes a file declares, unpacked."""
        return self._entries[name].file_size

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield a file's content, at most :data:`AT_ONCE` bytes at a time.

        Raises:
            RefusedZip: It is damaged, or holds more or less than it declares.
        """
        entry, count = self._entries[name], 0
        with _readable(name), self._zip.open(entry) as member:
            while part := member.read(AT_ONCE):
                count += len(part)
                if count > entry.file_size:
                    raise RefusedZip(f"is damaged: {name!r} holds more than it declares")
                yield part
        if count != entry.file_size:
            raise RefusedZip(f"is damaged: {name!r} holds {count:,} bytes and declares {entry.file_size:,}")

    def read(self, name: str, most: int) -> bytes:
        """Return a file's content.

        Raises:
            RefusedZip: It is damaged or larger than ``most`` bytes.
        """
        if self.size(name) > most:
            raise RefusedZip(f"holds {name!r} of {self.size(name):,} bytes; {most:,} at most are read")
        return b"".join(self.chunks(name))


@contextmanager
def _readable(name: str = "") -> Iterator[None]:
    """Put what Python's reader says of a damaged file in words."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, RuntimeError, OSError) as error:
        where = f" at {name!r}" if name else ""
        raise RefusedZip(f"is damaged or no ZIP file{where}: {str(error)[:200] or type(error).__name__}") from error


def _check_tail(file: IO[bytes], bounds: ZipBounds) -> tuple[int, int]:
    """Look at a ZIP's end before its directory is read; return where the directory begins and how much it lists.

    Raises:
        RefusedZip: It has no end, its directory is too large or lies elsewhere, or something stands before it.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL.size - _LONGEST_COMMENT))
    tail = file.read()
    at = tail.rfind(_TAIL_SIGNATURE)
    if at < 0 or len(tail) - at < _TAIL.size:
        raise RefusedZip("is no ZIP file, or one that was cut off")
    _, disk, of_directory, here, entries, length, start, comment = _TAIL.unpack_from(tail, at)
    end = size - len(tail) + at
    if disk or of_directory or here != entries or at + _TAIL.size + comment != len(tail):
        raise RefusedZip("is one part of several, or has something behind its end")
    if 0xFFFF in (here, entries) or 0xFFFFFFFF in (length, start):
        raise RefusedZip(f"is larger than what is read: {bounds.entries:,} entries and 4 GB at most")
    if entries > bounds.entries:
        raise RefusedZip(f"holds {entries:,} entries; {bounds.entries:,} at most are read")
    if length > bounds.directory:
        raise RefusedZip(f"has a directory of {length:,} bytes; {bounds.directory:,} at most are read")
    if start + length != end:
        raise RefusedZip("is damaged, or has something before its beginning or its end")
    return int(start), int(entries)


def _checked(
    found: Sequence[zipfile.ZipInfo], directory: int, bounds: ZipBounds
) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """Yield the files among the entries by their names, without the ``./`` that some tools begin names with.

    Raises:
        RefusedZip: An entry is not unpacked.
    """
    total = sum(one.file_size for one in found)
    if total > bounds.total:
        raise RefusedZip(f"holds {total / 1e9:,.1f} GB unpacked; {bounds.total / 1e9:,.1f} GB at most are read")
    _check_places(found, directory)
    named = [(_name_of(one.filename), one) for one in found if one.filename != _HERE]
    taken: dict[str, str] = {}
    for name, entry in named:
        _check_entry(entry, bounds)
        key = _folded(name)
        if key in taken:
            twice = name if taken[key] == name else f"{taken[key]!r} and {name!r}, one name to many systems"
            raise RefusedZip(f"holds a name twice: {twice}")
        taken[key] = name
    files = {_folded(name) for name, entry in named if not entry.is_dir()}
    for name, entry in named:
        parts = _folded(name).split("/")
        if any("/".join(parts[:end]) in files for end in range(1, len(parts))):
            raise RefusedZip(f"holds {name!r} below a file")
        if not entry.is_dir():
            yield name, entry


def _name_of(written: str) -> str:
    return written.removeprefix(_HERE).removesuffix("/")


def _check_places(found: Sequence[zipfile.ZipInfo], directory: int) -> None:
    """Refuse entries that share their bytes: a few kilobytes would be unpacked again and again."""
    ordered = sorted(found, key=lambda one: one.header_offset)
    ends = [*(one.header_offset for one in ordered[1:]), directory]
    for entry, end in zip(ordered, ends, strict=True):
        if entry.header_offset + _LOCAL_HEADER + entry.compress_size > end:
            raise RefusedZip(f"is damaged, or made to swell: {entry.filename!r} shares its bytes with something else")


def _check_entry(entry: zipfile.ZipInfo, bounds: ZipBounds) -> None:
    shown = entry.filename[:120]
    mode = stat.S_IFMT(entry.external_attr >> 16)
    if why := name_refused(_name_of(entry.orig_filename)):
        raise RefusedZip(f"holds the name {entry.orig_filename[:120]!r}, {why}")
    if mode not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise RefusedZip(f"holds {shown!r}, a link or device and no file")
    if entry.flag_bits & _ENCRYPTED:
        raise RefusedZip(f"holds {shown!r}, which is encrypted")
    if entry.compress_type not in _METHODS:
        raise RefusedZip(f"holds {shown!r}, packed in a way (method {entry.compress_type}) that not everyone reads")
    if entry.file_size > (0 if entry.is_dir() else bounds.entry):
        raise RefusedZip(f"holds {shown!r} of {entry.file_size:,} bytes; {bounds.entry:,} at most are read")
    if entry.file_size > bounds.times * entry.compress_size + bounds.slack:
        raise RefusedZip(
            f"holds {shown!r}, {entry.compress_size:,} bytes that become {entry.file_size:,}: made to swell, or damaged"
        )


def name_refused(name: str) -> str:
    """Return why nothing is unpacked under a name, "" where it may be: one plain path below a folder, everywhere.

    Args:
        name: A path with ``/`` between its parts.
    """
    parts = name.split("/")
    if name.startswith("/") or name[1:2] == ":":
        return "an absolute path"
    if ".." in parts:
        return "a path out of its folder"
    if not all(part.strip(" .") for part in parts):
        return "no name"
    if len(_bytes(name)) > _LONGEST_NAME or any(len(_bytes(part)) > _LONGEST_PART for part in parts):
        return "too long"
    if any(sign in _FORBIDDEN or unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in name):
        return "with signs that no name has everywhere"
    if any(part[-1] in " ." or part.partition(".")[0].casefold() in _DEVICES for part in parts):
        return "no name of a file everywhere"
    return ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _folded(name: str) -> str:
    """Return what names have in common that are one to systems without regard to case or to how accents are written."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def clashing(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that some system takes for one, None where there are none."""
    taken: dict[str, str] = {}
    for name in names:
        before = taken.setdefault(_folded(name), name)
        if before != name:
            return before, name
    return None


def write_zip(target: IO[bytes], files: Iterable[tuple[str, Path]], bounds: ZipBounds = BOUNDS) -> None:
    """Write a ZIP file: the same files give the same bytes, whenever they are packed and whoever owns them.

    Args:
        target: Where to, open for writing, which can be sought.
        files: (name, where it lies) each.
        bounds: What a reader will read of it.

    Raises:
        RefusedZip: A reader would refuse it.
        OSError: A file cannot be read, or the target not be written.
    """
    ordered = sorted(files)
    names = [name for name, _ in ordered]
    total = sum(path.stat().st_size for _, path in ordered)
    if pair := clashing(names):
        raise RefusedZip(f"would hold {pair[0]!r} and {pair[1]!r}, one name to many systems")
    for name in names:
        if why := name_refused(name):
            raise RefusedZip(f"would hold the name {name[:120]!r}, {why}")
    if len(names) > bounds.entries or total > bounds.total:
        raise RefusedZip(
            f"would hold {len(names):,} files, {total / 1e9:,.1f} GB; "
            f"{bounds.entries:,} and {bounds.total / 1e9:,.1f} GB at most are read"
        )
    with zipfile.ZipFile(target, "w", allowZip64=False) as archive:
        for name, path in ordered:
            _add(archive, name, path, bounds)


def _add(archive: zipfile.ZipFile, name: str, path: Path, bounds: ZipBounds) -> None:
    size = path.stat().st_size
    if size > bounds.entry:
        raise RefusedZip(f"would hold {name!r} of {size:,} bytes; {bounds.entry:,} at most are read")
    entry = zipfile.ZipInfo(name, date_time=_EPOCH)
    entry.create_system, entry.external_attr = _UNIX, (stat.S_IFREG | 0o644) << 16
    entry.compress_type = zipfile.ZIP_STORED if _swells(path, bounds) else zipfile.ZIP_DEFLATED
    entry.file_size = size
    try:
        with path.open("rb") as source, archive.open(entry, "w") as member:
            while part := source.read(AT_ONCE):
                member.write(part)
    except zipfile.LargeZipFile as error:
        raise RefusedZip("would be larger than 4 GB") from error


def _swells(path: Path, bounds: ZipBounds) -> bool:
    """Whether a file shrinks so far that a reader takes it for one that is made to swell."""
    packer, packed = zlib.compressobj(wbits=-15), 0
    with path.open("rb") as source:
        while part := source.read(AT_ONCE):
            packed += len(packer.compress(part))
    packed += len(packer.flush())
    return path.stat().st_size > bounds.times * packed + bounds.slack
