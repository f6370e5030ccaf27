"""ZIP files: bounded reading of untrusted ones, and reproducible writing.

The declared number of entries, sizes, compression ratios and paths are checked before unpacking. The content is then
checked against the declaration: no entry yields more bytes than declared, none shares its bytes with another, and every
checksum is compared.
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
"""Number of bytes held in memory at a time."""
_TAIL = struct.Struct("<4s4H2LH")
"""End record of a ZIP: signature, disks, entries, size and position of the directory, length of a comment."""
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
"""Prefix of names written by libarchive, and itself an entry."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3


class RefusedZip(MedtestError):
    """Raised if a ZIP file cannot be read or is not unpacked; the message continues its name ("holds a link")."""


@dataclass(frozen=True, kw_only=True)
class ZipBounds:
    """Limits for reading a ZIP file.

    Attributes:
        entries: Most entries.
        total: Most unpacked bytes of all entries together.
        entry: Most unpacked bytes of one entry.
        times: An entry may be this many times as large as its packed data ...
        slack: ... plus this many bytes, because short repetitive text compresses further.
    """

    entries: int = 50_000
    total: int = 8 << 30
    entry: int = 3 << 30
    times: int = 100
    slack: int = 1 << 20

    @property
    def directory(self) -> int:
        """Most bytes of the directory, which is read into memory whole."""
        return self.entries * 2 * _LONGEST_NAME


BOUNDS = ZipBounds()


class BoundedZip:
    """ZIP file with checked entries; use it in a ``with``.

    Args:
        path: The file.
        bounds: Limits for reading.

    Attributes:
        names: Its files, in the order of its directory, without folders.

    Raises:
        RefusedZip: It is not a ZIP file, is damaged, or holds entries that are not unpacked.
    """

    def __init__(self, path: Path, bounds: ZipBounds = BOUNDS) -> None:
        self._bounds = bounds
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise RefusedZip(f"cannot be read: {error.strerror or error}") from error
        try:
            directory, count = _check_tail(self._file, bounds)
            with _zip_errors():
                self._zip = zipfile.ZipFile(self._file)
            infos = self._zip.infolist()
            if len(infos) != count:
                raise RefusedZip(f"is damaged: it declares {count:,} entries and lists {len(infos):,}")
            self._entries = dict(_checked(infos, directory, bounds))
        except BaseException:
            self._file.close()
            raise
        self.names = tuple(self._entries)

    def __enter__(self) -> BoundedZip:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def size(self, name: str) -> int:
        """Return the declared unpacked size of a file in bytes."""
        return self._entries[name].file_size

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield a file's content, at most :data:`AT_ONCE` bytes at a time.

        Raises:
            RefusedZip: It is damaged, or its size differs from the declared one.
        """
        entry, count = self._entries[name], 0
        with _zip_errors(name), self._zip.open(entry) as member:
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
def _zip_errors(name: str = "") -> Iterator[None]:
    """Convert exceptions of Python's reader for damaged files to :class:`RefusedZip`."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, RuntimeError, OSError) as error:
        place = f" at {name!r}" if name else ""
        raise RefusedZip(f"is damaged or no ZIP file{place}: {str(error)[:200] or type(error).__name__}") from error


