"""Weights of ours on disk: safetensors in half precision; one entry of the header says what the file is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from medtest.core.errors import MedtestError

if TYPE_CHECKING:
    from torch import Tensor

HEADER = "medtest"


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes its place whole, flushed to the disk, or not at all."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def write_tensors(path: Path, state: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors in half precision (whole numbers as they are), atomically.

    Args:
        path: A .safetensors file.
        state: The tensors.
        facts: What the file says of itself, JSON values.
    """
    import torch
    from safetensors.torch import save

    kept = {
        name: (value.detach().to(torch.float16) if value.is_floating_point() else value.detach()).cpu().contiguous()
        for name, value in state.items()
    }
    # One entry: the library writes several in an order of chance, and equal weights should be equal files.
    header = {HEADER: json.dumps(dict(facts), sort_keys=True)}
    with replacing(path) as file:
        file.write(save(kept, metadata=header))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file, in float32 (whole numbers as they are)."""
    import torch
    from safetensors.torch import load_file

    return {name: v.to(torch.float32) if v.is_floating_point() else v for name, v in load_file(path).items()}


def facts_of(path: Path) -> Any:
    """Return what a file says of itself, without its tensors: an object, or an empty one where it says nothing.

    Raises:
        MedtestError: It is no file of this form.
        ValueError, RecursionError: The entry is no JSON.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            header = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise MedtestError(f"{path.name}: not a safetensors file that can be read: {error}") from error
    return json.loads(header.get(HEADER, "{}"))
