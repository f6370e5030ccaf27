"""Initial weights from another training or from another network's backbone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.deferred import torch
from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.inputs import INPUTS, InputKind
from medtest.systems.checkpoints.weights import load_network, read_info

if TYPE_CHECKING:
    from torch import Tensor, nn

BACKBONES: dict[str, dict[str, str]] = {
    "pranet": {"resnet.": ""},
    "sanet": {"bkbone.": ""},
    "tganet": {
        "layer0.0.": "conv1.",
        "layer0.1.": "bn1.",
        "layer1.1.": "layer1.",
        "layer2.": "layer2.",
        "layer3.": "layer3.",
    },
}
"""Prefixes of each family's Res2Net parts, and their prefixes in the Res2Net."""


def weights_file(path: Path) -> Path:
    """Return the only weights file of a training's folder, or the file itself.

    Raises:
        MedtestError: The folder holds none or several.
    """
    if not path.is_dir():
        return path
    files: Sequence[Path] = sorted(path.glob("*.safetensors"))
    if len(files) != 1:
        raise MedtestError(f"{path.name}: one .safetensors file is expected there, {len(files)} found")
    return files[0]


def start_from(network: nn.Module, path: Path) -> None:
    """Load all weights of another training into a network.

    Raises:
        MedtestError: They are of another network, or cannot be read.
    """
    path = weights_file(path)
    other, _ = load_network(path)
    try:
        network.load_state_dict(other.state_dict())
    except RuntimeError as error:
        raise MedtestError(f"{path.name}: these weights are of another network: {error}") from error


def backbone_from(network: nn.Module, family: str, path: Path) -> int:
    """Load another family's backbone into a network's, if their modules are the same.

    The stem's input format is taken into account: if the new network uses another channel order or scale, the first
    convolution and its batch norm are adapted so that they give the same output, except for the outermost pixels, where
    zero padding represents another colour.

    Args:
        network: The network, changed in place.
        family: Its family.
        path: A weights file of medtest (``.safetensors``), or a training's folder.

    Returns:
        Number of loaded entries.

    Raises:
        MedtestError: One of the two has no Res2Net, or their widths differ.
    """
    path = weights_file(path)
    source_family = str(read_info(path).network.get("family"))
    for checked in (source_family, family):
        if checked not in BACKBONES:
            raise MedtestError(f"{checked} has no backbone that other networks share; there are {', '.join(BACKBONES)}")
    other, _ = load_network(path)
    source = _backbone(other.state_dict(), source_family)
    _change_input(source, INPUTS[source_family], INPUTS[family])
    target = network.state_dict()
    count = 0
    for name, part in _names(target, family).items():
        if part not in source or source[part].shape != target[name].shape:
            raise MedtestError(f"{path.name}: its backbone is not that of this {family}: {part} differs")
        target[name].copy_(source[part])
        count += 1
    return count


def _names(state: dict[str, Any], family: str) -> dict[str, str]:
    """Return name → name in the Res2Net of the backbone's entries, without an ImageNet head."""
    parts: dict[str, str] = {}
    for name in state:
        prefix = next((p for p in BACKBONES[family] if name.startswith(p)), None)
        if prefix is not None:
            part = BACKBONES[family][prefix] + name.removeprefix(prefix)
            if not part.startswith("fc."):
                parts[name] = part
    return parts


def _backbone(state: dict[str, Tensor], family: str) -> dict[str, Tensor]:
    return {part: state[name].clone() for name, part in _names(state, family).items()}


def _change_input(state: dict[str, Tensor], was: InputKind, becomes: InputKind) -> None:
    """Adapt a stem to another kind of input: x' = (x·s + m - m') / s', channels reordered."""
    if was == becomes:
        return
    kernel = state["conv1.0.weight"].double()
    if was.blue_first:
        kernel = kernel.flip(1)
    std, mean = (torch.tensor(v, dtype=torch.float64)[None, :, None, None] for v in (was.std, was.mean))
    new_std, new_mean = (torch.tensor(v, dtype=torch.float64)[None, :, None, None] for v in (becomes.std, becomes.mean))
    scaled = kernel * new_std / std
    shift = (kernel * (new_mean - mean) / std).sum(dim=(1, 2, 3))
    state["conv1.1.running_mean"] -= shift.to(state["conv1.1.running_mean"].dtype)
    state["conv1.0.weight"] = (scaled.flip(1) if becomes.blue_first else scaled).to(state["conv1.0.weight"].dtype)
