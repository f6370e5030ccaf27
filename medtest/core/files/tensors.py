"""Weight files: safetensors in half precision or packed, with one header entry that describes the file.

``scripts/pack_weights.py`` packs the networks that ship: a large tensor is stored as signed integers and one step for
each of its rows. ``packed`` in the header states the number of bits and, for a network trained further, the file it
started from; the integers are then differences to that file's tensors. Small differences are one XZ stream, which is
smaller than a wheel's own compression. Networks compute in float32 in all cases.
"""

from __future__ import annotations

import json
import lzma
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from medtest.core.deferred import torch
from medtest.core.errors import MedtestError
from medtest.core.files import file_sha256
from medtest.core.files.paths import package_folder

if TYPE_CHECKING:
    from torch import Tensor

HEADER = "medtest"
PACKED = "packed"
STEP = "step:"
"""Prefix of a packed tensor's steps, float16 [rows]."""
STREAM = "stream"
"""Name of the XZ stream of all packed integers in the order of names, uint8 [bytes]; ``packed.shapes`` has shapes."""
LOW = "low:"
"""Prefix of the bits beyond the upper eight, uint8 [bits, ⌈numbers / 8⌉]: one row for each bit, the lowest first."""


_MOST_TIMES = 64
"""Largest size of a stream's integers, as a multiple of the stream."""


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that replaces the target atomically, flushed to disk, or not at all."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def write_tensors(path: Path, state: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors in half precision atomically; integers are not converted.

    Args:
        path: A .safetensors file.
        state: The tensors.
        facts: Description of the file, JSON values.
    """
    from safetensors.torch import save

    tensors = {
        name: (value.detach().to(torch.float16) if value.is_floating_point() else value.detach()).cpu().contiguous()
        for name, value in state.items()
    }
    # One entry: the library writes several in random order, and equal weights should give equal files.
    header = {HEADER: json.dumps(dict(facts), sort_keys=True)}
    with replacing(path) as file:
        file.write(save(tensors, metadata=header))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file in float32; integers are not converted.

    Raises:
        MedtestError: The packed tensors do not fit one another, or this version lacks the file they are based on.
    """
    from safetensors.torch import load_file

    stored = load_file(path)
    try:
        packing = facts_of(path).get(PACKED, {})
        if "shapes" in packing:
            stored |= _unpacked(stored.pop(STREAM), packing["shapes"])
        state = {
            name: value.to(torch.float32) if value.is_floating_point() else value
            for name, value in stored.items()
            if not name.startswith((STEP, LOW))
        }
        base = read_tensors(_base(path, packing)) if "base" in packing else {}
        for name in (key.removeprefix(STEP) for key in stored if key.startswith(STEP)):
            levels = stored[name].float()
            if LOW + name in stored:
                lower = _lower_bits(stored[LOW + name], packing["bits"] - 8, levels.numel())
                levels = levels * 2.0 ** (packing["bits"] - 8) + lower.reshape(levels.shape)
            steps = stored[STEP + name].float().reshape(-1, *[1] * (levels.ndim - 1))
            state[name] = levels * steps + base.get(name, 0.0)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RuntimeError, lzma.LZMAError) as error:
        raise MedtestError(f"{path.name}: its packed weights cannot be read: {str(error)[:200]}") from error
    return state


def _unpacked(stream: Tensor, shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    """Return the integers of an XZ stream, int8, by name.

    Raises:
        ValueError: The stream has another number of integers than the shapes, or too many for its size.
        lzma.LZMAError: The stream is damaged.
    """
    compressed = stream.numpy().tobytes()
    ordered = sorted(shapes.items())
    sizes = [math.prod(shape) for _, shape in ordered]
    if min(sizes, default=0) < 0 or sum(sizes) > _MOST_TIMES * len(compressed):
        raise ValueError(f"{sum(sizes):,} integers in a stream of {len(compressed):,} bytes")
    content = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(compressed, max_length=sum(sizes) + 1)
    if len(content) != sum(sizes):
        raise ValueError(f"{len(content):,} integers in place of {sum(sizes):,}")
    parts = torch.split(torch.from_numpy(np.frombuffer(content, np.int8).copy()), sizes)
    return {name: part.reshape(tuple(shape)) for (name, shape), part in zip(ordered, parts, strict=True)}


def _lower_bits(rows: Tensor, bits: int, count: int) -> Tensor:
    """Return the numbers from 0 to 2**bits - 1 whose bits are in ``rows``, float32 [count].

    Raises:
        ValueError: The rows have another shape.
        TypeError: They are not uint8.
    """
    if rows.shape != (bits, -(-count // 8)):
        raise ValueError(f"lower bits of shape {tuple(rows.shape)} for {count} numbers of {bits}")
    unpacked = np.unpackbits(rows.numpy(), axis=1, count=count)
    return torch.from_numpy((unpacked * 2 ** np.arange(bits)[:, None]).sum(axis=0).astype(np.float32))


def _base(path: Path, packing: Mapping[str, Any]) -> Path:
    base = package_folder() / "weights" / Path(packing["base"]).name
    if not base.is_file() or file_sha256(base) != packing["base_sha256"]:
        raise MedtestError(f"{path.name} holds differences to another version of {base.name} than this medtest has")
    return base


def facts_of(path: Path) -> Any:
    """Return a file's description without reading its tensors; empty if the file has none.

    Raises:
        MedtestError: The file does not have this form.
        ValueError, RecursionError: The entry is not JSON.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            header = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise MedtestError(f"{path.name}: not a safetensors file that can be read: {error}") from error
    return json.loads(header.get(HEADER, "{}"))


@contextmanager
def described(path: Path, form: str, foreign: str) -> Iterator[Any]:
    """Yield a file's description, and convert errors of its content to one message.

    Args:
        path: The file.
        form: Expected value of ``format``.
        foreign: Message for files of another format.

    Raises:
        MedtestError: The file has another format, or its description cannot be read.
    """
    try:
        facts = facts_of(path)
        if facts.get("format") != form:
            raise MedtestError(f"{path.name}: {foreign}")
        yield facts
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise MedtestError(f"{path.name}: its description cannot be read: {str(error)[:200]}") from error
