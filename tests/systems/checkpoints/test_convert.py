from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from medtest.cli.models.weights import app
from medtest.core.errors import MedtestError, UserMistakes
from medtest.systems.checkpoints.checkpoint import NeedsTrust, looks_like, read_state
from medtest.systems.checkpoints.convert import convert

STATE = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.bias": torch.ones(2)}


def _yes() -> bool:
    return True


def _no() -> bool:
    return False


class _Leaves:
    """Code in a checkpoint: makes a file when it is read."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (self.where, "w"))


def _equals_state(path: Path) -> bool:
    read = read_state(path)
    return read.keys() == STATE.keys() and all(torch.equal(read[key], STATE[key]) for key in STATE)


def test_what_needs_no_trust_is_converted_without_a_question(tmp_path: Path) -> None:
    wrapped = {f"module.{key}": value for key, value in STATE.items()} | {"module.a.total_ops": torch.zeros(1)}
    torch.save({"state_dict": wrapped, "epoch": 3}, tmp_path / "old.tar")
    for name in ("new.safetensors", "new.pth"):
        state = convert(str(tmp_path / "old.tar"), str(tmp_path / name), trusted=_no)
        assert (len(state), looks_like(state)) == (2, None)
        assert _equals_state(tmp_path / name)


class _Chatty:
    """Prints without end of line when it is read, as code of a training script may."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("import sys; sys.stdout.write('loading')",))


class _Settings(dict[str, Any]):
    """Settings like those of yacs and easydict: a subclass of dict."""


class _History(list[float]):
    """A subclass of list."""


@pytest.mark.slow
def test_an_old_pickle_is_converted_only_with_trust_runs_elsewhere_and_needs_no_library_of_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yacs = ModuleType("some_config_lib")
    for kind in (_Settings, _History):
        monkeypatch.setattr(kind, "__module__", "some_config_lib")
        setattr(yacs, kind.__name__, kind)
    monkeypatch.setitem(sys.modules, "some_config_lib", yacs)
    trace = tmp_path / "touched"
    settings = {"cfg": _Settings(lr=0.1), "losses": _History([1.0, 0.5]), "log": _Chatty()}
    torch.save({"model": STATE, "options": _Leaves(str(trace)), **settings}, tmp_path / "old.pth")
    with pytest.raises(NeedsTrust, match="medtest weights convert .*old.pth old.safetensors"):
        read_state(tmp_path / "old.pth")
    target = tmp_path / "new.safetensors"
    with pytest.raises(MedtestError, match="did not confirm that you trust it"):
        convert(str(tmp_path / "old.pth"), str(target), trusted=_no)
    assert not trace.exists()
    assert not target.exists()
    assert len(convert(str(tmp_path / "old.pth"), str(target), trusted=_yes)) == 2
    assert trace.exists()
    assert _equals_state(target)


@pytest.mark.slow
def test_a_pickled_model_needs_none_of_its_authors_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authors = ModuleType("authors_lib")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Linear(3, 2)

    Net.__module__, Net.__qualname__ = "authors_lib", "Net"
    authors.Net = Net  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "authors_lib", authors)
    network = Net()
    network.load_state_dict(STATE)
    torch.save(network, tmp_path / "whole.pt")
    convert(str(tmp_path / "whole.pt"), str(tmp_path / "new.pth"), trusted=_yes)
    assert _equals_state(tmp_path / "new.pth")


def test_a_few_bytes_with_a_large_declared_size_are_not_written_out(tmp_path: Path) -> None:
    torch.save({"a.weight": torch.zeros(1).expand(1 << 40)}, tmp_path / "old.pth")
    with pytest.raises(MedtestError, match="claims 1,099,511,627,776 numbers and holds 4 bytes"):
        convert(str(tmp_path / "old.pth"), str(tmp_path / "new.safetensors"), trusted=_no)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.pth"]


@pytest.mark.slow
def test_mistakes_are_named(tmp_path: Path) -> None:
    torch.save(STATE, tmp_path / "old.pth")
    old = str(tmp_path / "old.pth")
    for target, message in (
        (tmp_path / "new.txt", "safetensors"),
        (tmp_path / "old.pth", "another file"),
        (tmp_path / "nowhere" / "new.pth", "no such folder"),
    ):
        with pytest.raises(UserMistakes) as caught:
            convert(old, str(target), trusted=_no)
        assert message in str(caught.value)
    (tmp_path / "new.pth").write_bytes(b"mine")
    with pytest.raises(UserMistakes, match="mistake"):
        convert(old, str(tmp_path / "new.pth"), trusted=_no)
    convert(old, str(tmp_path / "new.pth"), trusted=_no, overwrite=True)
    assert _equals_state(tmp_path / "new.pth")
    torch.save({"o": Path}, tmp_path / "empty.pth")
    with pytest.raises(MedtestError, match="no weights"):
        convert(str(tmp_path / "empty.pth"), str(tmp_path / "x.pth"), trusted=_yes)
    assert not (tmp_path / "x.pth").exists()


@pytest.mark.slow
def test_the_command_asks_and_takes_no_for_an_answer(tmp_path: Path) -> None:
    plain = {"model": {key: value.numpy() for key, value in STATE.items()}, "o": Path}
    (tmp_path / "old.pth").write_bytes(pickle.dumps(plain))  # not written by torch.save
    arguments = ["convert", str(tmp_path / "old.pth"), str(tmp_path / "new.safetensors")]
    with pytest.raises(MedtestError, match="did not confirm"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)  # no answer at the terminal
    done = CliRunner().invoke(app, [*arguments, "--i-trust-this-file"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "2 tensors" in done.output
    assert _equals_state(tmp_path / "new.safetensors")
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "new.safetensors")], catch_exceptions=False)
    assert "unknown" in shown.output
    assert "8 numbers" in shown.output
