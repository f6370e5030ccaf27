"""A folder as model hubs have it: ``config.json`` and one file of weights. Read here for timm and smp alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from medtest.errors import MedtestError

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
CONFIG = "config.json"


def description(folder: Path, *, key: str, library: str, most_bytes: int) -> dict[str, Any]:
    """Return a folder's description.

    Args:
        folder: The folder.
        key: The text in it that says whose it is.
        library: Whose it should be, for messages.
        most_bytes: How large the file may be.

    Raises:
        MedtestError: It is missing, cannot be read, or is another library's.
    """
    path = folder / CONFIG
    try:
        if path.stat().st_size > most_bytes:
            raise MedtestError(f"{CONFIG} is too large to be one")
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MedtestError(f"{folder.name} has no {CONFIG}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise MedtestError(f"{CONFIG} cannot be read: {str(error)[:200]}") from error
    if not isinstance(found, dict) or not isinstance(found.get(key), str):
        other = isinstance(found, dict) and "model_type" in found
        hint = "; it is one of transformers: model=huggingface" if other else ""
        raise MedtestError(f"{CONFIG} names no {key} of {library}{hint}")
    return found


def weights_in(folder: Path) -> Path:
    """Return a folder's file of weights.

    Raises:
        MedtestError: It holds none.
    """
    for name in WEIGHTS:
        if (folder / name).is_file():
            return folder / name
    raise MedtestError(f"{folder.name} holds no {' or '.join(WEIGHTS)}")
