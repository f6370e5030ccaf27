from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.checkpoint import (
    CheckpointMismatch,
    load_published,
    load_strictly,
    looks_like,
    read_state,
)
from medtest.systems.pytorch import networks

State = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def small() -> torch.nn.Module:
    torch.manual_seed(3)
    return networks.make(networks.COMPACT["pranet"])


def _are_equal(first: State, second: State) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {f"module.{key}": value for key, value in state.items()},
        lambda state: {"state_dict": state, "epoch": 19},
        lambda state: {"state_dict": {f"module.{key}": value for key, value in state.items()}},
        lambda state: {**state, "resnet.total_ops": torch.zeros(1), "total_params": torch.zeros(1)},
        lambda state: {key: value for key, value in state.items() if not key.endswith("num_batches_tracked")},
        lambda state: {key: v.half() if v.is_floating_point() else v for key, v in state.items()},
        lambda state: {"model": {f"_orig_mod.module.{key}": value for key, value in state.items()}},
        lambda state: {f"module.{key}": value for key, value in state.items()} | {"n_averaged": torch.tensor(3)},
    ],
    ids=["plain", "module", "wrapped", "wrapped module", "profiled", "no counters", "half", "compiled", "averaged"],
)
def test_checkpoints_load_in_all_common_forms(
    wrap: Callable[[State], Any], small: torch.nn.Module, tmp_path: Path
) -> None:
    torch.save(wrap(small.state_dict()), tmp_path / "c.pth")
    network = networks.make(networks.COMPACT["pranet"])
    load_strictly(network, read_state(tmp_path / "c.pth"), name="pranet", file="c.pth")
    assert not network.training
    loaded = network.state_dict()
    for key, value in small.state_dict().items():
        assert loaded[key].dtype == value.dtype
        assert torch.allclose(loaded[key].float(), value.float(), atol=1e-3), key  # half precision loses a little


class _Wrapper(torch.nn.Module):
    """A network whose own names begin with prefixes that DataParallel adds."""

    def __init__(self) -> None:
        super().__init__()
        self.model = torch.nn.Linear(3, 2)


@pytest.mark.parametrize("prefix", ["", "module.", "net.module."])
def test_a_prefix_of_the_networks_own_names_stays(prefix: str, tmp_path: Path) -> None:
    state = _Wrapper().state_dict()
    torch.save({f"{prefix}{key}": value for key, value in state.items()}, tmp_path / "c.pth")
    network = load_strictly(_Wrapper(), read_state(tmp_path / "c.pth"), name="wrapper", file="c.pth")
    assert _are_equal(network.state_dict(), state)


def test_safetensors_load(small: torch.nn.Module, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file(small.state_dict(), tmp_path / "c.safetensors")
    assert _are_equal(read_state(tmp_path / "c.safetensors"), dict(small.state_dict()))


def test_what_is_missing_or_unexpected_is_listed(small: torch.nn.Module) -> None:
    state = dict(small.state_dict())
    state["resnet.surprise"] = state.pop("agg1.conv5.bias")
    state["agg1.conv5.weight"] = torch.zeros(3)
    with pytest.raises(CheckpointMismatch) as caught:
        load_strictly(networks.make(networks.COMPACT["pranet"]), state, name="pranet", file="mine.pth")
    text = str(caught.value)
    assert "mine.pth: these are not weights of pranet" in text
    assert "missing (1): agg1.conv5.bias" in text
    assert "unexpected (1): resnet.surprise" in text
    assert "agg1.conv5.weight: (3,) in the file, (1, 72, 1, 1) in the network" in text


@pytest.mark.parametrize("name", [name for family in networks.SEGMENTATION.values() for name in family.published])
def test_a_published_checkpoint_is_recognised(name: str) -> None:
    with torch.device("meta"):
        state = dict(networks.published(name).state_dict())
    assert looks_like(state) == name
    del state[next(iter(state))]
    assert looks_like(state) == name


def test_the_wrong_network_is_named() -> None:
    with torch.device("meta"):
        state = dict(networks.published("ssformer_l").state_dict())
        network = networks.published("pranet")
    with pytest.raises(CheckpointMismatch, match="this looks like ssformer_l"):
        load_strictly(network, state, name="pranet", file="x.pth")
    assert looks_like({"weight": torch.zeros(3)}) is None


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("touched"),))


def test_a_pickle_with_code_is_refused_and_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.pth").write_bytes(pickle.dumps({"state_dict": _Evil()}))
    torch.save({"net": _Evil()}, tmp_path / "evil2.pth")
    for name in ("evil.pth", "evil2.pth"):
        with pytest.raises(MedtestError, match="runs no code of a checkpoint"):
            read_state(tmp_path / name)
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04broken", b"\x80\x02}q\x00.", b"torn"])
def test_damaged_files_are_mistakes(content: bytes, tmp_path: Path) -> None:
    for suffix in (".pth", ".safetensors"):
        path = tmp_path / f"c{suffix}"
        path.write_bytes(content)
        with pytest.raises(MedtestError):
            read_state(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html><html><title>Google Drive - Virus scan warning</title></html>", "web page"),
        (b"\n <HTML lang=en>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "git lfs pull"),
    ],
)
def test_downloads_other_than_checkpoints_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    """A page saved as PraNet-19.pth is the commonest broken download; converting it does not help."""
    for suffix in (".pth", ".safetensors"):
        path = tmp_path / f"PraNet-19{suffix}"
        path.write_bytes(content)
        with pytest.raises(MedtestError, match=message) as caught:
            read_state(path)
        assert "convert" not in str(caught.value)


def test_a_file_without_weights_lists_its_content(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "optimizer": {"lr": 0.1}}, tmp_path / "c.pth")
    with pytest.raises(MedtestError, match="no weights were found in this file; it holds epoch, optimizer"):
        read_state(tmp_path / "c.pth")


def test_tensors_other_than_plain_arrays_are_refused(tmp_path: Path) -> None:
    torch.save({"a.weight": torch.eye(3).to_sparse()}, tmp_path / "sparse.pth")
    torch.save({"a.weight": torch.empty(3, device="meta")}, tmp_path / "meta.pth")
    for name in ("sparse.pth", "meta.pth"):
        with pytest.raises(MedtestError, match=r"a\.weight is not a plain array"):
            read_state(tmp_path / name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ssformer_s", "ssformer_l"])
def test_ssformers_sizes_are_told_apart(name: str, tmp_path: Path) -> None:
    torch.save({"state_dict": networks.published(name).state_dict()}, tmp_path / "s.pth")
    recognised, network = load_published(tmp_path / "s.pth", ("ssformer_s", "ssformer_l"))
    assert recognised == name
    assert len(network.state_dict()) == {"ssformer_s": 366, "ssformer_l": 866}[name]
