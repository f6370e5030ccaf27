"""Folders written by transformers' ``save_pretrained``, read without the hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medtest.core.errors import MedtestError
from medtest.systems.adapters.libraries.hub_folder import read_json

WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""Weights files, in transformers' search order."""
PROCESSORS = ("preprocessor_config.json", "processor_config.json")


def config_of(folder: Path) -> dict[str, Any]:
    """Return the content of ``config.json``.

    Raises:
        MedtestError: It cannot be read, or is not from transformers.
    """
    config = read_json(folder / "config.json")
    if not isinstance(config.get("model_type"), str):
        raise MedtestError("config.json names no model_type: it is not one of transformers")
    return config


def weights_of(folder: Path) -> list[Path]:
    """Return the weights files; for an index, its shards."""
    name = next((name for name in WEIGHTS if (folder / name).is_file()), None)
    if name is None:
        return []
    if not name.endswith(".index.json"):
        return [folder / name]
    try:
        shards = read_json(folder / name)["weight_map"].values()
        return [folder / Path(str(shard)).name for shard in sorted(set(shards))]
    except (MedtestError, KeyError, AttributeError, TypeError):
        return []


@contextmanager
def offline() -> Iterator[None]:
    """Prevent transformers, and timm below it, from using the hub and from showing progress bars."""
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
    """Disable downloads of a backbone's own weights, because all weights come from the folder."""
    if getattr(config, "use_pretrained_backbone", False):
        config.use_pretrained_backbone = False
    inner = getattr(config, "backbone_config", None)
    if inner is not None:
        leave_backbones_empty(inner)
