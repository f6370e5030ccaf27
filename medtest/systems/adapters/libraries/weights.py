"""Weights of untrusted networks: strict loading, and folders of model hubs (``config.json`` and one weights file)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.cases import Json
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.systems.checkpoints.checkpoint import fitting_state, load_strictly, what_instead
from medtest.systems.files import cached_sha256, folder_mistakes, user_path

if TYPE_CHECKING:
    from torch import Tensor, nn


def pointer_mistakes(path: Path, *, where: str, key: str) -> list[Mistake]:
    """Return a mistake if a file is not weights but a Git LFS pointer or a server's web page."""
    other = what_instead(path)
    return [Mistake(where=where, key=key, found=f"{path.name} {other}")] if other else []


def fill(build: Callable[[], nn.Module], state: Mapping[str, Tensor], *, name: str, file: str) -> nn.Module:
    """Build a network and load all its weights, in evaluation mode.

    The network is first built on torch's meta device, where it takes no memory, so that a description that does not
    match the weights is rejected before it allocates more memory than they need.

    Args:
        build: Creates the network.
        state: Its weights.
        name: Name of the network in messages.
        file: Name of the file in messages.

    Raises:
        MedtestError: The description cannot be built.
        CheckpointMismatch: Names or shapes differ; both are listed.
    """
    with torch.device("meta"):
        fitting_state(_built(build, name), state, name=name, file=file)
    return load_strictly(_built(build, name), state, name=name, file=file)


def _built(build: Callable[[], nn.Module], name: str) -> nn.Module:
    try:
        return build()
    except MedtestError:
        raise
    except Exception as error:
        raise MedtestError(f"{name} cannot be built: {type(error).__name__}: {str(error)[:300]}") from error


WEIGHTS = ("model.safetensors", "pytorch_model.bin")
CONFIG = "config.json"
MOST_BYTES = 8 << 20


def description(folder: Path, *, key: str, library: str, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """Return a folder's description.

    Args:
        folder: The folder.
        key: The entry that identifies the library.
        library: Expected library, for messages.
        most_bytes: Size limit of the file.

    Raises:
        MedtestError: It is missing, cannot be read, or is another library's.
    """
    config = read_json(folder / CONFIG, most_bytes=most_bytes)
    if not isinstance(config.get(key), str):
        hint = "; it is one of transformers: model=huggingface" if "model_type" in config else ""
        raise MedtestError(f"{CONFIG} names no {key} of {library}{hint}")
    return config


def read_json(path: Path, *, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """Return the object in a JSON file, or an empty one if it holds something else.

    Raises:
        MedtestError: It is missing, too large, or cannot be read.
    """
    try:
        if path.stat().st_size > most_bytes:
            raise MedtestError(f"{path.name} is too large to be one")
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MedtestError(f"{path.parent.name} has no {path.name}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise MedtestError(f"{path.name} cannot be read: {str(error)[:200]}") from error
    return content if isinstance(content, dict) else {}


def weights_in(folder: Path) -> Path:
    """Return a folder's weights file.

    Raises:
        MedtestError: There is none.
    """
    for name in WEIGHTS:
        if (folder / name).is_file():
            return folder / name
    raise MedtestError(f"{folder.name} holds no {' or '.join(WEIGHTS)}")


def hub_mistakes(typed: str, *, where: str, describe: Callable[[Path], object], allowed: str) -> list[Mistake]:
    """Return the problems of a folder that the user named in the setting ``path``.

    Args:
        typed: The folder.
        where: The system, for messages.
        describe: Reads the folder's description.
        allowed: Description of a valid folder.
    """
    if mistakes := folder_mistakes(typed, where=where, key="path"):
        return mistakes
    folder = user_path(typed)
    try:
        describe(folder)
        weights = weights_in(folder)
    except MedtestError as error:
        return [Mistake(where=where, key="path", found=str(error), allowed=allowed)]
    return pointer_mistakes(weights, where=where, key="path")


def hub_fingerprint(path: str, checkpoint: str) -> dict[str, Json]:
    """Return the SHA-256 of weights and description of a folder, or of the checkpoint used without one."""
    if not path:
        return {"weights_sha256": cached_sha256(user_path(checkpoint))}
    folder = user_path(path)
    return {"weights_sha256": cached_sha256(weights_in(folder)), "config_sha256": cached_sha256(folder / CONFIG)}
