"""Strict loading of untrusted weights into a network of an untrusted description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from medtest.core.errors import MedtestError, Mistake
from medtest.systems.checkpoints.checkpoint import fitting_state, load_strictly, what_instead

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
    import torch

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
