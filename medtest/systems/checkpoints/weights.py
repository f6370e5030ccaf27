"""Compact networks on disk: safetensors in half precision, whose header says what the network is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.errors import MedtestError
from medtest.core.files.tensors import facts_of, read_tensors, write_tensors

if TYPE_CHECKING:
    from torch import Tensor, nn

FORMAT = "medtest-network-1"
SIDES = range(64, 2049, 32)
"""Sides in pixels at which a network may take its images."""
MOST_LAYERS = 1000
WIDEST = 16_384
"""Bounds on the numbers of a description: a stranger's file may name any, and it is built before it is filled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsInfo:
    """What a weights file says about itself.

    Attributes:
        network: The network's description, see ``networks.networks.describe``.
        size: Side in pixels the network was trained for and takes its images at.
        threshold: Probability above which a pixel is lesion, chosen on validation images.
        note: Free text of the trainer (data, step).
        classes: Names of a classifier's classes, in the order of its scores; empty where they are the family's own.
        resized: Whether images of any other side are brought to ``size``, also where the network would take them.
        defence: Of a network that was trained under attack: ``name``, ``variant`` and ``from_sha256``, that of the
            weights it was trained from; else empty.
    """

    network: Mapping[str, Any]
    size: int
    threshold: float = 0.5
    note: str = ""
    classes: tuple[str, ...] = ()
    resized: bool = False
    defence: Mapping[str, str] = field(default_factory=dict)


def save_weights(path: Path, state: Mapping[str, Tensor], info: WeightsInfo) -> None:
    """Write a network in half precision (counters as they are), atomically."""
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
    """Return what a weights file of ours says about itself, without loading it.

    Raises:
        MedtestError: It is not one.
    """
    try:
        facts = facts_of(path)
        if facts.get("format") != FORMAT:
            raise MedtestError(f"{path.name}: these weights do not say which network they belong to")
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
            classes=_classes(facts.get("classes", [])),
            resized=bool(facts.get("resized", False)),
            defence={str(key): str(value) for key, value in dict(facts.get("defence", {})).items()},
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error)[:200]
        raise MedtestError(f"{path.name}: the description of the network cannot be read: {reason}") from error


def _classes(names: Any) -> tuple[str, ...]:
    """Return the names of classes that a header gives.

    Raises:
        ValueError: They are no distinct names.
    """
    if not isinstance(names, list) or not all(isinstance(name, str) and 0 < len(name) <= 100 for name in names):
        raise ValueError("its classes are no list of names")
    if len(set(names)) < len(names) or len(names) > MOST_LAYERS or any("|" in name for name in names):
        raise ValueError("its classes are not distinct, too many, or hold a |")
    return tuple(names)


def is_ours(path: Path) -> bool:
    """Say whether a file is a network as medtest writes it, with its description in the header."""
    if path.suffix.lower() != ".safetensors" or not path.is_file():
        return False
    try:
        return bool(facts_of(path).get("format") == FORMAT)
    except (MedtestError, AttributeError, ValueError, RecursionError):
        return False


def load_network(path: Path) -> tuple[nn.Module, WeightsInfo]:
    """Return the network of a weights file in float32 and evaluation mode, and what the file says about it.

    Raises:
        MedtestError: The file is not one of ours, or its weights do not fit its description.
    """
    import torch

    info = read_info(path)
    state = read_tensors(path)
    with torch.device("meta"):  # takes no memory, so that only what has its weights in the file is built
        draft = _described(info, path)
    _compare(draft, state, path)
    network = _described(info, path)
    network.load_state_dict(state)
    return network.eval(), info


def _described(info: WeightsInfo, path: Path) -> nn.Module:
    """Build the network of a description that may be anybody's."""
    from medtest.systems.pytorch import networks

    try:
        _check_numbers(info.network)
        return networks.make(networks.from_description(info.network))
    except MedtestError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise MedtestError(f"{path.name}: the network it describes cannot be built: {reason}") from error


def _check_numbers(value: Any, key: str = "network") -> None:
    """Check that no number of a description is beyond any network, and none of the layers together."""
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
    wanted = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    given = {name: tuple(value.shape) for name, value in state.items()}
    other = sorted(name for name in wanted.keys() | given.keys() if wanted.get(name) != given.get(name))
    if other:
        named = f"{', '.join(other[:6])}{', …' if len(other) > 6 else ''}"
        raise MedtestError(f"{path.name}: the weights do not fit the network they describe: {named}")
