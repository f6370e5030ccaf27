"""The state of a training on disk: atomic writes, and refusals of foreign states."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch

from medtest.core.errors import MedtestError
from medtest.core.files import json_sha256
from medtest.training.engine.state import load_state, write_state

WHOSE = {"recipe": "a", "data": "b"}
STATE = {"identity": json_sha256(WHOSE), "step": 3, "network": {"weight": torch.arange(6.0).reshape(2, 3)}}


@pytest.mark.parametrize("mapped", [False, True])
def test_a_written_state_is_read_back(tmp_path: Path, mapped: bool) -> None:
    write_state(STATE, tmp_path / "state.pt")
    loaded = load_state(tmp_path / "state.pt", device="cpu", identity=WHOSE, mapped=mapped)
    assert loaded["step"] == 3
    assert torch.equal(loaded["network"]["weight"], STATE["network"]["weight"])
    assert [path.name for path in tmp_path.iterdir()] == ["state.pt"]


def test_a_state_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    write_state(STATE, tmp_path / "state.pt")
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        write_state({**STATE, "step": lambda: 4}, tmp_path / "state.pt")
    assert load_state(tmp_path / "state.pt", device="cpu", identity=WHOSE)["step"] == 3


class Harmful:
    """A pickle that runs a command."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("run",)


def test_a_foreign_file_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "state.pt"
    write_state(STATE, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MedtestError, match=r"^state\.pt: the state of this training cannot be read"):
        load_state(path, device="cpu", identity=WHOSE)
    torch.save({"step": 3}, path)  # says not whose it is
    with pytest.raises(MedtestError, match="cannot be read: 'identity'"):
        load_state(path, device="cpu", identity=WHOSE)
    torch.save({"identity": Harmful()}, path)
    with pytest.raises(MedtestError, match="cannot be read"):
        load_state(path, device="cpu", identity=WHOSE)
    assert capsys.readouterr().out == ""


def test_a_state_of_another_training_or_version_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    write_state(STATE, path)
    with pytest.raises(MedtestError, match=r"another recipe, other options.*fresh=true"):
        load_state(path, device="cpu", identity={**WHOSE, "data": "c"})
    torch.save(STATE, path)  # as the version before wrote it
    with pytest.raises(MedtestError, match=r"another version of medtest"):
        load_state(path, device="cpu", identity=WHOSE)
