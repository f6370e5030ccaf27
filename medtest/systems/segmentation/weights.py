"""Compact networks on disk: safetensors in half precision, whose header says what the network is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.errors import MedtestError

if TYPE_CHECKING:
    from torch import Tensor, nn

FORMAT = "medtest-network-1"
HEADER = "medtest"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsInfo:
    """What a weights file says about itself.

    Attributes:
        network: The network's description, see ``networks.registry.describe``.
        size: Side in pixels the network was trained for and takes its images at.
        threshold: Probability above which a pixel is lesion, chosen on validation images.
        note: Free text of the trainer (data, step).
    """

    network: Mapping[str, Any]
    size: int
    threshold: float = 0.5
    note: str = ""


def save_weights(path: Path, state: Mapping[str, Tensor], info: WeightsInfo) -> None:
    """Write a network in half precision (counters as they are), atomically."""
    import torch
    from safetensors.torch import save

    kept = {
        name: (value.detach().to(torch.float16) if value.is_floating_point() else value.detach()).cpu().contiguous()
        for name, value in state.items()
    }
    facts = {
        "format": FORMAT,
        "network": dict(info.network),
        "size": info.size,
        "threshold": info.threshold,
        "note": info.note,
    }
    # One entry: the library writes several in an order of chance, and equal weights should be equal files.
    header = {HEADER: json.dumps(facts, sort_keys=True)}
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(save(kept, metadata=header))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_info(path: Path) -> WeightsInfo:
    """Return what a weights file of ours says about itself, without loading it.

    Raises:
        MedtestError: It is not one.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            header = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise MedtestError(f"{path.name}: not a safetensors file that can be read: {error}") from error
    try:
        facts = json.loads(header.get(HEADER, "{}"))
        if facts.get("format") != FORMAT:
            raise MedtestError(f"{path.name}: these weights do not say which network they belong to")
        threshold = float(facts.get("threshold", 0.5))
        if not 0 < threshold < 1:
            raise ValueError(f"threshold {threshold}")
        return WeightsInfo(
            network=dict(facts["network"]), size=int(facts["size"]), threshold=threshold, note=str(facts["note"])
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MedtestError(f"{path.name}: the description of the network cannot be read: {error}") from error


def is_ours(path: Path) -> bool:
    """Say whether a file is a network as medtest writes it, with its description in the header."""
    if path.suffix.lower() != ".safetensors" or not path.is_file():
        return False
    try:
        read_info(path)
    except MedtestError:
        return False
    return True


def load_network(path: Path) -> tuple[nn.Module, WeightsInfo]:
    """Return the network of a weights file in float32 and evaluation mode, and what the file says about it.

    Raises:
        MedtestError: The file is not one of ours, or its weights do not fit its description.
    """
    import torch
    from safetensors.torch import load_file

    from medtest.systems.segmentation.networks import registry

    info = read_info(path)
    network = registry.make(registry.from_description(info.network))
    state = {name: v.to(torch.float32) if v.is_floating_point() else v for name, v in load_file(path).items()}
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise MedtestError(f"{path.name}: the weights do not fit the network they describe: {error}") from error
    return network.eval(), info
