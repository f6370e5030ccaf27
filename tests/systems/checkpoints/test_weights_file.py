"""Weights files of medtest's own format: their description is checked before the network is built."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save

from medtest.core.errors import MedtestError
from medtest.core.files.tensors import HEADER
from medtest.systems.checkpoints.weights import FORMAT, MOST_LAYERS, _check_numbers, is_ours, load_network, read_info
from medtest.systems.pytorch import networks

COMPACT = networks.COMPACT["pranet"]


def _write(path: Path, change: Callable[[dict[str, Any]], None], header: str = "") -> Path:
    facts: dict[str, Any] = {"format": FORMAT, "network": networks.describe(COMPACT), "size": 96, "note": ""}
    change(facts)
    state = {"resnet.conv1.0.weight": torch.zeros(16, 3, 3, 3)}
    path.write_bytes(save(state, metadata={HEADER: header or json.dumps(facts)}))
    return path


def _backbone(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda facts: facts["network"]["backbone"].update(values)


@pytest.mark.parametrize(
    "change",
    [
        _backbone(blocks=[10**9, 1, 1, 1]),
        _backbone(blocks=[900, 900, 900, 900]),
        _backbone(planes=[10**12, 40, 72, 112]),
        _backbone(planes=[-4, 40, 72, 112]),
        _backbone(planes="wide"),
        _backbone(stem=[16]),
        _backbone(scale=0),
        lambda facts: facts["network"].update(channels="many"),
        lambda facts: facts["network"].update(family=["pranet"]),
        lambda facts: facts["network"].update(backbone=7),
        lambda facts: facts["network"].update(channels=16_000, coarse_width=16_000),
    ],
)
def test_an_impossible_description_is_refused_before_it_takes_memory(
    change: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    path = _write(tmp_path / "w.safetensors", change)
    assert is_ours(path)
    with pytest.raises(MedtestError, match=r"w\.safetensors|the weights describe"):
        load_network(path)


@pytest.mark.parametrize("size", [0, -96, 100, 10**6, 1e400, "wide", None])
def test_an_impossible_size_is_refused(size: object, tmp_path: Path) -> None:
    path = _write(tmp_path / "w.safetensors", lambda facts: facts.update(size=size))
    with pytest.raises(MedtestError, match="cannot be read"):
        read_info(path)


@pytest.mark.parametrize("header", ["[" * 100_000, "[]", "7", "{", "null"])
def test_a_malformed_header_does_not_crash(header: str, tmp_path: Path) -> None:
    path = _write(tmp_path / "w.safetensors", lambda _: None, header=header)
    assert not is_ours(path)
    with pytest.raises(MedtestError):
        read_info(path)


@pytest.mark.parametrize(
    ("network", "allowed"),
    [
        ({"planes": [1] * MOST_LAYERS}, True),
        ({"planes": [1] * (MOST_LAYERS + 1)}, False),
        ({"backbone": {"depths": [MOST_LAYERS - 1, 1]}}, True),
        ({"backbone": {"depths": [MOST_LAYERS, 1]}}, False),
        ({"planes": [MOST_LAYERS, 1]}, True),
    ],
)
def test_layers_are_bounded_in_number_and_in_sum(network: dict[str, Any], allowed: bool) -> None:
    with nullcontext() if allowed else pytest.raises(MedtestError, match="too many layers"):
        _check_numbers(network)
