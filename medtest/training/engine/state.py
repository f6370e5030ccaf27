"""State of a training on disk for resuming: complete or absent, read without running code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from medtest.core.errors import MedtestError
from medtest.core.files import json_sha256
from medtest.core.files.tensors import replacing

FORMAT = 2
"""Format of a state; increased when its content changes."""


def write_state(state: Mapping[str, Any], path: Path) -> None:
    """Write a state to a temporary file, flush it, and rename it into place.

    Args:
        state: Tensors and plain values that ``weights_only`` loading accepts.
        path: The state's file.

    Raises:
        OSError: The disk is full, the folder cannot be written, and the like.
    """
    with replacing(path) as file:
        torch.save({**state, "format": FORMAT}, file)


def load_state(path: Path, *, device: str, identity: Mapping[str, Any], mapped: bool = False) -> dict[str, Any]:
    """Return the state written by :func:`write_state`.

    Args:
        path: The state's file.
        device: Device of its tensors.
        identity: What must be the same; JSON values.
        mapped: Whether to leave the tensors on disk.

    Raises:
        MedtestError: It cannot be read, is of another version, or belongs to a training with other options, weights or
            data.
    """
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True, mmap=mapped)
        stored = state["identity"]
    except Exception as error:
        raise MedtestError(f"{path.name}: the state of this training cannot be read: {error}") from error
    if state.get("format") != FORMAT:
        raise MedtestError(
            f"{path.name}: another version of medtest started this training. Finish it with that version, or "
            f"start again in another out=; from= accepts the weights beside {path.name}"
        )
    if stored != json_sha256(identity):
        raise MedtestError(
            f"{path.name} belongs to a training with another recipe, other options, other weights or other data: "
            "choose another out=, or start again there (fresh=true)"
        )
    return state
