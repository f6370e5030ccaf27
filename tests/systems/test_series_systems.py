"""Algorithms of every form as systems of a series: functions, graphs, folders of results, command-line tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from medtest.core.cases import Address, ImageSpec
from medtest.core.errors import BadOutput
from medtest.core.plugins import parts
from medtest.systems.adapters.image_files import read_image, write_image
from medtest.systems.base import Missing, System
from medtest.systems.restoration.base import from_levels, to_levels

GREY = ImageSpec(dtype="float32", axes="yx")
AT = Address(dataset="d", seed_id="s", relation="noise", severity=2)


def system_of(name: str, **settings: Any) -> System:
    info = parts("systems")[name]
    kind_ = info.load()
    kind = settings.pop("kind", kind_.tasks[0])
    system: System = kind_(name, kind_.Settings(**{**info.defaults, **settings}))
    system.kind = kind
    return system


def ask(system: System, image: np.ndarray, spec: ImageSpec) -> Any:
    system.open(device="cpu", threads=1)
    return system.process([image], [spec], [AT])[0]


SPECS = [
    (ImageSpec(axes="yx"), (20, 30)),
    (ImageSpec(axes="yxc"), (20, 30, 3)),
    (ImageSpec(dtype="uint16", high=65535, axes="yx"), (20, 30)),
    (ImageSpec(dtype="uint16", high=65535, axes="yxc"), (20, 30, 3)),
    (ImageSpec(dtype="float32", low=-200, high=300, axes="zyx", spacing=(3.0, 1.0, 0.5)), (4, 20, 30)),
    (ImageSpec(dtype="int16", low=-1000, high=1000, axes="zyx"), (4, 20, 30)),
]


def image_of(spec: ImageSpec, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).uniform(spec.low, spec.high, shape).astype(spec.dtype)


@pytest.mark.parametrize(("spec", "shape"), SPECS)
def test_controls(spec: ImageSpec, shape: tuple[int, ...]) -> None:
    image = image_of(spec, shape)
    assert np.array_equal(ask(system_of("identity"), image, spec), image)
    constant = ask(system_of("constant"), image, spec)
    assert np.allclose(constant, (spec.low + spec.high) / 2)
    grey = image.mean(-1) if spec.coloured else image
    assert np.array_equal(ask(system_of("identity", kind="region"), image, spec), grey > (spec.low + spec.high) / 2)
    assert not ask(system_of("constant", kind="region"), image, spec).any()


def test_grey_levels_go_there_and_back() -> None:
    for spec, shape in SPECS:
        image = image_of(spec, shape)
        levels = to_levels(image, spec)
        assert levels.min() >= -1e-3
        assert levels.max() <= 255.001
        assert np.allclose(from_levels(levels, spec), image, atol=spec.span * 1e-6)


# --- files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spec", "shape"), SPECS)
@pytest.mark.parametrize("ending", [".npy", ".nii.gz", ".png"])
def test_files_read_back_as_written(tmp_path: Path, spec: ImageSpec, shape: tuple[int, ...], ending: str) -> None:
    image = image_of(spec, shape)
    path = tmp_path / f"image{ending}"
    if ending == ".png" and len(shape) == 3 and not spec.coloured:
        with pytest.raises(BadOutput, match="cannot be a PNG"):
            write_image(path, image, spec)
        return
    write_image(path, image, spec)
    read_back = read_image(path, spec, max_bytes=10**7, max_values=10**6)
    assert read_back.shape == image.shape
    assert np.array_equal(read_back, image)


def test_a_volume_in_the_scanners_orientation_is_turned_to_medtests(tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    spec, shape = SPECS[4]
    image = image_of(spec, shape)
    write_image(tmp_path / "ours.nii.gz", image, spec)
    stored = nibabel.load(tmp_path / "ours.nii.gz")
    assert nibabel.aff2axcodes(stored.affine) == ("L", "P", "S")
    nibabel.save(nibabel.as_closest_canonical(stored), tmp_path / "ras.nii.gz")
    read_back = read_image(tmp_path / "ras.nii.gz", spec, max_bytes=10**7, max_values=10**6)
    assert np.array_equal(read_back, image)


def test_floats_in_a_png_are_rounded_to_their_range(tmp_path: Path) -> None:
    spec = ImageSpec(dtype="float32", low=-1, high=1, axes="yx")
    image = np.linspace(-1.5, 1.5, 600, dtype=np.float32).reshape(20, 30)
    write_image(tmp_path / "a.png", image, spec)
    read_back = read_image(tmp_path / "a.png", spec, max_bytes=10**7, max_values=10**6)
    assert np.allclose(read_back, np.clip(image, -1, 1), atol=1 / 255 + 1e-6)


def test_files_are_bounded_and_bad_ones_refused(tmp_path: Path) -> None:
    spec = ImageSpec(axes="yx")
    big = tmp_path / "big.npy"
    np.save(big, np.zeros((200, 200)))
    with pytest.raises(BadOutput, match="bound"):
        read_image(big, spec, max_bytes=10**7, max_values=100)
    with pytest.raises(BadOutput, match="MB"):
        read_image(big, spec, max_bytes=1000, max_values=10**6)
    picture = tmp_path / "big.png"
    cv2.imwrite(str(picture), np.zeros((200, 200), np.uint8))
    with pytest.raises(BadOutput, match="200 by 200"):
        read_image(picture, spec, max_bytes=10**7, max_values=100)
    for name in ("bad.png", "bad.npy", "bad.nii.gz"):
        (tmp_path / name).write_bytes(b"nonsense")
        with pytest.raises(BadOutput, match="bad"):
            read_image(tmp_path / name, spec, max_bytes=10**7, max_values=10**6)
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(BadOutput, match="cannot be read"):
        read_image(tmp_path / "object.npy", spec, max_bytes=10**7, max_values=10**6)
    eight = tmp_path / "eight.png"
    cv2.imwrite(str(eight), np.zeros((20, 20), np.uint8))
    with pytest.raises(BadOutput, match="uint16 is expected"):
        read_image(eight, ImageSpec(dtype="uint16", high=65535, axes="yx"), max_bytes=10**7, max_values=10**6)


# --- functions ----------------------------------------------------------------------------------------------------


def test_a_function_gets_the_image_and_on_request_its_spec(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    knowing = "def knowing(image, spec):\n    return image + spec.high\n"
    file.write_text(f"def plain(image):\n    return image + 1\n{knowing}")
    image = np.zeros((4, 5), np.float32)
    assert (ask(system_of("callable", target=f"{file}:plain"), image, GREY) == 1).all()
    assert (ask(system_of("callable", target=f"{file}:knowing"), image, GREY) == 255).all()
    assert not image.any()


# --- command-line tools -------------------------------------------------------------------------------------------

TOOL = """
import sys, time, numpy as np
mode, given, wanted = sys.argv[1:4]
if mode == "half":
    np.save(wanted, np.load(given) / 2)
