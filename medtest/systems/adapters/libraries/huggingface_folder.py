"""A folder that transformers' ``save_pretrained`` wrote: what is in it, and how it is read without the hub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medtest.errors import MedtestError

WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""Looked for in this order, as transformers does."""
PROCESSORS = ("preprocessor_config.json", "processor_config.json")
MOST_BYTES = 8 << 20


def config_of(folder: Path) -> dict[str, Any]:
    """Return what ``config.json`` says.

    Raises:
        MedtestError: It cannot be read, or is none of transformers.
    """
    found = read_json(folder / "config.json")
    if not isinstance(found.get("model_type"), str):
        raise MedtestError("config.json names no model_type: it is not one of transformers")
    return found


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that a file of a folder holds.

    Raises:
        MedtestError: It is not there, too large, or holds something else.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise MedtestError(f"{path.name} is too large to be one")
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MedtestError(f"{path.parent.name} has no {path.name}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise MedtestError(f"{path.name} cannot be read: {str(error)[:200]}") from error
    return found if isinstance(found, dict) else {}


def weights_of(folder: Path) -> list[Path]:
    """Return the files that hold the weights, an index's shards in its place."""
    name = next((name for name in WEIGHTS if (folder / name).is_file()), None)
    if name is None:
        return []
    if not name.endswith(".index.json"):
        return [folder / name]
    try:
        if (folder / name).stat().st_size > MOST_BYTES:
            return []
        shards = json.loads((folder / name).read_text(encoding="utf-8"))["weight_map"].values()
        return [folder / Path(str(shard)).name for shard in sorted(set(shards))]
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return []


@contextmanager
def offline() -> Iterator[None]:
    """Keep transformers, and timm below it, from the hub and from drawing progress bars."""
    import transformers
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    log: Any = transformers.utils.logging
    log.disable_progress_bar()
    verbosity = log.get_verbosity()
    log.set_verbosity_error()
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        log.set_verbosity(verbosity)


def leave_backbones_empty(config: Any) -> None:
    """Say that no backbone fetches weights of its own: all weights come from the folder."""
    if getattr(config, "use_pretrained_backbone", False):
        config.use_pretrained_backbone = False
    inner = getattr(config, "backbone_config", None)
    if inner is not None:
        leave_backbones_empty(inner)
