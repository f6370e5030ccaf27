"""Systems under test: one class in one file, its preset in ``conf/model/<name>.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

__all__ = ["build_network"]


def build_network(name: str, checkpoint: str | Path | None = None) -> nn.Module:
    """Return a published network as a bare ``torch.nn.Module`` in evaluation mode.

    Its ``forward`` takes and returns what the official one does, and its parameters have the published names.

    Args:
        name: A name of :data:`medtest.systems.pytorch.networks.PUBLISHED`: ``pranet``, ``sanet``, ``tganet``,
            ``ssformer_s``, ``ssformer_l``, and classifiers (``agdn``, ``dsinet``, …).
        checkpoint: Weights to fill it with, in any form that people have them (see
            :mod:`medtest.systems.checkpoints.checkpoint`); freshly drawn weights without.

    Raises:
        MedtestError: There is no such network, or the checkpoint is not one of it.
    """
    from medtest.systems.checkpoints.checkpoint import load_strictly, read_state
    from medtest.systems.pytorch.networks import published

    network = published(name)
    if checkpoint is None:
        return network
    path = Path(checkpoint)
    return load_strictly(network, read_state(path), name=name, file=path.name)
