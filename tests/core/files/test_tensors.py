"""Packed weights: integers with a step for each row, and differences to the network a training started from."""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save

from medtest.core.errors import MedtestError
from medtest.core.files.tensors import HEADER, LOW, PACKED, STEP, STREAM, read_tensors, write_tensors

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
import pack_weights
from pack_weights import pack

GENERATOR = torch.Generator().manual_seed(5)
STATE = {
    "wide": torch.randn(7, 3, 3, 3, generator=GENERATOR) * torch.logspace(-6, 1, 7)[:, None, None, None],
    "short": torch.randn(40, 4, generator=GENERATOR),
    "mean": torch.randn(7, generator=GENERATOR) * 100,
    "dead": torch.zeros(2, 16),
    "batches": torch.tensor(123_456_789),
}
BOMB = torch.frombuffer(bytearray(lzma.compress(bytes(2**20))), dtype=torch.uint8)
"""A stream of a million zeros in some hundred bytes."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "weights").mkdir()
    monkeypatch.setattr("medtest.core.files.tensors.package_folder", lambda: tmp_path)
    return tmp_path / "weights"


def _packed(folder: Path, name: str, state: dict[str, Any], bits: int, **facts: Any) -> dict[str, Any]:
    half = folder.parent / f"{name}.safetensors"
    write_tensors(half, state, facts)
    pack(half, folder / half.name, bits)
    return read_tensors(folder / half.name)


@pytest.mark.parametrize("bits", [4, 7, 8, 9, 12])
def test_packed_weights_are_near_and_their_sums_nearer(folder: Path, bits: int) -> None:
    packed = _packed(folder, "a", STATE, bits)
    half = read_tensors(folder.parent / "a.safetensors")
    assert packed.keys() == STATE.keys()
    for name in ("short", "mean", "batches", "dead"):
        assert torch.equal(packed[name], half[name])
    step = half["wide"].abs().amax((1, 2, 3)) / (2 ** (bits - 1) - 1) * 1.001 + 2.0**-24
    error = packed["wide"] - half["wide"]
    assert (error.abs().amax((1, 2, 3)) <= step).all()
    assert (error.sum((1, 2, 3)).abs() <= 0.51 * step).all()
    assert packed["wide"].dtype == torch.float32


def test_a_network_trained_further_is_stored_as_differences(folder: Path) -> None:
    _packed(folder, "net-compact", STATE, 8)
    trained = {**STATE, "wide": STATE["wide"] * 1.02}
    packed = _packed(folder, "net-compact-standard", trained, 8, defence={"name": "standard", "from_sha256": "0"})
    error = (packed["wide"] - trained["wide"])[3:].abs().amax((1, 2, 3)) / trained["wide"][3:].abs().amax((1, 2, 3))
    assert float(error.max()) < 1e-3
    _packed(folder, "net-compact", trained, 8)
    with pytest.raises(MedtestError, match=r"another version of net-compact\.safetensors"):
        read_tensors(folder / "net-compact-standard.safetensors")


@pytest.mark.parametrize("bits", [6, 9])
def test_a_stream_holds_the_same_weights_in_fewer_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    state = {**STATE, "sparse": torch.randn(64, 64, generator=GENERATOR) ** 7}
    plain = _packed(folder, "a", state, bits)
    size = (folder / "a.safetensors").stat().st_size
    monkeypatch.setattr(pack_weights, "STREAMED", {"a"})
    streamed = _packed(folder, "a", state, bits)
    assert streamed.keys() == plain.keys()
    assert all(torch.equal(streamed[name], plain[name]) for name in plain)
    assert (folder / "a.safetensors").stat().st_size < 0.9 * size


@pytest.mark.parametrize(
    ("change", "packing"),
    [
        ({STEP + "a": torch.zeros(3)}, {"bits": 8}),
        ({STEP + "b": torch.zeros(2)}, {"bits": 8}),
        ({LOW + "a": torch.zeros(2, 9)}, {}),
        ({LOW + "a": torch.zeros(2, 9)}, {"bits": 10**6}),
        ({}, {"bits": 8, "base": "none.safetensors", "base_sha256": ""}),
        ({}, {"bits": 8, "base": 7}),
        ({}, 7),
        ({}, {"bits": 8, "shapes": {"a": [2, 9]}}),
        ({STREAM: BOMB}, {"bits": 8, "shapes": {"a": [2**20]}}),
        ({STREAM: BOMB}, {"bits": 8, "shapes": {"a": [2, 9]}}),
        ({STREAM: BOMB[:40]}, {"bits": 8, "shapes": {"a": [2, 9]}}),
        ({STREAM: BOMB}, {"bits": 8, "shapes": {"a": [2, -9]}}),
        ({STREAM: BOMB}, {"bits": 8, "shapes": ["a"]}),
    ],
)
def test_damaged_packing_is_an_error_of_the_file(tmp_path: Path, change: dict[str, Any], packing: Any) -> None:
    path = tmp_path / "w.safetensors"
    tensors = {"a": torch.zeros(2, 9, dtype=torch.int8), STEP + "a": torch.ones(2)} | change
    path.write_bytes(save(tensors, metadata={HEADER: json.dumps({PACKED: packing})}))
    with pytest.raises(MedtestError, match=r"w\.safetensors"):
        read_tensors(path)