elif mode == "fail":
    sys.stderr.write("no licence found in " + given + "\\n"); sys.exit(3)
elif mode == "sleep":
    time.sleep(3600)
elif mode == "flood":
    with open(wanted, "wb") as file:
        while True:
            file.write(b"0" * 2**20); file.flush()
elif mode == "label":
    np.save(wanted, (np.load(given) > 100).astype(np.uint8))
elif mode == "input":
    sys.stdout.write(repr(sys.stdin.read())); np.save(wanted, np.load(given))
"""


@pytest.fixture
def tool(tmp_path: Path) -> str:
    path = tmp_path / "tool.py"
    path.write_text(TOOL)
    return f"{sys.executable} {path}"


def command(tool: str, mode: str, **settings: Any) -> System:
    return system_of("command", command=f"{tool} {mode} {{input}} {{output}}", format="npy", **settings)


def test_a_tool_answers(tool: str) -> None:
    image = np.full((6, 7), 80, np.float32)
    system = command(tool, "half")
    assert system.check() == ()
    assert (ask(system, image, GREY) == 40).all()
    volume = ImageSpec(dtype="int16", low=-1000, high=1000, axes="zyx")
    assert ask(system, np.full((3, 6, 7), 80, np.int16), volume).shape == (3, 6, 7)
    assert ask(command(tool, "label", kind="region"), image, GREY).dtype == np.uint8
    assert np.array_equal(
        ask(command(tool, "input"), image, GREY), image
    )  # standard input is empty, not that of the tests


@pytest.mark.parametrize(
    ("mode", "settings", "words"),
    [
        ("fail", {}, "exit code 3: no licence found in …/input.npy"),
        ("nothing", {}, "wrote no output"),
        ("sleep", {"seconds": 0.7}, "stopped after 0.7 s"),
        ("flood", {"max_megabytes": 4.0}, "more than 4 MB"),
    ],
)
def test_a_misbehaving_tool_is_an_error_of_its_case(tool: str, mode: str, settings: Any, words: str) -> None:
    with pytest.raises(BadOutput) as caught:
        ask(command(tool, mode, **settings), np.zeros((6, 7), np.float32), GREY)
    assert words in str(caught.value)


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    target = tmp_path / "made"
    system = system_of("command", command=f"echo {{input}} {{output}} ; touch {target} && $(touch {target}) > {target}")
    with pytest.raises(BadOutput, match="wrote no output"):
        ask(system, np.zeros((20, 20), np.float32), GREY)
    assert not target.exists()


@pytest.mark.parametrize(
    ("command_line", "words"),
    [
        ("", "nothing"),
        ("cp {input}", "no {output}"),
        ("cp a b", "no {input} and no {output}"),
        ("no-such-program-here {input} {output}", "not a program that can be run"),
        ("cp '{input} {output}", "No closing quotation"),
    ],
)
def test_an_impossible_command_is_one_mistake(command_line: str, words: str) -> None:
    mistakes = system_of("command", command=command_line).check()
    assert len(mistakes) == 1
    assert words in mistakes[0].found


def test_the_fingerprint_covers_program_and_script(tool: str, tmp_path: Path) -> None:
    before = command(tool, "half").fingerprint()
    assert str(tmp_path) not in str(before)
    (tmp_path / "tool.py").write_text(TOOL + "\n# changed")
    assert command(tool, "half").fingerprint() != before
    assert command(tool, "fail").fingerprint() != command(tool, "half").fingerprint()


# --- folders of results -------------------------------------------------------------------------------------------


def test_results_are_found_by_address(tmp_path: Path) -> None:
    image = np.arange(600, dtype=np.float32).reshape(20, 30) / 3
    spec = GREY
    (tmp_path / "d" / "s").mkdir(parents=True)
    write_image(tmp_path / "d" / "s" / f"{AT.stem}.npy", image, spec)
    system = system_of("results", folder=str(tmp_path))
    assert system.check() == []
    assert np.array_equal(ask(system, image, spec), image)
    other = system.process([image], [spec], [AT.source()])[0]
    assert isinstance(other, Missing)
    labels = ImageSpec(dtype="int16", low=-1000, high=1000, axes="zyx")
    write_image(tmp_path / "d" / "s.nii.gz", (np.arange(24).reshape(2, 3, 4) > 9).astype(np.uint8), labels)
    region = system_of("results", folder=str(tmp_path), kind="region")
    result = region.process([np.zeros((2, 3, 4), np.int16)], [labels], [AT.source()])[0]
    assert np.array_equal(result, np.arange(24).reshape(2, 3, 4) > 9)
    assert system_of("results", folder=str(tmp_path / "none")).check()
    (tmp_path / "empty").mkdir()
    assert "no result" in system_of("results", folder=str(tmp_path / "empty")).check()[0].found


def test_results_are_not_read_from_outside_their_folder(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    np.save(tmp_path / "secret.npy", np.zeros((4, 4), np.float32))
    np.save(inside / "x.npy", np.zeros((4, 4), np.float32))
    address = Address(dataset="d", seed_id="../secret")
    system = system_of("results", folder=str(inside))
    result = system.process([np.zeros((4, 4), np.float32)], [GREY], [address])[0]
    assert isinstance(result, Missing)


# --- graphs -------------------------------------------------------------------------------------------------------


def _save_script(path: Path, channels: int) -> str:
    import torch

    class Half(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 0.5

    torch.jit.trace(Half().eval(), torch.zeros(1, channels, 8, 8)).save(str(path))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "shape"), SPECS)
@pytest.mark.parametrize("channels", ["rgb", "bgr", "grey"])
def test_a_torchscript_graph_answers_in_the_images_numbers(
    tmp_path: Path, spec: ImageSpec, shape: tuple[int, ...], channels: str
) -> None:
    path = _save_script(tmp_path / "half.pt", 1 if channels == "grey" else 3)
    image = image_of(spec, shape)
    answer = ask(system_of("torchscript", path=path, gives="image", channels=channels), image, spec)
    expected = (image.astype(np.float64) - spec.low) / 2 + spec.low
    assert answer.shape == image.shape
    assert np.allclose(answer, expected, atol=1e-5 * spec.span)


def test_an_onnx_graph_answers_images_and_not_masks(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    half = helper.make_tensor("half", TensorProto.FLOAT, [1], [0.5])
    shape = ["n", 1, "h", "w"]
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "half"], ["y"])],
        "half",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [half],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path / "half.onnx"
    onnx.save(model, str(path))
    for spec, size in SPECS[:4]:
        image = image_of(spec, size)
        answer = ask(system_of("onnx", path=str(path), gives="image"), image, spec)
        assert np.allclose(answer, image.astype(np.float64) / 2, atol=1e-5 * spec.span)


def test_a_graph_for_masks_is_refused_in_a_suite_of_images(tmp_path: Path) -> None:
    path = _save_script(tmp_path / "half.pt", 3)
    with pytest.raises(BadOutput, match="gives=image"):
        ask(system_of("torchscript", path=path), np.zeros((8, 8), np.float32), GREY)
    system = system_of("torchscript", path=path, gives="image")
    system.open(device="cpu", threads=1)
    with pytest.raises(BadOutput, match="here maps are expected"):
        system.predict([np.zeros((8, 8, 3), np.uint8)], [AT])


# --- background subtraction ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mog2", "knn"])
def test_background_subtraction_finds_what_moves(name: str) -> None:
    from medtest.phantoms.films import make_film

    film = make_film(np.random.default_rng(4))
    assert film.frames.shape == film.moving.shape == (60, 120, 160)
    assert not film.moving[:15].any()
    assert film.moving[20:50].any(axis=(1, 2)).mean() > 0.5
    moving = ask(system_of(name), film.frames, ImageSpec(axes="tyx"))
    assert not moving[:10].any()
    shared = (moving & film.moving).sum()
    assert 2 * shared / (moving.sum() + film.moving.sum()) > 0.8
    with pytest.raises(BadOutput, match="films"):
        ask(system_of(name), film.frames[0], ImageSpec(axes="yx"))
