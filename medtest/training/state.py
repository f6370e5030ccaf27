"""The state of a training on disk: what it resumes from, whole or absent, read without running anything of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from medtest.errors import MedtestError


def write_state(state: Mapping[str, Any], path: Path) -> None:
    """Write a state: beside its file, flushed, then renamed into place.

    Args:
        state: Tensors and plain values, as ``weights_only`` loading takes them.
        path: The state's file.

    Raises:
        OSError: The disk is full, the folder cannot be written, and the like.
    """
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        torch.save(dict(state), file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def load_state(path: Path, *, device: str, mapped: bool = False) -> dict[str, Any]:
    """Return what :func:`write_state` wrote; whose training it is, the caller compares.

    Args:
        path: The state's file.
        device: Where its tensors go.
        mapped: Leave the tensors on disk.

    Raises:
        MedtestError: It cannot be read, or does not say to which training it belongs.
    """
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True, mmap=mapped)
        state["identity"]
    except Exception as error:  # noqa: BLE001 - what a torn file makes of torch's reader is anyone's guess
        raise MedtestError(f"{path.name}: the state of this training cannot be read: {error}") from error
    return state
