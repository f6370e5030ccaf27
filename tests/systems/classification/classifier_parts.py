"""Helpers for tests of classification networks: parity, small networks as weights files, an opened system."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from medtest.core.cases import Address
from medtest.core.plugins import part
from medtest.systems import build_network
from medtest.systems.base import System
from medtest.systems.checkpoints.weights import WeightsInfo, save_weights
from medtest.systems.pytorch import networks

sys.path.insert(0, str(Path(__file__).parents[1]))
import parity_rule
from parity_parts import assert_as_recorded


def assert_answers_as_recorded(name: str, file: Path, side: int) -> None:
    """Load a checkpoint file of golden weights and compare the network's outputs with those recorded."""
    network = build_network(name, file)
    with torch.inference_mode():
        outputs = network(torch.from_numpy(parity_rule.image(1, 3, side, side)))
    assert_as_recorded(name, outputs)


def small_weights(family: str, path: Path, *, seed: int = 5, size: int = 224) -> torch.nn.Module:
    """Write weights of a family's compact network, as training does, and return the network."""
    torch.manual_seed(seed)
    config = networks.COMPACT[family]
    network = networks.make(config)
    save_weights(path, network.state_dict(), WeightsInfo(network=networks.describe(config), size=size))
    # As the file has it: in half precision.
    network.load_state_dict(
        {k: v.half().to(v.dtype) if v.is_floating_point() else v for k, v in network.state_dict().items()}
    )
    return network


def system_of(name: str, **settings: Any) -> System:
    """Return a system with settings beside its YAML file's."""
    info = part("systems", name)
    kind = info.load()
    system: System = kind(name, kind.Settings(**{**info.defaults, **settings}))
    return system


def ask(system: System, *images: NDArray[np.uint8]) -> tuple[list[Any], torch.Tensor]:
    """Open a system and ask it; return its answers, and the inputs of its network in order.

    An untrained network's answers hardly depend on its input, so the input itself shows a wrong crop.
    """
    inputs: list[torch.Tensor] = []

    def keep(_: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        inputs.append((arguments[0] if arguments else named["pixel_values"]).detach().clone())

    system.open(device="cpu", threads=1)
    try:
        network: Any = system._network  # type: ignore[attr-defined]
        network.register_forward_pre_hook(keep, with_kwargs=True)
        answers = list(system.predict(images, [Address(dataset="d", seed_id=str(i)) for i in range(len(images))]))
        return answers, torch.cat(inputs) if len({pixels.shape[1:] for pixels in inputs}) == 1 else torch.empty(0)
    finally:
        system.close()


def noise(height: int, width: int, seed: int = 3) -> NDArray[np.uint8]:
    """Return an image whose pixels all differ from their neighbours, so that a shifted crop differs."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def normalised(image: Any, statistics: Mapping[str, Any]) -> torch.Tensor:
    """Return a Pillow image as torchvision's ToTensor and Normalize give it, 1×3×H×W."""
    from torchvision.transforms import functional

    return functional.normalize(functional.to_tensor(image), statistics["mean"], statistics["std"])[None]
