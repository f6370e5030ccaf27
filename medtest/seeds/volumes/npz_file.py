"""Arrays in untrusted .npz files: bounded before reading, one item at a time, never unpickled.

An .npz file is a ZIP archive of .npy files (NumPy's ``numpy.lib.format``). Items of a stored member are read in place.
A packed member can only be read from its start, so copies of the decompressor's state are kept at up to 512 positions
(some 40 kB each): item 20,000 of a gigabyte costs a few milliseconds, the item after the last one hardly anything, and
no worker holds the array.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.files.images import BadFileError, opened_file

MOST_MEMBERS = 64
MOST_ITEMS = 5_000_000
MOST_DIMENSIONS = 5
MOST_BYTES = 64 * 2**30
"""Largest member in unpacked bytes; the largest known set takes 14 GB."""

MOST_HEADER = 10_000
"""Largest .npy header in bytes; NumPy's own bound."""

MOST_TABLE = 256 * 2**20
"""Largest member in bytes that is read whole (labels)."""

_STEP = 512 * 2**10
"""Least number of unpacked bytes between two stored states of the decompressor."""

_MOST_STATES = 512

_CHUNK = 16 * 2**10
"""Packed bytes unpacked at once; deflate expands at most about a thousandfold, so to some 16 MB at most."""

_LOCAL_HEADER = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One array of the file.

    Attributes:
        name: Its name without ``.npy``.
        shape: Its shape.
        dtype: Its type: numbers or truth values.
        start: Offset of its data in the file, packed or not.
        packed: Whether the data are packed (deflate).
        packed_size: Size of the data in the file, in bytes.
        header: Unpacked bytes before the first item.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int
    packed: bool
    packed_size: int
    header: int

    @property
    def item_bytes(self) -> int:
        """Bytes of one item along the first axis."""
        return prod(self.shape[1:]) * self.dtype.itemsize


def npz_members(path: Path) -> dict[str, Member]:
    """Return the arrays of an .npz file by name, read from headers only.

    Raises:
        BadFileError: The file is no .npz file, is damaged, or holds other things than plain arrays.
    """
    try:
        with opened_file(path) as (file, _), zipfile.ZipFile(file) as archive:
            listed = archive.infolist()
            if len(listed) > MOST_MEMBERS:
                raise BadFileError(f"holds {len(listed)} arrays; at most {MOST_MEMBERS} are read")
            members = [_member(archive, file, info) for info in listed if info.filename.endswith(".npy")]
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise BadFileError("is no .npz file that can be read, or is damaged") from error
    if not members:
        raise BadFileError("holds no arrays")
    if len({member.name for member in members}) < len(members):
        raise BadFileError("holds two arrays of one name")
    return {member.name: member for member in members}


def _member(archive: zipfile.ZipFile, file: IO[bytes], info: zipfile.ZipInfo) -> Member:
    name = info.filename.removesuffix(".npy")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
        raise BadFileError(f"packs {name} in a way that is not read (stored and deflate are)")
    with archive.open(info) as packed:
        shape, fortran, dtype = _header(packed)
        header = packed.tell()
    if dtype.hasobject or dtype.kind not in "biuf":
        raise BadFileError(f"holds {name} as {dtype}; plain numbers are read, pickled objects never")
    if fortran and len(shape) > 1:
        raise BadFileError(f"holds {name} column by column (Fortran order); save it in C order")
    if not 1 <= len(shape) <= MOST_DIMENSIONS or shape[0] > MOST_ITEMS or min(shape) < 0:
        raise BadFileError(f"holds {name} of shape {shape}, which is not a list of images or labels")
    if prod(shape) * dtype.itemsize > MOST_BYTES:
        raise BadFileError(f"holds {name} of shape {shape}, more than {MOST_BYTES / 2**30:.0f} GiB")
    if header + prod(shape) * dtype.itemsize != info.file_size:
        raise BadFileError(f"holds {name} of shape {shape}, but {info.file_size:,} bytes of it")
    file.seek(info.header_offset)
    local = file.read(_LOCAL_HEADER)
    if len(local) < _LOCAL_HEADER or local[:4] != b"PK\x03\x04":
        raise BadFileError("is damaged")
    names, extra = struct.unpack("<HH", local[26:30])
    return Member(
        name=name,
        shape=shape,
        dtype=dtype,
        start=info.header_offset + _LOCAL_HEADER + names + extra,
        packed=info.compress_type == zipfile.ZIP_DEFLATED,
        packed_size=info.compress_size,
        header=header,
    )


