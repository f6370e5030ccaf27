"""Compact networks on disk: safetensors in half precision, with the network's description in the header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.deferred import torch
from medtest.core.errors import MedtestError
from medtest.core.files.tensors import described, facts_of, read_tensors, write_tensors

if TYPE_CHECKING:
    from torch import Tensor, nn

FORMAT = "medtest-network-1"
SIDES = range(64, 2049, 32)
"""Allowed input sizes in pixels."""
MOST_LAYERS = 1000
WIDEST = 16_384
"""Limits on the numbers of a description, because an untrusted network is built before its weights are loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsInfo:
    """Description of the network in a weights file.

    Attributes:
        network: The network's description, see ``networks.networks.describe``.
        size: Input side in pixels, for training and inference.
        threshold: Probability above which a pixel is lesion, chosen on validation images.
        note: Free text of the trainer (data, step).
        classes: Names of a classifier's classes, in the order of its scores; empty for the family's own.
        resized: Whether images of other sizes are resized to ``size`` even if the network would accept them.
        defence: For adversarially trained networks: ``name``, ``variant`` and ``from_sha256``, the SHA-256 of the
            initial weights; otherwise empty.
    """

    network: Mapping[str, Any]
    size: int
    threshold: float = 0.5
    note: str = ""
    classes: tuple[str, ...] = ()
    resized: bool = False
    defence: Mapping[str, str] = field(default_factory=dict)


def save_weights(path: Path, state: Mapping[str, Tensor], info: WeightsInfo) -> None:
    """Write a network in half precision (counters unchanged), atomically."""
    facts = {
        "format": FORMAT,
        "network": dict(info.network),
        "size": info.size,
        "threshold": info.threshold,
        "note": info.note,
    }
    if info.classes:
        facts["classes"] = list(info.classes)
    if info.resized:
        facts["resized"] = True
    if info.defence:
        facts["defence"] = dict(info.defence)
    write_tensors(path, state, facts)


def read_info(path: Path) -> WeightsInfo:
    """Return the description in one of medtest's weights files, without loading the weights.

    Raises:
        MedtestError: It is not one of medtest's files.
    """
    with described(path, FORMAT, "these weights do not name their network") as facts:
        threshold = float(facts.get("threshold", 0.5))
        if not 0 < threshold < 1:
            raise ValueError(f"threshold {threshold}")
        size = int(facts["size"])
        if size not in SIDES:
            raise ValueError(f"size {size}; {SIDES.start} to {SIDES[-1]} in steps of {SIDES.step} are possible")
        return WeightsInfo(
            network=dict(facts["network"]),
            size=size,
            threshold=threshold,
            note=str(facts["note"]),
            classes=distinct_names(facts.get("classes", []), MOST_LAYERS),
            resized=bool(facts.get("resized", False)),
            defence={str(key): str(value) for key, value in dict(facts.get("defence", {})).items()},
        )


def distinct_names(names: object, most: int) -> tuple[str, ...]:
    """Return a list of names in a header.

    Raises:
        ValueError: They are not distinct names, or more than ``most``.
    """
    if not isinstance(names, list) or not all(isinstance(name, str) and 0 < len(name) <= 100 for name in names):
        raise ValueError("its classes are not list of names")
    if len(set(names)) < len(names) or len(names) > most or any("|" in name for name in names):
        raise ValueError("its classes are not distinct, too many, or contain a |")
    return tuple(names)


def is_ours(path: Path) -> bool:
    """Return True if a file is a network written by medtest, with its description in the header."""
    if path.suffix.lower() != ".safetensors" or not path.is_file():
        return False
    try:
        return bool(facts_of(path).get("format") == FORMAT)
    except (MedtestError, AttributeError, ValueError, RecursionError):
        return False


def load_network(path: Path) -> tuple[nn.Module, WeightsInfo]:
    """Return the network of a weights file in float32 and evaluation mode, and its description.

    Raises:
        MedtestError: The file is not one of medtest's, or its weights do not fit its description.
    """
    info = read_info(path)
    state = read_tensors(path)
    with torch.device("meta"):  # takes no memory: a network is built only if its weights are in the file
        draft = _described(info, path)
    _compare(draft, state, path)
    network = _described(info, path)
    network.load_state_dict(state)
    return network.eval(), info


def _described(info: WeightsInfo, path: Path) -> nn.Module:
    """Build the network of an untrusted description."""
    from medtest.systems.pytorch import networks

    try:
        _check_numbers(info.network)
        return networks.make(networks.from_description(info.network))
    except MedtestError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise MedtestError(f"{path.name}: the network it describes cannot be built: {reason}") from error


def _check_numbers(value: object, key: str = "network") -> None:
    """Check that no number of a description, nor the sum of its layers, exceeds the limits."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _check_numbers(inner, str(name))
    elif isinstance(value, list | tuple):
        if len(value) > MOST_LAYERS or (key in ("blocks", "depths") and sum(value) > MOST_LAYERS):
            raise MedtestError(f"the weights describe a network with too many layers ({key})")
        for inner in value:
            _check_numbers(inner, key)
    elif isinstance(value, int | float) and not 0 <= value <= WIDEST:
        raise MedtestError(f"the weights describe a network with {key} {value}; 0 to {WIDEST:,} are possible")


def _compare(network: nn.Module, state: Mapping[str, Tensor], path: Path) -> None:
    expected = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    actual = {name: tuple(value.shape) for name, value in state.items()}
    other = sorted(name for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name))
    if other:
        named = f"{', '.join(other[:6])}{', …' if len(other) > 6 else ''}"
        raise MedtestError(f"{path.name}: the weights do not fit the network they describe: {named}")