def _check_tail(file: IO[bytes], bounds: ZipBounds) -> tuple[int, int]:
    """Check a ZIP's end record before reading its directory; return the directory's position and number of entries.

    Raises:
        RefusedZip: It has no end record, its directory is too large or elsewhere, or data precede it.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL.size - _LONGEST_COMMENT))
    tail = file.read()
    tail_start = tail.rfind(_TAIL_SIGNATURE)
    if tail_start < 0 or len(tail) - tail_start < _TAIL.size:
        raise RefusedZip("is not a ZIP file, or is truncated")
    _, disk, directory_disk, disk_entries, entries, length, start, comment = _TAIL.unpack_from(tail, tail_start)
    end = size - len(tail) + tail_start
    if disk or directory_disk or disk_entries != entries or tail_start + _TAIL.size + comment != len(tail):
        raise RefusedZip("is one part of several, or has something behind its end")
    if 0xFFFF in (disk_entries, entries) or 0xFFFFFFFF in (length, start):
        raise RefusedZip(f"is larger than what is read: {bounds.entries:,} entries and 4 GB at most")
    if entries > bounds.entries:
        raise RefusedZip(f"holds {entries:,} entries; {bounds.entries:,} at most are read")
    if length > bounds.directory:
        raise RefusedZip(f"has a directory of {length:,} bytes; {bounds.directory:,} at most are read")
    if start + length != end:
        raise RefusedZip("is damaged, or has something before its beginning or its end")
    return int(start), int(entries)


def _checked(
    infos: Sequence[zipfile.ZipInfo], directory: int, bounds: ZipBounds
) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """Yield the files among the entries by name, without the ``./`` prefix of some tools.

    Raises:
        RefusedZip: An entry is not unpacked.
    """
    total = sum(info.file_size for info in infos)
    if total > bounds.total:
        raise RefusedZip(f"holds {total / 1e9:,.1f} GB unpacked; {bounds.total / 1e9:,.1f} GB at most are read")
    _check_places(infos, directory)
    entries = [(_name_of(info.filename), info) for info in infos if info.filename != _HERE]
    names_by_key: dict[str, str] = {}
    for name, entry in entries:
        _check_entry(entry, bounds)
        key = _folded(name)
        if key in names_by_key:
            duplicate = (
                name if names_by_key[key] == name else f"{names_by_key[key]!r} and {name!r}, one name to many systems"
            )
            raise RefusedZip(f"holds a name twice: {duplicate}")
        names_by_key[key] = name
    files = {_folded(name) for name, entry in entries if not entry.is_dir()}
    for name, entry in entries:
        parts = _folded(name).split("/")
        if any("/".join(parts[:end]) in files for end in range(1, len(parts))):
            raise RefusedZip(f"holds {name!r} below a file")
        if not entry.is_dir():
            yield name, entry


def _name_of(stored: str) -> str:
    return stored.removeprefix(_HERE).removesuffix("/")


def _check_places(infos: Sequence[zipfile.ZipInfo], directory: int) -> None:
    """Refuse entries that share bytes, which would unpack a few kilobytes many times."""
    ordered = sorted(infos, key=lambda info: info.header_offset)
    ends = [*(info.header_offset for info in ordered[1:]), directory]
    for entry, end in zip(ordered, ends, strict=True):
        if entry.header_offset + _LOCAL_HEADER + entry.compress_size > end:
            raise RefusedZip(f"is damaged, or made to swell: {entry.filename!r} shares its bytes with something else")


def _check_entry(entry: zipfile.ZipInfo, bounds: ZipBounds) -> None:
    name = entry.filename[:120]
    mode = stat.S_IFMT(entry.external_attr >> 16)
    if refusal := name_refused(_name_of(entry.orig_filename)):
        raise RefusedZip(f"holds the name {entry.orig_filename[:120]!r}, {refusal}")
    if mode not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise RefusedZip(f"holds {name!r}, a link or device and no file")
    if entry.flag_bits & _ENCRYPTED:
        raise RefusedZip(f"holds {name!r}, which is encrypted")
    if entry.compress_type not in _METHODS:
        raise RefusedZip(f"holds {name!r}, packed in a way (method {entry.compress_type}) that not everyone reads")
    if entry.file_size > (0 if entry.is_dir() else bounds.entry):
        raise RefusedZip(f"holds {name!r} of {entry.file_size:,} bytes; {bounds.entry:,} at most are read")
    if entry.file_size > bounds.times * entry.compress_size + bounds.slack:
        raise RefusedZip(
            f"holds {name!r}, {entry.compress_size:,} bytes that become {entry.file_size:,}: made to swell, or damaged"
        )


def name_refused(name: str) -> str:
    """Return the reason for refusing a name, or "" if it is a plain path below a folder on every system."""
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
    """Return the form shared by names that are equal to systems that ignore case or the encoding of accents."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def clashing(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that some system takes for the same, or None."""
    first_names: dict[str, str] = {}
    for name in names:
        before = first_names.setdefault(_folded(name), name)
        if before != name:
            return before, name
    return None


def write_zip(target: IO[bytes], files: Iterable[tuple[str, Path]], bounds: ZipBounds = BOUNDS) -> None:
    """Write a reproducible ZIP file: equal files give equal bytes, regardless of time and owner.

    Args:
        target: Seekable file open for writing.
        files: (name, path) of each file.
        bounds: Limits of the reader.

    Raises:
        RefusedZip: A reader would refuse it.
        OSError: A file cannot be read, or the target cannot be written.
    """
    ordered = sorted(files)
    names = [name for name, _ in ordered]
    total = sum(path.stat().st_size for _, path in ordered)
    if pair := clashing(names):
        raise RefusedZip(f"would hold {pair[0]!r} and {pair[1]!r}, one name to many systems")
    for name in names:
        if refusal := name_refused(name):
            raise RefusedZip(f"would hold the name {name[:120]!r}, {refusal}")
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
    entry.compress_type = zipfile.ZIP_STORED if _compresses_too_well(path, bounds) else zipfile.ZIP_DEFLATED
    entry.file_size = size
    try:
        with path.open("rb") as source, archive.open(entry, "w") as member:
            while part := source.read(AT_ONCE):
                member.write(part)
    except zipfile.LargeZipFile as error:
        raise RefusedZip("would be larger than 4 GB") from error


def _compresses_too_well(path: Path, bounds: ZipBounds) -> bool:
    """Return True if a file compresses so well that a reader would take it for a ZIP bomb."""
    packer, packed = zlib.compressobj(wbits=-15), 0
    with path.open("rb") as source:
        while part := source.read(AT_ONCE):
            packed += len(packer.compress(part))
    packed += len(packer.flush())
    return path.stat().st_size > bounds.times * packed + bounds.slack
