"""Systems that run given functions, ONNX graphs and TorchScript archives."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapter_parts import IMAGE, make_system

from medtest.core.cases import Address
from medtest.core.errors import BadOutput, MedtestError
from medtest.core.tasks.border import check_mask
from medtest.systems.base import System

ADDRESS = Address(dataset="set", seed_id="a1")
RED = IMAGE[..., 0] > 100


def _ask(system: System, *images: np.ndarray) -> list[Any]:
    assert not system.check()
    system.open(device="cpu", threads=1)
    return list(system.predict(images or [IMAGE], [ADDRESS] * max(1, len(images))))


# ---------------------------------------------------------------------------------------------------------- callable

CODE = """
import numpy as np

def red(image):
    assert image.dtype == np.uint8 and image.ndim == 3
    return image[..., 0] > 100

def reds(images):
    assert images.ndim == 4
    return [red(image) for image in images]

def spoils(image):
    image[:] = 0
    return image[..., 0] > 100

def short(images):
    return [red(images[0])]

def number(images):
    return 3

class Network:
    def __init__(self, device):
        self.device = device
    def __call__(self, image):
        return np.full(image.shape[:2], float(self.device == "cpu"))

class Broken:
    def __init__(self):
        raise ValueError("no weights")

constant = 4
"""


@pytest.mark.parametrize("folder", ["plain", "with space", "br[ack]et=s", "ünï"])
def test_a_function_in_a_file_is_called(folder: str, tmp_path: Path) -> None:
    path = tmp_path / folder / "net.py"
    path.parent.mkdir()
    path.write_text(CODE, encoding="utf-8")
    system = make_system("callable", target=f"{path}:red")
    assert np.array_equal(check_mask(_ask(system)[0], RED.shape).mask, RED)
    fingerprint = system.fingerprint()
    assert fingerprint == {"function": "red", "file_sha256": hashlib.sha256(CODE.encode()).hexdigest()}
    path.write_text(CODE + "\n", encoding="utf-8")
    assert system.fingerprint() != fingerprint
    assert system.record_name == "callable"


def test_a_function_of_a_module_in_the_working_directory_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    (tmp_path / "mynets").mkdir()
    (tmp_path / "mynets" / "__init__.py").touch()
    (tmp_path / "mynets" / "one.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert np.array_equal(_ask(make_system("callable", target="mynets.one:red"))[0], RED)


def test_a_package_with_a_failing_import_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    (tmp_path / "brokenpackage").mkdir()
    (tmp_path / "brokenpackage" / "__init__.py").write_text("raise RuntimeError('no driver')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (mistake,) = make_system("callable", target="brokenpackage.net:f").check()
    assert "RuntimeError: no driver" in mistake.found


def test_batches_classes_and_private_copies(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(CODE, encoding="utf-8")
    batch = _ask(make_system("callable", target=f"{path}:reds", batch=True), IMAGE, IMAGE[:, ::-1])
    assert np.array_equal(batch[1], RED[:, ::-1])
    other_sizes = _ask(make_system("callable", target=f"{path}:reds", batch=True), IMAGE, IMAGE[:16])
    assert [answer.shape for answer in other_sizes] == [(32, 48), (16, 48)]
    assert _ask(make_system("callable", target=f"{path}:Network"))[0].all()
    before = IMAGE.copy()
    _ask(make_system("callable", target=f"{path}:spoils"))
    assert np.array_equal(IMAGE, before)
    for name in ("short", "number"):
        with pytest.raises(BadOutput):
            _ask(make_system("callable", target=f"{path}:{name}", batch=True), IMAGE, IMAGE)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("", "nothing"),
        ("net.py", "net.py"),
        ("missing.py:f", "no such file"),
        ("no.such.module:f", "cannot be found"),
        ("os.system('x'):f", "not a module's name"),
        ("json:2", "json:2"),
    ],
)
def test_a_wrong_target_is_a_mistake_before_the_run(target: str, reason: str) -> None:
    (mistake,) = make_system("callable", target=target).check()
    assert reason in mistake.found
    assert "function" in mistake.allowed or "file" in mistake.allowed


def test_a_function_missing_in_the_file_is_a_mistake_before_the_run(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(CODE, encoding="utf-8")
    (mistake,) = make_system("callable", target=f"{path}:rad").check()
    assert mistake.found == "net.py has no 'rad'" and mistake.nearest == "red" and "Network" in mistake.allowed
    assert not make_system("callable", target=f"{path}:red").check()
    for unseen in ("from os.path import *", "globals()['red'] = print", "def __getattr__(name): return print", "1 +"):
        path.write_text(unseen, encoding="utf-8")  # only importing tells, or says what is wrong
        assert not make_system("callable", target=f"{path}:red").check()


@pytest.mark.parametrize(
    ("name", "reason"),
    [("rad", "did you mean: red"), ("constant", "not callable"), ("Broken", "ValueError: no weights")],
)
def test_a_target_that_cannot_be_called_is_a_mistake(name: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(CODE, encoding="utf-8")
    with pytest.raises(MedtestError, match=reason):
        make_system("callable", target=f"{path}:{name}").open(device="cpu", threads=1)
    path.write_text("import sys; sys.exit('no licence')", encoding="utf-8")
    with pytest.raises(MedtestError, match="SystemExit: no licence"):
        make_system("callable", target=f"{path}:f").open(device="cpu", threads=1)
    path.write_text("import nothing_of_that_name", encoding="utf-8")
    with pytest.raises(MedtestError, match="ModuleNotFoundError"):
        make_system("callable", target=f"{path}:f").open(device="cpu", threads=1)


# ------------------------------------------------------------------------------------------------- ONNX, TorchScript


def _graph(path: Path, *, batch: int | str, side: int | str, nhwc: bool = False) -> None:
    """Save a graph that gives 20 times red minus 10: a logit, where red is in [0, 1] after scaling."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    shape = [batch, side, side, 3] if nhwc else [batch, 3, side, side]
    axis = 3 if nhwc else 1
    nodes = [
        helper.make_node("Gather", ["image", "first"], ["red"], axis=axis),
        helper.make_node("Mul", ["red", "twenty"], ["scaled"]),
        helper.make_node("Sub", ["scaled", "ten"], ["logit"]),
    ]
    constants = [
        numpy_helper.from_array(np.array([0], np.int64), "first"),
        numpy_helper.from_array(np.array(20, np.float32), "twenty"),
        numpy_helper.from_array(np.array(10, np.float32), "ten"),
    ]
    graph = helper.make_graph(
        nodes,
        "red",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("logit", TensorProto.FLOAT, None)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


PLAIN = {"mean": [0.0, 0.0, 0.0], "std": [1.0, 1.0, 1.0]}


@pytest.mark.parametrize(
    ("batch", "side", "nhwc"), [("N", "S", False), (1, 64, False), (2, 64, False), ("N", 64, True)]
)
def test_an_onnx_graph_is_run(batch: int | str, side: int | str, nhwc: bool, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    path = tmp_path / "my net [1]=x.onnx"
    _graph(path, batch=batch, side=side, nhwc=nhwc)
    system = make_system("onnx", path=str(path), layout="nhwc" if nhwc else "nchw", **PLAIN)
    answers = _ask(system, IMAGE, IMAGE[:, ::-1], IMAGE)
    assert len(answers) == 3
    assert answers[0].shape == ((32, 48) if side == "S" else (64, 64))
    # logits are ±: 20·200/255 - 10 = 5.69 on red, -10 elsewhere
    assert answers[0].max() == pytest.approx(1 / (1 + np.exp(-5.686)), abs=1e-3)
    masks = [check_mask(answer, RED.shape).mask for answer in answers]
    assert np.array_equal(masks[0], RED)
    assert np.array_equal(masks[1], RED[:, ::-1])
    blue = make_system("onnx", path=str(path), layout="nhwc" if nhwc else "nchw", channels="bgr", **PLAIN)
    assert not check_mask(_ask(blue)[0], RED.shape).mask.any()


def test_a_file_without_a_graph_is_a_mistake(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "x.onnx").write_bytes(b"no graph")
    with pytest.raises(MedtestError, match="cannot run this graph"):
        make_system("onnx", path=str(tmp_path / "x.onnx")).open(device="cpu", threads=1)
    (mistake,) = make_system("onnx", path=str(tmp_path / "y.onnx")).check()
    assert mistake.nearest == "x.onnx"


def test_a_missing_onnxruntime_gives_a_message_with_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    (tmp_path / "x.onnx").write_bytes(b"graph")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MedtestError, match="pip install"):
        make_system("onnx", path=str(tmp_path / "x.onnx")).open(device="cpu", threads=1)


def test_a_torchscript_archive_is_run(tmp_path: Path) -> None:
    import torch

    class Red(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            logit = x[:, :1] * 20 - 10
            return torch.cat([-logit, logit], 1), logit * 0

    path = tmp_path / "red.pt"
    torch.jit.script(Red()).save(str(path))
    system = make_system("torchscript", path=str(path), output=0, channel=1, **PLAIN)
    first, second = _ask(system, IMAGE, IMAGE[:16])
    assert np.array_equal(check_mask(first, RED.shape).mask, RED)
    assert second.shape == (16, 48)
    # softmax of (-z, z) is the sigmoid of 2z
    assert first.max() == pytest.approx(1 / (1 + np.exp(-2 * 5.686)), abs=1e-3)
    sized = make_system("torchscript", path=str(path), output=0, channel=0, size=[64, 96], **PLAIN)
    assert np.array_equal(check_mask(_ask(sized)[0], RED.shape).mask, ~RED)
    with pytest.raises(BadOutput, match="channel=5"):
        _ask(make_system("torchscript", path=str(path), output=0, channel=5, **PLAIN))
    with pytest.raises(BadOutput, match="output=7"):
        _ask(make_system("torchscript", path=str(path), output=7, **PLAIN))
    (tmp_path / "state.pt").write_bytes(b"something else")
    with pytest.raises(MedtestError, match="not a TorchScript archive"):
        make_system("torchscript", path=str(tmp_path / "state.pt")).open(device="cpu", threads=1)


def _give(values: np.ndarray, **settings: Any) -> np.ndarray:
    from medtest.systems.adapters.tensors import GraphSettings, decode

    return np.asarray(decode([values], GraphSettings(**settings), 1)[0])


def test_logits_probabilities_and_labels_are_not_confused() -> None:
    random = np.random.default_rng(0)
    logits = random.normal(0, 4, (1, 1, 16, 16)).astype(np.float32)
    probability = 1 / (1 + np.exp(-logits))
    assert _give(logits) == pytest.approx(probability[0, 0], abs=1e-6)
    assert np.array_equal(_give(probability, gives="probability"), probability[0, 0])
    with pytest.raises(BadOutput, match="gives=probability"):
        _give(probability)
    with pytest.raises(BadOutput, match="gives=logits"):
        _give(logits, gives="probability")
    two = np.concatenate([-logits, logits], axis=1)
    shares = np.exp(two) / np.exp(two).sum(axis=1, keepdims=True)
    assert _give(two) == pytest.approx(shares[0, 1], abs=1e-6)
    with pytest.raises(BadOutput, match="gives=probability"):
        _give(shares)
    labels = (logits[:, 0] > 0).astype(np.int64)
    for gives in ("logits", "probability"):
        with pytest.raises(BadOutput, match="gives=classes"):
            _give(labels, gives=gives)
    assert np.array_equal(_give(labels, gives="classes"), labels[0] == 1)
    assert np.array_equal(_give(labels == 1), labels[0] == 1)
    # a network that is sure of nothing stays what it is: faint logits
    assert (_give(np.full((1, 1, 4, 4), 0.3, np.float32)) > 0.5).all()


def test_a_graph_of_another_layout_is_a_mistake(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    _graph(tmp_path / "x.onnx", batch=1, side=64, nhwc=True)
    with pytest.raises(MedtestError, match="layout=nhwc is what fits"):
        make_system("onnx", path=str(tmp_path / "x.onnx")).open(device="cpu", threads=1)
