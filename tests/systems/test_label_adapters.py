"""Contract tests of adapters that answer with labels: inputs, outputs and refusals of each."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medtest.core.cases import Address, Classes
from medtest.core.errors import BadOutput, MedtestError
from medtest.core.plugins import part
from medtest.systems.base import Missing, System
from medtest.systems.classification.answers import check_label

NAMES = ("normal", "vascular", "inflammatory")
THREE = Classes(names=NAMES)
MANY = Classes(names=NAMES, multi=True)
SOURCE = Address(dataset="set", seed_id="a1")
BLUR = Address(dataset="set", seed_id="a1", relation="blur", severity=3, frame=2)
IMAGE = np.zeros((32, 48, 3), np.uint8)
IMAGE[..., 1] = 200


def system_of(name: str, **settings: Any) -> System:
    info = part("systems", name)
    kind = info.load()
    system: System = kind("mine", kind.Settings(**{**info.defaults, **settings}))
    system.kind = "label"
    return pickle.loads(pickle.dumps(system))  # as a worker gets it  # noqa: S301


def ask(system: System, *addresses: Address, classes: Classes = THREE) -> list[Any]:
    assert not system.check()
    system.open(device="cpu", threads=1)
    where = addresses or (SOURCE,)
    raw = system.predict([IMAGE] * len(where), where)
    checked = []
    for raw_answer in raw:
        if isinstance(raw_answer, Missing):
            checked.append(raw_answer)
            continue
        checked.append(
            check_label(raw_answer, expected=classes, own=system.classes, form=system.answer_form, shape=(32, 48))
        )
    return checked


# ---------------------------------------------------------------------------------------------------------- callable

CODE = """
import numpy as np
from medtest.systems.base import LabelAnswer

def share(image):
    assert image.dtype == np.uint8 and image.shape == (32, 48, 3)
    return image.reshape(-1, 3).mean(axis=0) / image.reshape(-1, 3).mean(axis=0).sum()

def logits(image):
    return image.reshape(-1, 3).mean(axis=0).tolist()

def name(image):
    return NAMES[int(np.argmax(logits(image)))]

NAMES = ["inflammatory", "vascular", "normal"]

def shares(images):
    return np.stack([share(image) for image in images])

def named(image):
    return {"vascular": 0.5, "normal": 0.25, "inflammatory": 0.25}

def with_mask(image):
    return LabelAnswer(scores=share(image), mask=image[..., 1] > 100)

def several(image):
    return ["normal", "inflammatory"]
