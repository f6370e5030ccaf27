"""Published checkpoints as people have them: read safely, unwrapped, renamed, and loaded strictly.

A checkpoint comes from a stranger: it is read with ``weights_only``, which takes tensors and plain containers and runs
no code of the file. Wrappers and leftovers that are known in the wild are taken off; anything else that does not fit is
listed, with the network it looks like.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.archives import check_archive

if TYPE_CHECKING:
    from torch import Tensor, nn

Entry = TypeVar("Entry")

WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "network")
"""Keys under which training scripts put the weights."""
PREFIXES = ("module.", "model.", "net.", "network.", "_orig_mod.")
"""Prefixes that DataParallel, wrapper classes and torch.compile leave on every name."""
LEFTOVERS = ("total_ops", "total_params", "n_averaged")
"""Ends of the names that the profiler thop and torch's averaging of weights leave behind."""
COUNTER = "num_batches_tracked"
"""Counters of batch norms, absent from checkpoints older than PyTorch 0.4.1; they do not affect evaluation."""
SHOWN = 12
_DOTTED = re.compile(r"(\bdenselayer\d+\.(?:norm|relu|conv))\.([12])(?=\.)")
_POINTER = b"version https://git-lfs"
_PAGE = (b"<!doctype html", b"<html")
_DEEPEST = 4


class NeedsTrust(MedtestError):
    """A checkpoint is a pickle that holds more than tensors: reading it would run code."""


class CheckpointMismatch(MedtestError):
    """A checkpoint's names or shapes are not those of the network."""


def read_state(path: Path) -> dict[str, Tensor]:
    """Read the weights of a checkpoint file (.pth, .pt, .tar, .safetensors, .npz), unwrapped and without prefixes.

    Raises:
        MedtestError: As :func:`read_weights`.
    """
    return without_prefixes(read_weights(path, name=path.name))


def read_weights(file: Path | IO[bytes], *, name: str) -> dict[str, Tensor]:
    """Return a file's table of weights, without a training script's wrappers and a profiler's leftovers.

    Args:
        file: A path, or an open file of torch's format.
        name: What messages call it.

    Raises:
        NeedsTrust: It needs more than ``weights_only`` allows; of a path the message names the command that converts.
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

    import torch

    try:
        found = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        trusted = ""
        if isinstance(file, Path):
            command = f"medtest weights convert {shlex.quote(str(file))} {shlex.quote(f'{file.stem}.safetensors')}"
            trusted = f", or, if you trust who made it, convert it once: {command}"
        raise NeedsTrust(
            f"{name}: holds more than tensors and plain containers, or is no file of weights. medtest runs no code of "
            f"a checkpoint; save the network's state_dict() alone{trusted} ({str(error).splitlines()[0][:200]})"
        ) from error
    except Exception as error:
        raise MedtestError(f"{name}: not a file of weights that can be read: {str(error)[:300]}") from error
    return unwrapped(found, name)


def what_instead(path: Path) -> str:
    """Return what a downloaded file is where it is no checkpoint at all but what servers give in its place, or ""."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if head.startswith(_POINTER):
        return "is a pointer of Git LFS, not the weights; git lfs pull, in that folder, fetches them"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_PAGE):
        return "is a web page, not the weights: the server asked something back; download it in a browser"
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
    """Return a table without the prefixes that all of its names share."""
    plain = dict(state)
    while prefix := next((p for p in PREFIXES if all(name.startswith(p) for name in plain)), None):
        plain = {name.removeprefix(prefix): value for name, value in plain.items()}
    return plain


def unwrapped(found: Any, name: str) -> dict[str, Tensor]:
    """Return the weights among what a file holds under the names they have there.

    Args:
        found: What was read.
        name: What messages call the file.

    Raises:
        MedtestError: There are none, or some are not plain numbers.
    """
    import torch

    state = entries_of(found, name, torch.Tensor)
    for key, value in state.items():
        if value.layout is not torch.strided or value.is_quantized or value.device.type != "cpu":
            raise MedtestError(f"{name}: {key[:80]} is no plain array of numbers (sparse, quantised or without data)")
    return state


def entries_of(found: Any, name: str, kind: type[Entry]) -> dict[str, Entry]:
    """Return the table of weights among what a file holds, without wrappers and leftovers.

    Args:
        found: What was read.
        name: What messages call the file.
        kind: What a weight is.

    Raises:
        MedtestError: There are none.
    """
    for _ in range(_DEEPEST):
        if not isinstance(found, Mapping):
            break
        inner = [found[key] for key in WRAPPERS if isinstance(found.get(key), Mapping)]
        if not inner:
            break
        found = inner[0]
    if not isinstance(found, Mapping):
        raise MedtestError(f"{name}: a table of weights is expected, {type(found).__name__} found")
    named = {str(key): value for key, value in found.items() if isinstance(value, kind)}
    entries = _renamed({key: value for key, value in named.items() if not key.endswith(LEFTOVERS)})
    if not entries:
        held = ", ".join(str(key)[:40] for key in list(found)[:SHOWN]) or "nothing"
        raise MedtestError(f"{name}: no weights were found in this file; it holds {held}")
    return entries


