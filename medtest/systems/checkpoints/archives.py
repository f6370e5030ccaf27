"""Protection against files that would fill the memory, based on the sizes they declare before anything is unpacked.

Checkpoints of torch, TorchScript archives, arrays of NumPy and MONAI bundles are zip archives: a few kilobytes may
declare terabytes. An ONNX graph declares the sizes of its tensors and of constants that a runtime creates on loading.
Readers stop at the declared size, so it bounds the memory.
"""

from __future__ import annotations

import math
import mmap
import zipfile
from pathlib import Path
from typing import IO

from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.protobuf import Span, fields, varint

MOST_TIMES, SLACK = 20, 64 << 20
"""An archive may declare at most this many times its own size, plus slack: weights compress by a tenth at best."""
_DEEPEST = 8
_SIZES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 14: 8, 15: 16, 16: 2}
"""Bytes per value by number in ONNX's ``TensorProto.DataType``; other types are small."""


def check_archive(file: Path | IO[bytes], name: str = "") -> None:
    """Reject a zip archive that declares far more than it holds; any other file passes.

    Args:
        file: A path, or an open file, which is rewound.
        name: Name in messages; a path's own name by default.

    Raises:
        MedtestError: The archive declares too much.
    """
    try:
        if not zipfile.is_zipfile(file):
            return
        with zipfile.ZipFile(file) as archive:
            declared = sum(member.file_size for member in archive.infolist())
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return  # whoever reads the file reports the problem
    finally:
        if not isinstance(file, Path):
            file.seek(0)
    shown = name or (file.name if isinstance(file, Path) else "an archive")
    held = file.stat().st_size if isinstance(file, Path) else _size(file)
    _refuse_beyond(declared, held, shown)


def _size(file: IO[bytes]) -> int:
    file.seek(0, 2)
    size = file.tell()
    file.seek(0)
    return size


def _refuse_beyond(declared: int, held: int, name: str) -> None:
    if declared > MOST_TIMES * held + SLACK:
        raise MedtestError(
            f"{name}: declares {declared / 1e9:,.1f} GB in {held / 1e6:,.1f} MB. Weights cannot be compressed like"
            " that: it is damaged or malicious, and is not unpacked"
        )


# --- ONNX ---------------------------------------------------------------------------------------------------------


def check_graph(path: Path) -> None:
    """Reject an ONNX graph that declares far larger tensors than its files hold, or tensors outside its folder.

    Initializers, dense and sparse, values of ``Constant``, and results of ``ConstantOfShape`` and ``Expand`` with a
    shape in the graph are counted, because a runtime creates all of these on loading.

    Raises:
        MedtestError: The graph is rejected.
    """
    held = path.stat().st_size
    if held == 0:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        walk = _Graph(content, path)
        try:
            for number, span in fields(content, (0, held)):
                if number == 7 and isinstance(span, tuple):  # ModelProto.graph
                    walk.graph(span, 0)
        except (ValueError, RecursionError):
            return  # not an ONNX file: the runtime reports it
    _refuse_beyond(walk.declared, held + sum(walk.files.values()), path.name)


class _Graph:
    def __init__(self, content: mmap.mmap, path: Path) -> None:
        self.content, self.path = content, path
        self.declared = 0
        self.files: dict[str, int] = {}
        self.shapes: dict[bytes, tuple[int, ...]] = {}

    def graph(self, span: Span, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError("too deep")
        nodes = []
        for number, part in fields(self.content, span):
            if not isinstance(part, tuple):
                continue
            if number == 5:
                self.tensor(part)
            elif number == 15:
                self.sparse(part)
            elif number == 1:
                nodes.append(part)
        for node in nodes:
            self.node(node, depth)

    def node(self, span: Span, depth: int) -> None:
        inputs, outputs, kind = [], [], b""
        for number, part in fields(self.content, span):
            if not isinstance(part, tuple):
                continue
            if number == 1:
                inputs.append(self.content[slice(*part)])
            elif number == 2:
                outputs.append(self.content[slice(*part)])
            elif number == 4:
                kind = self.content[slice(*part)]
            elif number == 5:
                self.attribute(part, depth, outputs[0] if outputs else b"")
        place = {b"ConstantOfShape": 0, b"Expand": 1}.get(kind)
        if place is not None and place < len(inputs) and inputs[place] in self.shapes:
            self.declared += 4 * math.prod(max(0, side) for side in self.shapes[inputs[place]])

    def attribute(self, span: Span, depth: int, output: bytes) -> None:
        for number, part in fields(self.content, span):
            if not isinstance(part, tuple):
                continue
            if number in (5, 10):
                self.tensor(part, output)
            elif number in (6, 11):
                self.graph(part, depth + 1)
            elif number in (22, 23):
                self.sparse(part)

    def sparse(self, span: Span) -> None:
        dims = [part for number, part in fields(self.content, span) if number == 3]
        self.declared += 4 * math.prod(self.numbers(dims))

    def tensor(self, span: Span, output: bytes = b"") -> None:
        dims: list[int | Span] = []
        values: list[int | Span] = []
        name, raw, kind = output, None, 1
        for number, part in fields(self.content, span):
            if number == 1:
                dims.append(part)
            elif number == 2 and isinstance(part, int):
                kind = part
            elif number == 7:
                values.append(part)
            elif number == 8 and isinstance(part, tuple):
                name = output or self.content[slice(*part)]
            elif number == 9 and isinstance(part, tuple):
                raw = part
            elif number == 13 and isinstance(part, tuple):
                self.outside(part)
        sides = self.numbers(dims)
        self.declared += _SIZES.get(kind, 1) * math.prod(max(0, side) for side in sides)
        if kind == 7 and len(sides) == 1 and 0 < sides[0] <= _DEEPEST:
            if raw is not None:
                held = self.content[slice(*raw)]
                numbers = [int.from_bytes(held[at : at + 8], "little", signed=True) for at in range(0, len(held), 8)]
            else:
                numbers = self.numbers(values)
            self.shapes[name] = tuple(numbers)

    def outside(self, span: Span) -> None:
        """Count an external data file (``StringStringEntryProto`` of ``location``)."""
        entry = {number: part for number, part in fields(self.content, span) if isinstance(part, tuple)}
        if 1 not in entry or 2 not in entry or self.content[slice(*entry[1])] != b"location":
            return
        name = self.content[slice(*entry[2])].decode("utf-8", "replace")
        beside = self.path.parent / name
        if Path(name).is_absolute() or not beside.resolve().is_relative_to(self.path.parent.resolve()):
            raise MedtestError(f"{self.path.name}: its weights are in {name[:120]!r}, outside its folder")
        if not beside.is_file():
            raise MedtestError(f"{self.path.name}: its weights are in {name[:120]!r}, which is missing")
        self.files[name] = beside.stat().st_size

    def numbers(self, parts: list[int | Span]) -> list[int]:
        """Return repeated integers, packed or not."""
        numbers: list[int] = []
        for part in parts:
            if isinstance(part, int):
                numbers.append(part)
                continue
            at, end = part
            while at < end:
                value, at = varint(self.content, at)
                numbers.append(value)
        return [value - (1 << 64) if value >> 63 else value for value in numbers]
