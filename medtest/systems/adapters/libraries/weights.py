"""Weights from a stranger's file: tensors only, never code, and every one of them in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from medtest.errors import MedtestError, Mistake
from medtest.systems.archives import check_archive
from medtest.systems.checkpoints.checkpoint import COUNTER, PREFIXES, load_strictly, unwrapped, what_instead

if TYPE_CHECKING:
    from torch import Tensor, nn

_DEEPEST = 4


def pointer_mistakes(path: Path, *, where: str, key: str) -> list[Mistake]:
    """Return the mistake that a file is what stands in for weights: a pointer of Git LFS, a server's web page."""
    other = what_instead(path)
    return [Mistake(where=where, key=key, found=f"{path.name} {other}")] if other else []


def read_weights(file: Path | IO[bytes], *, name: str) -> dict[str, Tensor]:
    """Return a file's table of weights, without a training script's wrappers and a profiler's leftovers.

    Args:
        file: A path, or an open file of torch's format. Paths that end in ``.safetensors`` are of that format.
        name: What messages call it.

    Raises:
        MedtestError: It cannot be read, needs more than ``weights_only`` allows, or holds no weights.
    """
    if isinstance(file, Path) and file.suffix.lower() == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            loaded: dict[str, Tensor] = load_file(file)
        except (OSError, SafetensorError, ValueError) as error:
            raise MedtestError(f"{name}: not a safetensors file that can be read: {error}") from error
        return unwrapped(loaded, name)
    import pickle
    import shlex

    import torch

    check_archive(file, name)
    try:
        found = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        trusted = ""
        if isinstance(file, Path):
            command = f"medtest weights convert {shlex.quote(str(file))} {shlex.quote(f'{file.stem}.safetensors')}"
            trusted = f", or, if you trust who made it, convert it once: {command}"
        raise MedtestError(
            f"{name}: holds more than tensors and plain containers, or is no file of weights. medtest runs no code of "
            f"such a file; save the network's state_dict() alone{trusted} ({str(error).splitlines()[0][:200]})"
        ) from error
    except Exception as error:  # noqa: BLE001 - a stranger's damaged file may raise anything in torch's reader
        raise MedtestError(f"{name}: not a file of weights that can be read: {str(error)[:300]}") from error
    return unwrapped(found, name)


def fill(build: Callable[[], nn.Module], state: Mapping[str, Tensor], *, name: str, file: str) -> nn.Module:
    """Build a network and fill it with weights, all of them, in evaluation mode.

    Names may carry the prefixes that DataParallel and wrapper classes leave. The network is built on torch's meta
    device first, where it takes no memory, so that a description that does not belong to the weights is refused before
    it can ask for more memory than they have.

    Args:
        build: Makes the network.
        state: Its weights.
        name: What messages call the network.
        file: What messages call the file.

    Raises:
        MedtestError: The description cannot be built.
        CheckpointMismatch: Names or shapes differ; both are listed.
    """
    import torch

    with torch.device("meta"):
        draft = _built(build, name)
    wanted = {key: tuple(value.shape) for key, value in draft.state_dict().items() if not key.endswith(COUNTER)}
    fitting = fitting_names(dict(state), set(wanted))
    given = {key: tuple(value.shape) for key, value in fitting.items() if not key.endswith(COUNTER)}
    if given != wanted:
        load_strictly(draft, fitting, name=name, file=file)  # raises, with what differs
    return load_strictly(_built(build, name), fitting, name=name, file=file)


def fill_built(network: nn.Module, state: Mapping[str, Tensor], *, name: str, file: str) -> nn.Module:
    """Fill a network that exists; see :func:`fill`."""
    fitting = fitting_names(dict(state), set(network.state_dict()))
    return load_strictly(network, fitting, name=name, file=file)


def _built(build: Callable[[], nn.Module], name: str) -> nn.Module:
    try:
        return build()
    except MedtestError:
        raise
    except Exception as error:  # noqa: BLE001 - a stranger's description may make a library raise anything
        raise MedtestError(f"{name} cannot be built: {type(error).__name__}: {str(error)[:300]}") from error


def fitting_names(state: dict[str, Tensor], wanted: set[str]) -> dict[str, Tensor]:
    """Return weights without a prefix that all names share, unless the network's own names have it.

    Args:
        state: The weights.
        wanted: The network's names.
    """
    best = state
    for _ in range(_DEEPEST):
        if any(key in wanted for key in state):
            return state
        prefix = next((p for p in PREFIXES if all(key.startswith(p) for key in state)), None)
        if prefix is None:
            return best
        state = {key.removeprefix(prefix): value for key, value in state.items()}
    return best
