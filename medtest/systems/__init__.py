"""Systems under test: one class per file, with its preset in ``conf/model/<name>.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

__all__ = ["build_network"]


def build_network(name: str, checkpoint: str | Path | None = None) -> nn.Module:
    """Return a published network as a bare ``torch.nn.Module`` in evaluation mode.

    Its ``forward`` has the signature of the official implementation, and its parameters have the published names.

    Args:
        name: A name of :data:`medtest.systems.pytorch.networks.PUBLISHED`: ``pranet``, ``sanet``, ``tganet``,
            ``ssformer_s``, ``ssformer_l``, and classifiers (``agdn``, ``dsinet``, …).
        checkpoint: Weights to load, in any form that :mod:`medtest.systems.checkpoints.checkpoint` reads; without a
            checkpoint, the weights are initialised at random.

    Raises:
        MedtestError: The name is unknown, or the checkpoint does not match the network.
    """
    from medtest.systems.checkpoints.checkpoint import load_strictly, read_state
    from medtest.systems.pytorch.networks import published

    network = published(name)
    if checkpoint is None:
        return network
    path = Path(checkpoint)
    return load_strictly(network, read_state(path), name=name, file=path.name)