def _header(packed: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(packed)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(packed, max_header_size=MOST_HEADER)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(packed, max_header_size=MOST_HEADER)
    raise BadFileError(f"holds an array of format {version[0]}.{version[1]}; 1.0 and 2.0 are read")


def read_whole(path: Path, member: Member) -> NDArray[Any]:
    """Return a small array, verified against the archive's checksum.

    Raises:
        BadFileError: The array is larger than ``MOST_TABLE`` or damaged.
    """
    size = prod(member.shape) * member.dtype.itemsize
    if size > MOST_TABLE:
        raise BadFileError(f"holds {size / 1e6:,.0f} MB of {member.name}; at most {MOST_TABLE / 1e6:.0f} MB are read")
    content = b"".join(_blocks(path, member, max(1, size)))
    return np.frombuffer(content, member.dtype).reshape(member.shape)


def item_digests(path: Path, member: Member) -> Iterator[str]:
    """Yield the SHA-256 of every item in order, reading the member once and holding one item at a time.

    Raises:
        BadFileError: The member is damaged or its checksum does not fit.
    """
    for block in _blocks(path, member, max(1, member.item_bytes)):
        yield hashlib.sha256(block).hexdigest()


def _blocks(path: Path, member: Member, size: int) -> Iterator[bytes]:
    """Yield the member's data in blocks of ``size`` bytes; raise an error for an incomplete one."""
    total = prod(member.shape) * member.dtype.itemsize
    early = f"is damaged ({member.name} ends early)"
    try:
        with (
            opened_file(path) as (file, _),
            zipfile.ZipFile(file) as archive,
            archive.open(f"{member.name}.npy") as packed,
        ):
            if len(packed.read(member.header)) < member.header:
                raise BadFileError(early)
            for _ in range(total // size):
                block = packed.read(size)
                if len(block) < size:
                    raise BadFileError(early)
                yield block
            packed.read(1)  # reading to the end verifies the checksum
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError) as error:
        raise BadFileError(f"is damaged ({member.name} does not fit its checksum)") from error


class Items:
    """Random access to items of one member; thread-safe.

    Args:
        path: The .npz file.
        member: One of its members.
    """

    def __init__(self, path: Path, member: Member) -> None:
        self.path, self.member = path, member
        self._lock = threading.Lock()
        # Unpacked bytes so far, packed bytes so far, decompressor state at that point.
        self._states: list[tuple[int, int, Any]] = [(0, 0, zlib.decompressobj(-zlib.MAX_WBITS))]
        self._last = self._initial_state()
        self._step = max(_STEP, member.shape[0] * member.item_bytes // _MOST_STATES)

    def read(self, index: int) -> NDArray[Any]:
        """Return item ``index`` of the first axis, of the member's dtype.

        Raises:
            BadFileError: The file is damaged.
            IndexError: There is no such item.
        """
        if not 0 <= index < self.member.shape[0]:
            raise IndexError(index)
        size = self.member.item_bytes
        start = self.member.header + index * size
        with opened_file(self.path) as (file, _):
            if self.member.packed:
                with self._lock:
                    content = self._unpacked(file, start, size)
            else:
                file.seek(self.member.start + start)
                content = file.read(size)
        if len(content) < size:
            raise BadFileError(f"is damaged ({self.member.name} ends early)")
        return np.frombuffer(content, self.member.dtype).reshape(self.member.shape[1:])

    @staticmethod
    def _initial_state() -> tuple[int, int, Any, bytes]:
        """Return the initial read state (as a stored state, plus the last unpacked piece)."""
        return 0, 0, zlib.decompressobj(-zlib.MAX_WBITS), b""

    def _unpacked(self, file: IO[bytes], start: int, size: int) -> bytes:
        """Unpack from the last read position or the nearest state before ``start``, storing further states."""
        out, done, state, piece = self._last
        self._last = self._initial_state()  # an error below would invalidate the read state
        at = bisect_right(self._states, start, key=lambda state_entry: state_entry[0]) - 1
        pieces: list[bytes] = []
        if out - len(piece) <= start and self._states[at][0] <= out:
            pieces.append(piece[max(0, start - out + len(piece)) :][:size])
        else:
            out, done, state = self._states[at]
            state, piece = state.copy(), b""
        file.seek(self.member.start + done)
        while out < start + size:
            packed = file.read(min(_CHUNK, self.member.packed_size - done))
            if not packed:
                break
            try:
                piece = state.decompress(packed)
            except zlib.error as error:
                raise BadFileError(f"is damaged ({self.member.name} cannot be unpacked)") from error
            done += len(packed)
            if out + len(piece) > start:
                pieces.append(piece[max(0, start - out) : max(0, start + size - out)])
            out += len(piece)
            if out >= self._states[-1][0] + self._step:
                self._states.append((out, done, state.copy()))
        self._last = (out, done, state, piece)
        return b"".join(pieces)


def items_of(path: Path, name: str) -> Items:
    """Return the items of a member, cached until the file changes.

    Raises:
        BadFileError: The file cannot be read, or has no such member.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise BadFileError("is not there any more") from error
    return _items(path, name, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _items(path: Path, name: str, _size: int, _changed: int) -> Items:
    members = npz_members(path)
    if name not in members:
        raise BadFileError(f"has no array {name}")
    return Items(path, members[name])
