"""Names of a checkpoint's tensors, read without torch and without running code of the file.

The parent process identifies a checkpoint's network before any worker loads it, and must not import torch. A file of
``torch.save`` is a pickle next to its numbers; here the pickle is read with every class replaced by an inert one, so
that names are obtained but no code ever runs.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.archives import check_archive
from medtest.systems.checkpoints.checkpoint import COUNTER, entries_of, without_prefixes

MOST_BYTES = 64 << 20
"""Size limit of a zip's pickle, which holds names and shapes only: ten thousand of them take a megabyte."""
_FIRST_OF_OLD = 4
"""Files older than PyTorch 1.6 are consecutive pickles: magic number, version, machine, then the table."""


class _Tensor:
    """Placeholder of a tensor."""


class _Nothing:
    """Placeholder of an object of any other class; ignores everything that unpickling passes to it."""

    def __new__(cls, *_: Any, **__: Any) -> _Nothing:
        return super().__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        """Ignore the arguments."""

    def __setstate__(self, _: Any) -> None:
        """Ignore the state."""

    def __setitem__(self, _: Any, __: Any) -> None:
        """Ignore the item."""

    def __call__(self, *_: Any, **__: Any) -> _Nothing:
        """Return itself as the result of any call."""
        return self

    def append(self, _: Any) -> None:
        """Ignore the item."""

    extend = add = update = append


def _tensor(*_: Any) -> _Tensor:
    return _Tensor()


class _NamesAlone(pickle._Unpickler):
    # The Python implementation, because in the C one a few bytes may request a memo of many gigabytes.
    def find_class(self, module: str, name: str) -> Any:
        if module == "collections" and name == "OrderedDict":
            return dict
        return _tensor if module == "torch._utils" and name.startswith("_rebuild_") else _Nothing

    def persistent_load(self, _: Any) -> None:
        return None


def names_in(path: Path) -> frozenset[str]:
    """Return the names of a checkpoint's weights, without wrappers, prefixes, leftovers and batch counters.

    Args:
        path: A file of ``torch.save`` or a ``.safetensors`` file.

    Raises:
        MedtestError: It cannot be read, or holds no weights.
    """
    check_archive(path)
    try:
        table = _named(path)
    except Exception as error:
        raise MedtestError(f"{path.name}: not a checkpoint that can be read: {str(error)[:200]}") from error
    names = without_prefixes(entries_of(table, path.name, _Tensor))
    return frozenset(name for name in names if not name.endswith(COUNTER))


def _named(path: Path) -> Mapping[Any, Any]:
    if path.suffix.lower() == ".safetensors":
        from safetensors import safe_open

        with safe_open(path, framework="np") as file:
            return dict.fromkeys(file.keys(), _Tensor())
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            file.seek(0)
            return _mapping([_NamesAlone(file).load() for _ in range(_FIRST_OF_OLD)][-1])
    with zipfile.ZipFile(path) as archive:
        member = next(info for info in archive.infolist() if info.filename.endswith("/data.pkl"))
        if member.file_size > MOST_BYTES:
            raise ValueError("its table of names is too large")
        opened: IO[bytes]
        with archive.open(member) as opened:
            return _mapping(_NamesAlone(opened).load())


def _mapping(value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("it holds no table of weights")
    return value
