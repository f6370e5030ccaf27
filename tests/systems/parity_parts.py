"""Parity of networks with recordings: their size, and their outputs with weights filled by a rule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import parity_rule
import torch

from medtest.systems.pytorch import networks

PARITY = Path(__file__).parents[1] / "data" / "parity"
State = dict[str, torch.Tensor]


def golden_state(name: str) -> State:
    """Return weights of a published network by the rule of recorded outputs."""
    with torch.device("meta"):
        shapes = {key: tuple(value.shape) for key, value in networks.published(name).state_dict().items()}
    return {key: torch.from_numpy(np.array(parity_rule.weight(key, shape))) for key, shape in shapes.items()}


def assert_as_recorded(name: str, outputs: torch.Tensor | Sequence[torch.Tensor]) -> None:
    """Compare a network's outputs for the rule's image with those recorded."""
    tensors = outputs if isinstance(outputs, list | tuple) else [outputs]
    with np.load(PARITY / f"{name}.npz") as recorded:
        assert len(tensors) == int(recorded["n"])
        for index, output in enumerate(o.numpy() for o in tensors):
            allowed = 1e-3 * max(1.0, float(recorded[f"std{index}"]))
            assert output.shape == tuple(recorded[f"shape{index}"])
            sampled = output[..., ::8, ::8] if output.ndim == 4 and output.shape[-1] >= 64 else output
            assert np.abs(sampled - recorded[f"sample{index}"]).max() <= allowed
            assert abs(output.mean() - recorded[f"mean{index}"]) <= allowed
            assert abs(output.std() - recorded[f"std{index}"]) <= allowed


def assert_published_size(name: str, *, parameters: int, tensors: int) -> None:
    """Count a published network's trained numbers and the entries of its state dict."""
    with torch.device("meta"):
        network = networks.published(name)
    assert sum(p.numel() for p in network.parameters()) == parameters
    assert len(network.state_dict()) == tensors


def assert_compact(family: str) -> None:
    """Assert that a family's bundled network is small."""
    assert sum(p.numel() for p in networks.make(networks.COMPACT[family]).parameters()) <= 4_000_000
