"""Folders written by transformers' ``save_pretrained``, read without the hub."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from medtest.core.errors import MedtestError, Mistake
from medtest.systems.adapters.libraries.weights import pointer_mistakes, read_json
from medtest.systems.files import folder_mistakes, user_path

WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""Weights files, in transformers' search order."""
PROCESSORS = ("preprocessor_config.json", "processor_config.json")
LOCAL: Final[dict[str, Any]] = {"local_files_only": True, "trust_remote_code": False}
"""Arguments with which transformers downloads nothing and runs no code of a folder."""


def checkpoint_mistakes(
    typed: str, *, where: str, allowed: str, families: Collection[str] = (), pickles: bool = False
) -> list[Mistake]:
    """Return the problems of a folder of transformers: missing files, custom code, unsupported networks or weights.

    Args:
        typed: The folder as the user named it, in the setting ``path``.
        where: Name of the part, for messages.
        allowed: Description of a valid folder.
        families: Supported values of ``model_type``; empty for any.
        pickles: Whether weights may be pickled (they are then read with ``weights_only``).
    """
    if mistakes := folder_mistakes(typed, where=where, key="path"):
        if typed.count("/") == 1 and not typed.startswith((".", "~", "/")):
            fix = f"medtest downloads nothing: run `hf download {typed} --local-dir DIR`, then set path=DIR"
            problem = f"{typed} looks like a name on the hub"
            mistakes.append(Mistake(where=where, key="path", found=problem, fix=fix))
        return mistakes
    folder, fix = user_path(typed), ""
    try:
        config = config_of(folder)
    except MedtestError as error:
        return [Mistake(where=where, key="path", found=str(error), allowed=allowed)]
    files = weights_of(folder)
    missing = [path.name for path in files if not path.is_file()]
    if _has_code(config):
        problem = "a network with its own code in the folder (auto_map in config.json), which medtest does not run"
        fix = "model=callable runs your own code"
    elif families and config["model_type"] not in families:
        problem, allowed = f"model_type {config['model_type']}", ", ".join(families)
    elif missing:
        problem = f"{missing[0]} is missing"
    elif not files:
        problem = f"{folder.name} holds no weights"
    elif not pickles and any(path.suffix != ".safetensors" for path in files):
        problem, fix = "weights that are not safetensors", "save the network again with safe_serialization=True"
    else:
        return [mistake for path in files for mistake in pointer_mistakes(path, where=where, key="path")]
    return [Mistake(where=where, key="path", found=problem, allowed=allowed, fix=fix)]


def _has_code(config: Any) -> bool:
    if isinstance(config, dict):
        return "auto_map" in config or any(_has_code(value) for value in config.values())
    return False


def load_processor(maker: Any, folder: Path) -> Any:
    """Return the processor in a folder.

    Raises:
        MedtestError: transformers cannot create it.
    """
    try:
        with offline():
            return maker.from_pretrained(folder, **LOCAL)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip()[:300]}"
        raise MedtestError(f"{folder.name}: its processor cannot be loaded: {reason}") from error


def load_network(maker: Any, folder: Path, *, purpose: str, **options: Any) -> Any:
    """Return the network in a folder with all its weights.

    Args:
        maker: The class of transformers that creates it.
        folder: The folder.
        purpose: The network's purpose, for messages.
        options: Further arguments of ``from_pretrained``.

    Raises:
        MedtestError: transformers cannot create it, or weights are missing.
    """
    import transformers

    try:
        with offline():
            config = transformers.AutoConfig.from_pretrained(folder, **LOCAL)
            _leave_backbones_empty(config)
            network, report = maker.from_pretrained(folder, config=config, output_loading_info=True, **LOCAL, **options)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip()[:400]}"
        raise MedtestError(
            f"{folder.name}: transformers cannot make a network for {purpose} of this folder: {reason}"
        ) from error
    absent = sorted(str(name) for name in [*report["missing_keys"], *report["mismatched_keys"]])
    if absent:
        raise MedtestError(
            f"{folder.name}: {len(absent)} weights of {type(network).__name__} are not in the folder or have another "
            f"shape ({', '.join(absent[:6])}{', …' if len(absent) > 6 else ''}); they would be drawn at random. Was "
            f"this network trained for {purpose}?"
        )
    return network


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


def _leave_backbones_empty(config: Any) -> None:
    """Disable downloads of a backbone's own weights, because all weights come from the folder."""
    if getattr(config, "use_pretrained_backbone", False):
        config.use_pretrained_backbone = False
    inner = getattr(config, "backbone_config", None)
    if inner is not None:
        _leave_backbones_empty(inner)
