"""TensorFlow 1 weights, saved by their owner as arrays in an .npz file, converted to PyTorch's names and axis order.

Owners of a ``tf.train.Saver`` checkpoint also have TensorFlow, and two lines export its arrays under their names
(``tf.train.load_checkpoint(PATH)`` reads, ``numpy.savez`` writes). Reading them here needs no TensorFlow; arrays of
objects, which would run code, are rejected.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import torch
from medtest.core.errors import MedtestError

if TYPE_CHECKING:
    from torch import Tensor

MOST_BYTES = 4 << 30
"""Limit on the total size of a file's arrays."""
SLOTS = ("/Momentum",)
"""Name suffixes of an optimizer's state."""
_NORM = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}


def read_arrays(path: Path) -> dict[str, Tensor]:
    """Return the weights of an .npz file in PyTorch's names and axis order, without optimizer state.

    Raises:
        MedtestError: It cannot be read, or holds anything but plain numbers.
    """
    try:
        arrays = _arrays(path)
    except MedtestError:
        raise
    except Exception as error:
        raise MedtestError(f"{path.name}: not an .npz file that can be read: {str(error)[:300]}") from error
    return {name_of(name): torch.from_numpy(_ordered(name, value)) for name, value in arrays.items()}


def name_of(name: str) -> str:
    """Return PyTorch's name of a TensorFlow variable: dots for slashes, ``weight`` for a kernel, and so on."""
    scope, _, leaf = name.rpartition("/")
    if scope.endswith("BatchNorm"):
        leaf = _NORM.get(leaf, leaf)
    elif leaf == "kernel":
        leaf = "weight"
    return f"{scope}/{leaf}".lstrip("/").replace("/", ".")


def _ordered(name: str, value: NDArray[Any]) -> NDArray[Any]:
    """Transpose a kernel, height × width × inputs × outputs, to PyTorch's order, outputs first; leave others alone."""
    if name.endswith("/kernel") and value.ndim == 4:
        value = value.transpose(3, 2, 0, 1)
    return np.ascontiguousarray(value)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > MOST_BYTES:
            raise MedtestError(f"{path.name}: its arrays are larger than {MOST_BYTES >> 30} GB together")
        for member in members:
            name = member.filename.removesuffix(".npy").removesuffix(":0")
            if name.endswith(SLOTS):
                continue
            with archive.open(member) as file:
                try:
                    arrays[name] = read_array(file, member.file_size)
                except ValueError as error:
                    raise MedtestError(f"{path.name}: {name[:80]}: {error}") from error
    if not arrays:
        raise MedtestError(f"{path.name}: no weights were found in this file")
    return arrays


def read_array(file: IO[bytes], most_bytes: int) -> NDArray[Any]:
    """Return an array of NumPy's format after checking its header, because that may claim any size.

    Raises:
        ValueError: It holds anything but plain numbers, claims more than ``most_bytes``, or is cut short.
    """
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, columns_first, dtype = read(file)
    if dtype.kind not in "fiu":
        raise ValueError(f"no plain array of numbers ({dtype})")
    claimed = math.prod(shape) * dtype.itemsize
    if claimed > most_bytes:
        raise ValueError(f"claims {claimed:,} bytes; at most {most_bytes:,} are possible")
    values = np.frombuffer(file.read(claimed), dtype=dtype)
    return values.astype(dtype.newbyteorder("=")).reshape(shape, order="F" if columns_first else "C")
