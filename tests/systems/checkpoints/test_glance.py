"""Names of a checkpoint's weights are read in the parent process: without torch, without running anything."""

from __future__ import annotations

import pickle
import resource
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.glance import names_in
from medtest.systems.pytorch import networks

STATE = {
    "a.weight": torch.ones(2, 3),
    "a.bias": torch.nn.Parameter(torch.ones(2)),
    "b.num_batches_tracked": torch.tensor(0),
}
NAMES = frozenset({"a.weight", "a.bias"})


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("touched"),))


@pytest.mark.parametrize("new", [True, False], ids=["zip", "old"])
@pytest.mark.parametrize(
    "content",
    [
        STATE,
        OrderedDict(STATE),
        {"state_dict": {f"module.{key}": value for key, value in STATE.items()}, "epoch": 3},
        {"model": OrderedDict(STATE) | {"a.total_ops": torch.zeros(1)}, "optimizer": {"lr": 0.1, "betas": (1, 2)}},
        {"net": STATE, "options": _Evil(), "history": [_Evil()], "device": torch.device("cpu"), "kind": torch.float16},
    ],
)
def test_names_are_read_without_running_code(
    content: object, new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(content, tmp_path / "c.pth", _use_new_zipfile_serialization=new)
    assert names_in(tmp_path / "c.pth") == NAMES
    assert not (tmp_path / "touched").exists()


def test_safetensors_too(tmp_path: Path) -> None:
    save_file({f"module.{key}": value.detach() for key, value in STATE.items()}, tmp_path / "c.safetensors")
    assert names_in(tmp_path / "c.safetensors") == NAMES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=200), st.binary(max_size=60).map(lambda tail: b"\x80\x02" + tail)))
def test_any_bytes_are_a_mistake_and_not_a_crash(content: bytes, tmp_path: Path) -> None:
    for name in ("c.pth", "c.safetensors"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(MedtestError):
            names_in(tmp_path / name)


def test_pickles_of_other_things_are_mistakes(tmp_path: Path) -> None:
    for content in ([1, 2], {"a": 1}, _Evil, "text"):
        torch.save(content, tmp_path / "c.pth")
        with pytest.raises(MedtestError):
            names_in(tmp_path / "c.pth")
        (tmp_path / "c.pth").write_bytes(pickle.dumps(content))
        with pytest.raises(MedtestError):
            names_in(tmp_path / "c.pth")


def test_a_memo_of_many_gigabytes_is_not_made(tmp_path: Path) -> None:
    """Fourteen bytes: put one object at place 4,294,967,295 of the memo."""
    (tmp_path / "c.pth").write_bytes(b"\x80\x02}r\xff\xff\xff\xff.")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MedtestError):
        names_in(tmp_path / "c.pth")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ssformer_s", "ssformer_l"])
def test_the_parent_distinguishes_s_from_l_without_torch(name: str, tmp_path: Path) -> None:
    """A run needs the record's name in a process that loads nothing heavy."""
    with torch.device("meta"):
        keys = networks.published(name).state_dict()
    torch.save({"state_dict": {f"module.{key}": torch.zeros(1) for key in keys}}, tmp_path / "c.pth")
    code = (
        "import sys\n"
        "from medtest.core.plugins import part\n"
        "info = part('systems', 'ssformer')\n"
        "kind = info.load()\n"
        "made = kind('ssformer', kind.Settings(**{**info.defaults, 'checkpoint': sys.argv[1]}))\n"
        "print(made.record_name, made.check(), sorted(made.fingerprint()), 'torch' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "c.pth")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == f"{name} [] ['weights_sha256'] False"
