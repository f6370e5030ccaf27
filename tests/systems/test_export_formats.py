"""Exports of one network as TorchScript and ONNX: equal maps if both get images of the same size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from library_parts import system_of

from medtest.core.cases import Address

torch = pytest.importorskip("torch")
SIDE, FIXED = 192, 64


def _picture() -> tuple[np.ndarray, np.ndarray]:
    """Return a picture, uint8 H×W×3, with a fine texture on a reddish lesion, and the lesion, bool H×W."""
    rng = np.random.default_rng(3)
    yy, xx = np.mgrid[:SIDE, :SIDE]
    lesion = (yy - 90) ** 2 + (xx - 100) ** 2 < 45**2
    image = rng.integers(40, 120, (SIDE, SIDE, 3)).astype(np.float64)
    image[lesion] += (90, 10, 0)
    return np.clip(image, 0, 255).astype(np.uint8), lesion


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of one 1×1 convolution: an archive, a graph of a fixed size and one of any size."""
    pytest.importorskip("onnx")
    from torch import nn

    network = nn.Conv2d(3, 1, 1).eval()
    with torch.no_grad():
        network.weight[:] = torch.tensor([1.5, -0.7, -0.7]).view(1, 3, 1, 1)
        network.bias[:] = -0.5
    folder = tmp_path_factory.mktemp("exported")
    shown = torch.zeros(1, 3, FIXED, FIXED)
    torch.jit.trace(network, shown).save(str(folder / "n.pt"))
    names: dict[str, Any] = {"dynamo": False, "input_names": ["x"], "output_names": ["y"]}
    torch.onnx.export(network, (shown,), str(folder / "fixed.onnx"), **names)
    free = {"x": {0: "b", 2: "h", 3: "w"}, "y": {0: "b", 2: "h", 3: "w"}}
    torch.onnx.export(network, (shown,), str(folder / "free.onnx"), dynamic_axes=free, **names)
    return folder


def _mean_dice(name: str, **settings: Any) -> float:
    """Return a system's mean Dice over the thresholds 0, 1/255, … 1, computed without medtest's oracle."""
    image, lesion = _picture()
    system = system_of(name, kind="mask", **settings)
    system.open(device="cpu", threads=1)
    (answer,) = system.predict([image], [Address(dataset="d", seed_id="s")])
    grown = cv2.resize(np.asarray(answer, np.float32), (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
    scores = []
    for threshold in np.linspace(0, 1, 256):
        mask = grown >= threshold
        scores.append(2 * (mask & lesion).sum() / (mask.sum() + lesion.sum()))
    return float(np.mean(scores))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_formats_agree_at_one_size_and_differ_where_a_graph_fixes_another(exported: Path) -> None:
    pytest.importorskip("onnxruntime")
    archive, fixed, free = (str(exported / name) for name in ("n.pt", "fixed.onnx", "free.onnx"))
    whole = _mean_dice("torchscript", path=archive)
    small = _mean_dice("onnx", path=fixed)
    assert abs(whole - small) > 0.002  # the size is the cause, as these two pairs show:
    assert abs(whole - _mean_dice("onnx", path=free)) < 1e-3
    assert abs(small - _mean_dice("torchscript", path=archive, size=[FIXED, FIXED])) < 1e-3