"""


@pytest.fixture
def code(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(CODE)
    return str(path)


@pytest.mark.parametrize(
    ("function", "settings"),
    [
        ("share", {}),
        ("shares", {"batch": True}),
        ("logits", {"gives": "logits"}),
        ("name", {"gives": "classes"}),
        ("named", {}),
        ("with_mask", {}),
    ],
)
def test_a_function_answers_in_any_form(code: str, function: str, settings: dict[str, Any]) -> None:
    (answer,) = ask(system_of("callable", target=f"{code}:{function}", **settings))
    assert answer.labels == ("vascular",)
    assert (answer.mask is not None) == (function == "with_mask")
    assert (answer.probabilities is None) == (function == "name")


def test_a_function_names_its_own_order(code: str) -> None:
    turned = system_of("callable", target=f"{code}:share", classes=["vascular", "inflammatory", "normal"])
    (answer,) = ask(turned)
    assert answer.labels == ("inflammatory",), "its second score is of inflammatory"


def test_several_labels_of_a_function(code: str) -> None:
    (answer,) = ask(system_of("callable", target=f"{code}:several", gives="classes"), classes=MANY)
    assert answer.labels == ("normal", "inflammatory")


def test_settings_of_labels_do_not_change_other_digests(code: str) -> None:
    from medtest.core.tasks.base import task_of
    from medtest.suite.compose import load_suite
    from medtest.suite.digest import _counted_settings

    suite = load_suite("polyp_seg", ["model=callable", f"target={code}:share"])
    assert _counted_settings(suite.systems[0], task_of("mask")) == {"batch": False}
    assert set(_counted_settings(suite.systems[0], task_of("label"))) == {"batch", "gives", "classes", "multi"}


# ------------------------------------------------------------------------------------------------ TorchScript, ONNX


class _Pool:
    """A network of one line, made only if torch is installed."""

    @staticmethod
    def module(rank: int = 2) -> Any:
        import torch

        class Pool(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                means = x.mean(dim=(2, 3)) * 4
                return means if rank == 2 else means[:, :, None, None]

        return Pool().eval()


@pytest.mark.parametrize("rank", [2, 4])
def test_torchscript_gives_logits(tmp_path: Path, rank: int) -> None:
    import torch

    path = tmp_path / "pool.pt"
    traced = torch.jit.trace(_Pool.module(rank), torch.zeros(1, 3, 8, 8))
    torch.jit.save(traced, str(path))
    plain: dict[str, Any] = {"path": str(path), "mean": [0.0, 0.0, 0.0], "std": [1.0, 1.0, 1.0], "size": [16, 16]}
    first, second = ask(system_of("torchscript", **plain), SOURCE, BLUR)
    assert first.labels == second.labels == ("vascular",)
    score = 4 * 200 / 255
    assert first.probabilities[1] == pytest.approx(np.exp(score) / (np.exp(score) + 2), abs=1e-4)
    (several,) = ask(system_of("torchscript", **plain, classes=list(NAMES), multi=True), classes=MANY)
    assert several.labels == ("vascular",) and several.probabilities[0] == pytest.approx(0.5, abs=1e-6)


def test_a_map_does_not_answer_a_question_for_labels(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "same.pt"
    torch.jit.save(torch.jit.trace(torch.nn.Identity(), torch.zeros(1, 3, 8, 8)), str(path))
    with pytest.raises(BadOutput, match="B×C scores"):
        ask(system_of("torchscript", path=str(path)))


@pytest.mark.parametrize("gives", ["logits", "probability", "classes"])
def test_onnx_outputs_are_read_as_configured(tmp_path: Path, gives: str) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], axes=[2, 3], keepdims=0)]
    if gives == "probability":
        nodes.append(helper.make_node("Softmax", ["m"], ["y"], axis=1))
    elif gives == "classes":
        nodes.append(helper.make_node("ArgMax", ["m"], ["y"], axis=1, keepdims=0))
    else:
        nodes.append(helper.make_node("Identity", ["m"], ["y"]))
    shape, kind = (["b"], kinds.INT64) if gives == "classes" else (["b", 3], kinds.FLOAT)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kinds.FLOAT, ["b", 3, "h", "w"])],
        [helper.make_tensor_value_info("y", kind, shape)],
    )
    path = tmp_path / "g.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, str(path))
    answers = ask(system_of("onnx", path=str(path), gives=gives), SOURCE, BLUR, SOURCE)
    assert [answer.labels for answer in answers] == [("vascular",)] * 3
    assert all((answer.probabilities is None) == (gives == "classes") for answer in answers)


# ------------------------------------------------------------------------------------------------------- predictions


def table(folder: Path, text: str, name: str = "answers.csv") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder


def test_tables_of_numbers_by_address_and_by_file(tmp_path: Path) -> None:
    folder = table(tmp_path, "address,vascular,normal,inflammatory\nset/a1,0.7,0.2,0.1\n")
    table(tmp_path, "file,normal,vascular,inflammatory\nset/a1/blur_s3_f2_r0.png,0.7,0.2,0.1\n", "more.csv")
    answers = ask(system_of("predictions", folder=str(folder)), SOURCE, BLUR, Address(dataset="set", seed_id="a2"))
    assert [getattr(answer, "labels", None) for answer in answers] == [("vascular",), ("normal",), None]
    assert isinstance(answers[2], Missing)


def test_the_manifest_of_an_export_may_be_filled_in(tmp_path: Path) -> None:
    text = (
        "address,file,params,scale,sha256,skipped,label\nset/a1/source_s0_f0_r0,set/a1.png,{},0,ab,,normal|vascular\n"
    )
    answers = ask(system_of("predictions", folder=str(table(tmp_path, text)), values="labels"), classes=MANY)
    assert answers[0].labels == ("normal", "vascular")


def test_logits_and_a_data_set_that_is_left_out(tmp_path: Path) -> None:
    text = "address,normal,vascular,inflammatory\na1/blur_s3_f2_r0,-1,3.5,0\n"
    answers = ask(system_of("predictions", folder=str(table(tmp_path, text)), values="logits"), BLUR)
    assert answers[0].labels == ("vascular",) and float(answers[0].probabilities.sum()) == pytest.approx(1)


def test_files_of_one_case(tmp_path: Path) -> None:
    (tmp_path / "set" / "a1").mkdir(parents=True)
    (tmp_path / "set" / "a1.json").write_text(json.dumps({"vascular": 1, "normal": 0, "inflammatory": 0.0}))
    np.save(tmp_path / "set" / "a1" / "blur_s3_f2_r0.npy", np.array([0.1, 0.2, 0.7]))
    first, second = ask(system_of("predictions", folder=str(tmp_path)), SOURCE, BLUR)
    assert first.labels == ("vascular",) and second.labels == ("inflammatory",)
    (tmp_path / "set" / "a1.json").unlink()
    (tmp_path / "set" / "a1.txt").write_text("normal\ninflammatory\n")
    (answer,) = ask(system_of("predictions", folder=str(tmp_path), values="labels"), classes=MANY)
    assert answer.labels == ("normal", "inflammatory")


@pytest.mark.parametrize(
    ("line", "message"), [("set/a1,0.5,,0.5", "NaN"), ("set/a1,0.5,x,0.5", "NaN"), ("set/a1,0.5,0.5,0.5", "sum")]
)
def test_bad_numbers_are_errors_of_their_case(tmp_path: Path, line: str, message: str) -> None:
    folder = table(tmp_path, f"address,normal,vascular,inflammatory\n{line}\n")
    with pytest.raises(BadOutput, match=message):
        ask(system_of("predictions", folder=str(folder)))


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("name,label\nx,normal\n", {}, "column address or file"),
        ("address,label\nx,normal\n", {}, "values=labels"),
        ("address,normal\nx,1\n", {"values": "labels"}, "values=probability"),
        ("", {}, "column address or file"),
    ],
)
def test_tables_that_hold_something_else_are_a_users_mistake(
    tmp_path: Path, text: str, settings: dict[str, Any], message: str
) -> None:
    (mistake,) = system_of("predictions", folder=str(table(tmp_path, text)), **settings).check()
    assert message in f"{mistake.found} {mistake.fix}" and "answers.csv" in mistake.found


def test_an_empty_folder_and_logits_of_maps(tmp_path: Path) -> None:
    (mistake,) = system_of("predictions", folder=str(tmp_path)).check()
    assert "no table" in mistake.found
    maps = system_of("predictions", folder=str(tmp_path), values="logits")
    maps.kind = "mask"
    assert maps.check()[0].key == "values"


def test_seed_ids_do_not_climb_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    table(tmp_path / "inside", "address,label\nother,normal\n")
    (tmp_path / "secret.txt").write_text("normal")
    system = system_of("predictions", folder=str(tmp_path / "inside"), values="labels")
    (answer,) = ask(system, Address(dataset="..", seed_id="secret"))
    assert isinstance(answer, Missing)


def test_a_torn_table_is_a_mistake_before_the_run(tmp_path: Path) -> None:
    folder = table(tmp_path, "address,label\nset/a1,normal\n")
    (folder / "torn.csv").write_bytes(b"\xff\xfe\x00\x01")
    system = system_of("predictions", folder=str(folder), values="labels")
    assert "cannot be read" in system.check()[0].found
    with pytest.raises(MedtestError, match=r"torn\.csv cannot be read"):
        system.open(device="cpu", threads=1)
