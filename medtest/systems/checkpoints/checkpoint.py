"""Published checkpoints: safe reading, unwrapping, renaming and strict loading.

Checkpoints are untrusted: they are read with ``weights_only``, which accepts tensors and plain containers and runs no
code. Common wrappers and leftovers are removed; any other mismatch is listed, with the network that the weights
resemble.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from medtest.core.deferred import torch
from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.archives import check_archive

if TYPE_CHECKING:
    from torch import Tensor, nn

Entry = TypeVar("Entry")

WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "network")
"""Keys under which training scripts store the weights."""
PREFIXES = ("module.", "model.", "net.", "network.", "_orig_mod.")
"""Prefixes that DataParallel, wrapper classes and torch.compile add to every name."""
LEFTOVERS = ("total_ops", "total_params", "n_averaged")
"""Name suffixes left by the profiler thop and by torch's weight averaging."""
COUNTER = "num_batches_tracked"
"""Batch norm counters, absent from checkpoints older than PyTorch 0.4.1; they do not affect evaluation."""
SHOWN = 12
_DOTTED = re.compile(r"(\bdenselayer\d+\.(?:norm|relu|conv))\.([12])(?=\.)")
_POINTER = b"version https://git-lfs"
_PAGE = (b"<!doctype html", b"<html")
_DEEPEST = 4


class NeedsTrust(MedtestError):
    """Pickled checkpoint that holds more than tensors, so that reading it would run code."""


class CheckpointMismatch(MedtestError):
    """Checkpoint whose names or shapes differ from the network's."""


def read_state(path: Path) -> dict[str, Tensor]:
    """Read the weights of a checkpoint file (.pth, .pt, .tar, .safetensors, .npz), unwrapped and without prefixes.

    Raises:
        MedtestError: As :func:`read_weights`.
    """
    return without_prefixes(read_weights(path, name=path.name))


def read_weights(file: Path | IO[bytes], *, name: str) -> dict[str, Tensor]:
    """Return a file's weights, without a training script's wrappers and a profiler's leftovers.

    Args:
        file: A path, or an open file of torch's format.
        name: Name in messages.

    Raises:
        NeedsTrust: It needs more than ``weights_only`` allows; for a path, the message includes the conversion command.
        MedtestError: It cannot be read, or holds no weights.
    """
    if isinstance(file, Path) and (other := what_instead(file)):
        raise MedtestError(f"{name}: {other}")
    check_archive(file, name)
    suffix = file.suffix.lower() if isinstance(file, Path) else ""
    if isinstance(file, Path) and suffix == ".safetensors":
        return unwrapped(_read_safetensors(file), name)
    if isinstance(file, Path) and suffix == ".npz":
        from medtest.systems.checkpoints.tensorflow import read_arrays

        return unwrapped(read_arrays(file), name)
    import pickle

    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        trusted = ""
        if isinstance(file, Path):
            command = f"medtest weights convert {shlex.quote(str(file))} {shlex.quote(f'{file.stem}.safetensors')}"
            trusted = f", or, if you trust who made it, convert it once: {command}"
        raise NeedsTrust(
            f"{name}: holds more than tensors and plain containers, or is not a file of weights. medtest runs no code "
            f"of a checkpoint; save the network's state_dict() alone{trusted} ({str(error).splitlines()[0][:200]})"
        ) from error
    except Exception as error:
        raise MedtestError(f"{name}: not a file of weights that can be read: {str(error)[:300]}") from error
    return unwrapped(content, name)


def what_instead(path: Path) -> str:
    """Return a description of a file that servers deliver instead of a checkpoint, or ""."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if head.startswith(_POINTER):
        return "is a pointer of Git LFS, not the weights; git lfs pull, in that folder, fetches them"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_PAGE):
        return "is a web page, not the weights: the server asked for confirmation; download it in a browser"
    return ""


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        loaded: dict[str, Tensor] = load_file(path)
    except (OSError, SafetensorError, ValueError) as error:
        raise MedtestError(f"{path.name}: not a safetensors file that can be read: {error}") from error
    return loaded


def without_prefixes(state: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return a table without the prefixes shared by all its names."""
    plain = dict(state)
    while prefix := next((p for p in PREFIXES if all(name.startswith(p) for name in plain)), None):
        plain = {name.removeprefix(prefix): value for name, value in plain.items()}
    return plain


