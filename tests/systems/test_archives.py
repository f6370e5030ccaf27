"""Archives and graphs that declare more than memory holds are refused by every reader, before anything is unpacked."""

from __future__ import annotations

import io
import pickle
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medtest.core.errors import BadOutput, MedtestError
from medtest.core.plugins import part
from medtest.systems.adapters.bundles.bundle_files import BundleFiles
from medtest.systems.adapters.folders.label_files import read_case
from medtest.systems.checkpoints.archives import check_archive, check_graph
from medtest.systems.checkpoints.checkpoint import read_state, read_weights
from medtest.systems.checkpoints.glance import names_in
from medtest.systems.checkpoints.unpickle import read_whole

GIB = 1 << 30


def bomb(path: Path, *, entry: str = "archive/data/0", gigabytes: int = 3) -> Path:
    """Write a zip of a few megabytes that unpacks to gigabytes, in the layout of torch's archives."""
    block = bytes(1 << 24)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))
        archive.writestr("archive/version", "3")
        with archive.open(entry, "w", force_zip64=True) as member:
            for _ in range(gigabytes * GIB // len(block)):
                member.write(block)
    return path


def open_system(name: str, path: Path) -> None:
    info = part("systems", name)
    info.load()(name, info.load().Settings(**{**info.defaults, "path": str(path)})).open(device="cpu", threads=1)


READERS: dict[str, Callable[[Path], Any]] = {
    "a checkpoint": read_state,
    "its names": names_in,
    "a checkpoint to convert": read_whole,
    "weights": lambda path: read_weights(path, name=path.name),
    "weights inside a bundle": lambda path: read_weights(io.BytesIO(path.read_bytes()), name=path.name),
    "TorchScript": lambda path: open_system("torchscript", path),
    "a bundle": BundleFiles,
}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bomb(tmp_path_factory.mktemp("bomb") / "network.pt", gigabytes=1)


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_a_zip_bomb_is_refused_by_its_declared_size(packed: Path, reader: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MedtestError, match=r"network\.pt: declares 1\.1 GB in .* MB"):
        READERS[reader](packed)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700_000  # KiB; torch itself may load


def test_arrays_are_as_large_as_their_file(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(MedtestError, match="declares"):
        read_state(packed.rename(packed.with_suffix(".npz")))
    packed.with_suffix(".npz").rename(packed)
    claimed = tmp_path / "case.npy"
    with claimed.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 38,)})
    with pytest.raises(BadOutput, match=r"case\.npy cannot be read"):
        read_case(claimed)


def test_plain_checkpoints_pass(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "zeros.pth"
    torch.save({"weight": torch.zeros(1 << 20)}, path)
    check_archive(path)
    with zipfile.ZipFile(tmp_path / "packed.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path, "zeros.pth")  # 4 MB of zeros in 4 kB: no memory is filled by that
    check_archive(tmp_path / "packed.zip")
    assert list(read_state(path)) == ["weight"]


# --- ONNX ---------------------------------------------------------------------------------------------------------


def _graph(path: Path, *, nodes: list[Any] | None = None, initializers: list[Any] = (), sparse: list[Any] = ()) -> Path:  # type: ignore[assignment]
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    infos = [helper.make_tensor_value_info(n, 1, [1, 3, 8, 8]) for n in ("x", "y")]
    nodes = nodes or [helper.make_node("Identity", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], list(initializers), sparse_initializer=list(sparse))
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    return path


def _shape(*sides: int, name: str = "s", raw: bool = False) -> Any:
    onnx = pytest.importorskip("onnx")
    values = np.array(sides, np.int64)
    if raw:
        return onnx.numpy_helper.from_array(values, name)
    return onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [len(sides)], values)


def _empty(*dims: int) -> Any:
    onnx = pytest.importorskip("onnx")
    return onnx.TensorProto(name="w", data_type=1, dims=dims)


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("kind", ["ConstantOfShape", "Expand"])
def test_constants_made_by_a_runtime(tmp_path: Path, kind: str, raw: bool) -> None:
    onnx = pytest.importorskip("onnx")
    inputs = ["s"] if kind == "ConstantOfShape" else ["x", "s"]
    nodes = [onnx.helper.make_node(kind, inputs, ["z"]), onnx.helper.make_node("Identity", ["x"], ["y"])]
    path = _graph(tmp_path / "g.onnx", nodes=nodes, initializers=[_shape(1 << 20, 1 << 20, raw=raw)])
    with pytest.raises(MedtestError, match=r"g\.onnx: declares 4,398\.0 GB"):
        check_graph(path)
    with pytest.raises(MedtestError, match=r"g\.onnx: declares"):
        open_system("onnx", path)


def test_shapes_in_constants_and_in_branches(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    make = onnx.helper.make_node
    nodes = [
        make("Constant", [], ["s"], value=_shape(1 << 30, 64, name="", raw=True)),
        make("ConstantOfShape", ["s"], ["z"]),
    ]
    inner = onnx.helper.make_graph(nodes, "b", [], [onnx.helper.make_tensor_value_info("z", 1, None)])
    branch = make("If", ["c"], ["q"], then_branch=inner, else_branch=inner)
    path = _graph(tmp_path / "g.onnx", nodes=[branch, make("Identity", ["x"], ["y"])])
    with pytest.raises(MedtestError, match="declares"):
        check_graph(path)


def test_missing_initializers(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    with pytest.raises(MedtestError, match="declares"):
        check_graph(_graph(tmp_path / "g.onnx", initializers=[_empty(1 << 16, 1 << 16)]))
    values = onnx.helper.make_tensor("w", 1, [1], [1.0])
    places = onnx.helper.make_tensor("i", onnx.TensorProto.INT64, [1], [5])
    sparse = onnx.helper.make_sparse_tensor(values, places, [1 << 36])
    with pytest.raises(MedtestError, match="declares"):
        check_graph(_graph(tmp_path / "g.onnx", sparse=[sparse]))


def test_weights_in_separate_files(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")

    def beside(location: str) -> Path:
        weight = _empty(1 << 16, 1 << 12)
        weight.data_location = onnx.TensorProto.EXTERNAL
        weight.external_data.add(key="location", value=location)
        return _graph(tmp_path / "g.onnx", initializers=[weight])

    with pytest.raises(MedtestError, match="which is missing"):
        check_graph(beside("w.bin"))
    for location in ("../w.bin", "/etc/hostname"):
        with pytest.raises(MedtestError, match="outside its folder"):
            check_graph(beside(location))
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(4 << 28)
    check_graph(beside("w.bin"))


def test_graphs_with_true_sizes_and_other_files_pass(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    weight = onnx.numpy_helper.from_array(np.zeros((64, 64), np.float32), "w")
    nodes = [onnx.helper.make_node("ConstantOfShape", ["s"], ["z"]), onnx.helper.make_node("Identity", ["x"], ["y"])]
    check_graph(_graph(tmp_path / "g.onnx", nodes=nodes, initializers=[weight, _shape(3, 4)]))
    for content in (b"", b"\x00", b"\xff" * 100, bytes(range(256)), b"<html>"):
        (tmp_path / "none.onnx").write_bytes(content)
        check_graph(tmp_path / "none.onnx")