def _renamed(entries: dict[str, Entry]) -> dict[str, Entry]:
    """Return weights under the names of today where they have those of PyTorch before 0.4.

    Names of modules could hold a dot then, as those of torchvision's DenseNet did (``denselayer1.norm.1.weight``).
    """
    renamed = {name: _DOTTED.sub(r"\1\2", name) for name in entries}
    if len(set(renamed.values())) < len(renamed):  # both names of one weight: not one of them is dropped unsaid
        return entries
    return {renamed[name]: value for name, value in entries.items()}


def draft_of(path: Path) -> Path:
    """Return the name under which a file is written before it takes its place."""
    return path.with_name(path.name + ".partial")


def write_state(path: Path, state: Mapping[str, Tensor]) -> None:
    """Write weights and nothing else, as .safetensors or .pth, atomically.

    Raises:
        MedtestError: They cannot be written, or are too large for this machine.
    """
    import torch
    from safetensors.torch import save

    for name, value in state.items():
        held = value.untyped_storage().nbytes()
        if value.numel() * value.element_size() > max(held, 1):
            # A few bytes that claim to be an array of any size: written out they would fill memory and disk.
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
    """Fill a network with a checkpoint's weights, all of them, and return it in evaluation mode.

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
    """Return weights under a network's names and in its number formats.

    Names may carry prefixes that DataParallel and wrapper classes leave, or lack one that is the network's own. Missing
    batch counters are tolerated; half-precision weights are raised to float32.

    Args:
        network: The network; it may lie on torch's meta device.
        state: The weights.
        name: The network's name, for messages.
        file: The checkpoint's name, for messages.

    Raises:
        CheckpointMismatch: Names or shapes differ; both are listed, with the network that fits better.
    """
    wanted = network.state_dict()
    state = fitting_names(state, wanted)
    missing = [key for key in wanted if key not in state and not key.endswith(COUNTER)]
    unexpected = [key for key in state if key not in wanted and not key.endswith(COUNTER)]
    shapes = [
        f"{key}: {tuple(state[key].shape)} in the file, {tuple(wanted[key].shape)} in the network"
        for key in wanted
        if key in state and state[key].shape != wanted[key].shape
    ]
    if missing or unexpected or shapes:
        raise CheckpointMismatch(_report(state, name, file, missing, unexpected, shapes))
    return {key: (state[key].to(value.dtype) if key in state else value) for key, value in wanted.items()}


def fitting_names(state: Mapping[str, Entry], wanted: Collection[str]) -> Mapping[str, Entry]:
    """Return weights without prefixes that all names share, or with one more, so that some are the wanted ones.

    Args:
        state: The weights.
        wanted: The network's names.
    """
    if not state or any(key in wanted for key in state):
        return state
    plain = without_prefixes(state)
    fitting, own = max((sum(prefix + key in wanted for key in plain), prefix) for prefix in ("", *PREFIXES))
    return {own + key: value for key, value in plain.items()} if fitting else state


def _report(
    state: Mapping[str, Tensor], name: str, file: str, missing: list[str], unexpected: list[str], shapes: list[str]
) -> str:
    lines = [f"{file}: these weights are not those of {name}"]
    near = looks_like(state)
    if near is not None and near != name:
        lines.append(f"  this looks like {near}")
    for title, names in (("missing", missing), ("unexpected", unexpected), ("of another shape", shapes)):
        if names:
            lines.append(f"  {title} ({len(names)}): {', '.join(names[:SHOWN])}{', …' if len(names) > SHOWN else ''}")
    return "\n".join(lines)


@cache
def _published_shapes(name: str) -> dict[str, tuple[int, ...]]:
    import torch

    from medtest.systems.pytorch import networks

    with torch.device("meta"):
        network = networks.published(name)
    state = without_prefixes(network.state_dict())  # a prefix may be the network's own, and is off the weights' names
    return {key: tuple(value.shape) for key, value in state.items() if not key.endswith(COUNTER)}


def looks_like(state: Mapping[str, Tensor], *, share: float = 0.5) -> str | None:
    """Return the published network that shares most names and shapes with these weights, if it shares enough.

    Args:
        state: From :func:`read_state`.
        share: Least share of both sides' names (Jaccard index of name and shape).
    """
    from medtest.systems.pytorch import networks

    plain = without_prefixes(state)
    given = {(key, tuple(value.shape)) for key, value in plain.items() if not key.endswith(COUNTER)}
    best, best_share = None, share
    for name in networks.PUBLISHED:
        known = set(_published_shapes(name).items())
        overlap = len(given & known) / len(given | known)
        if overlap >= best_share:
            best, best_share = name, overlap
    return best


def load_published(
    path: Path, names: tuple[str, ...], *, build: Callable[[str], nn.Module] | None = None
) -> tuple[str, nn.Module]:
    """Load a checkpoint into the network of these names that it fits, and return which one it was.

    Args:
        path: The checkpoint.
        names: Published networks it may belong to, most likely first; more than one where a family has sizes.
        build: Makes the untrained network of a name; the registry's by default.

    Raises:
        MedtestError: It cannot be read or fits none of them.
    """
    from medtest.systems.pytorch import networks

    state = read_state(path)
    near = looks_like(state, share=0.3) if len(names) > 1 else None
    name = near if near in names else names[0]
    network = (build or networks.published)(name)
    return name, load_strictly(network, state, name=name, file=path.name)