def unwrapped(content: Any, name: str) -> dict[str, Tensor]:
    """Return the weights in a file's content, under their original names.

    Args:
        content: Content of the file.
        name: Name of the file in messages.

    Raises:
        MedtestError: There are no weights, or some are not plain numbers.
    """
    state = entries_of(content, name, torch.Tensor)
    for key, value in state.items():
        if value.layout is not torch.strided or value.is_quantized or value.device.type != "cpu":
            raise MedtestError(
                f"{name}: {key[:80]} is not a plain array of numbers (sparse, quantised or without data)"
            )
    return state


def entries_of(content: Any, name: str, kind: type[Entry]) -> dict[str, Entry]:
    """Return the table of weights in a file's content, without wrappers and leftovers.

    Args:
        content: Content of the file.
        name: Name of the file in messages.
        kind: Type of a weight.

    Raises:
        MedtestError: There are none.
    """
    for _ in range(_DEEPEST):
        if not isinstance(content, Mapping):
            break
        inner = [content[key] for key in WRAPPERS if isinstance(content.get(key), Mapping)]
        if not inner:
            break
        content = inner[0]
    if not isinstance(content, Mapping):
        raise MedtestError(f"{name}: a table of weights is expected, {type(content).__name__} found")
    named = {str(key): value for key, value in content.items() if isinstance(value, kind)}
    entries = _renamed({key: value for key, value in named.items() if not key.endswith(LEFTOVERS)})
    if not entries:
        held = ", ".join(str(key)[:40] for key in list(content)[:SHOWN]) or "nothing"
        raise MedtestError(f"{name}: no weights were found in this file; it holds {held}")
    return entries


def _renamed(entries: dict[str, Entry]) -> dict[str, Entry]:
    """Convert names from before PyTorch 0.4 to current names.

    Module names could contain a dot then, as in torchvision's DenseNet (``denselayer1.norm.1.weight``).
    """
    renamed = {name: _DOTTED.sub(r"\1\2", name) for name in entries}
    if len(set(renamed.values())) < len(renamed):  # two names collide: dropping either weight would be silent
        return entries
    return {renamed[name]: value for name, value in entries.items()}


def draft_of(path: Path) -> Path:
    """Return the temporary name under which a file is written before it is moved into place."""
    return path.with_name(path.name + ".partial")


def write_state(path: Path, state: Mapping[str, Tensor]) -> None:
    """Write weights and nothing else, as .safetensors or .pth, atomically.

    Raises:
        MedtestError: They cannot be written, or are too large for this machine.
    """
    from safetensors.torch import save

    for name, value in state.items():
        held = value.untyped_storage().nbytes()
        if value.numel() * value.element_size() > max(held, 1):
            # A few bytes may claim to be an array of any size, which would fill memory and disk when written.
            claim = f"{name[:80]} claims {value.numel():,} numbers and holds {held:,} bytes"
            raise MedtestError(f"{path.name} was not written: {claim}")
    partial = draft_of(path)
    try:
        plain = {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}
        if path.suffix.lower() == ".safetensors":
            partial.write_bytes(save(plain))
        else:
            torch.save(plain, partial)
        partial.replace(path)
    except (OSError, MemoryError) as error:
        partial.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise MedtestError(f"{path.name} cannot be written: {reason}") from error


def load_strictly(network: nn.Module, state: Mapping[str, Tensor], *, name: str, file: str) -> nn.Module:
    """Load all weights of a checkpoint into a network and return it in evaluation mode.

    Args:
        network: The network.
        state: From :func:`read_state` or :func:`read_weights`.
        name: The network's name, for messages.
        file: The checkpoint's name, for messages.

    Raises:
        CheckpointMismatch: As :func:`fitting_state`.
    """
    network.load_state_dict(fitting_state(network, state, name=name, file=file))
    return network.eval()


def fitting_state(network: nn.Module, state: Mapping[str, Tensor], *, name: str, file: str) -> dict[str, Tensor]:
    """Return weights under a network's names and in its number types.

    Names may carry prefixes of DataParallel and wrapper classes, or lack a prefix of the network. Missing batch
    counters are tolerated; half-precision weights are converted to float32.

    Args:
        network: The network; it may be on torch's meta device.
        state: The weights.
        name: The network's name, for messages.
        file: The checkpoint's name, for messages.

    Raises:
        CheckpointMismatch: Names or shapes differ; both are listed, with the network that fits better.
    """
    expected = network.state_dict()
    state = fitting_names(state, expected)
    missing = [key for key in expected if key not in state and not key.endswith(COUNTER)]
    unexpected = [key for key in state if key not in expected and not key.endswith(COUNTER)]
    shapes = [
        f"{key}: {tuple(state[key].shape)} in the file, {tuple(expected[key].shape)} in the network"
        for key in expected
        if key in state and state[key].shape != expected[key].shape
    ]
    if missing or unexpected or shapes:
        raise CheckpointMismatch(_report(state, name, file, missing, unexpected, shapes))
    return {key: (state[key].to(value.dtype) if key in state else value) for key, value in expected.items()}


def fitting_names(state: Mapping[str, Entry], expected: Collection[str]) -> Mapping[str, Entry]:
    """Return weights with shared prefixes removed, or one added, to match the network's names.

    Args:
        state: The weights.
        expected: The network's names.
    """
    if not state or any(key in expected for key in state):
        return state
    plain = without_prefixes(state)
    fitting, own = max((sum(prefix + key in expected for key in plain), prefix) for prefix in ("", *PREFIXES))
    return {own + key: value for key, value in plain.items()} if fitting else state


def _report(
    state: Mapping[str, Tensor], name: str, file: str, missing: list[str], unexpected: list[str], shapes: list[str]
) -> str:
    lines = [f"{file}: these are not weights of {name}"]
    near = looks_like(state)
    if near is not None and near != name:
        lines.append(f"  this looks like {near}")
    for title, names in (("missing", missing), ("unexpected", unexpected), ("of another shape", shapes)):
        if names:
            lines.append(f"  {title} ({len(names)}): {', '.join(names[:SHOWN])}{', …' if len(names) > SHOWN else ''}")
    return "\n".join(lines)


@cache
def _published_shapes(name: str) -> dict[str, tuple[int, ...]]:

    from medtest.systems.pytorch import networks

    with torch.device("meta"):
        network = networks.published(name)
    state = without_prefixes(network.state_dict())  # a prefix may belong to the network, but the weights' names lack it
    return {key: tuple(value.shape) for key, value in state.items() if not key.endswith(COUNTER)}


def looks_like(state: Mapping[str, Tensor], *, share: float = 0.5) -> str | None:
    """Return the published network that shares most names and shapes with these weights, if the share is large enough.

    Args:
        state: From :func:`read_state`.
        share: Minimum share of names (Jaccard index of name and shape).
    """
    from medtest.systems.pytorch import networks

    plain = without_prefixes(state)
    shapes = {(key, tuple(value.shape)) for key, value in plain.items() if not key.endswith(COUNTER)}
    best, best_share = None, share
    for name in networks.PUBLISHED:
        published = set(_published_shapes(name).items())
        overlap = len(shapes & published) / len(shapes | published)
        if overlap >= best_share:
            best, best_share = name, overlap
    return best


def load_published(path: Path, names: tuple[str, ...]) -> tuple[str, nn.Module]:
    """Load a checkpoint into the matching one of several networks, and return its name and the network.

    Args:
        path: The checkpoint.
        names: Candidate published networks, most likely first; several if a family has sizes.

    Raises:
        MedtestError: It cannot be read or fits none of them.
    """
    from medtest.systems.pytorch import networks

    state = read_state(path)
    near = looks_like(state, share=0.3) if len(names) > 1 else None
    name = near if near in names else names[0]
    network = networks.published(name)
    return name, load_strictly(network, state, name=name, file=path.name)
