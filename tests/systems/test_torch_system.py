"""One path from pixels to answers in every system with a torch network, through which gradients pass."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
from library_parts import system_of
from tiny_networks import segformer, unet, write_bundle

from medtest.core.cases import Address
from medtest.systems.pytorch.torch_system import TorchSystem

HERE = Address(dataset="d", seed_id="s")
IMAGE = np.random.default_rng(5).integers(0, 256, (64, 64, 3), dtype=np.uint8)


def _archive(folder: Path) -> Path:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 2, 3, padding=1), nn.Sigmoid()).eval()
    torch.jit.trace(network, torch.zeros(1, 3, 64, 64)).save(str(folder / "net.pt"))  # type: ignore[no-untyped-call]
    return folder / "net.pt"


def _mobilenet(folder: Path) -> Path:
    from torchvision import models

    torch.manual_seed(0)
    torch.save(models.mobilenet_v3_small(num_classes=3).state_dict(), folder / "net.pth")
    return folder / "net.pth"


def _torchscript(folder: Path) -> Any:
    order = {"channels": "bgr", "layout": "nchw", "mean": [0.1, 0.2, 0.3], "std": [0.5, 0.6, 0.7], "scale": 128.0}
    return system_of("torchscript", "mask", path=str(_archive(folder)), gives="probability", **order)


def _torchvision(folder: Path) -> Any:
    path = str(_mobilenet(folder))
    return system_of("torchvision", architecture="mobilenet_v3_small", checkpoint=path, size=64, input="as_is")


def _huggingface(folder: Path) -> Any:
    segformer(folder)
    return system_of("huggingface", "mask", path=str(folder))


def _smp(folder: Path) -> Any:
    unet(folder)
    return system_of("smp", "mask", path=str(folder))


def _monai(folder: Path) -> Any:
    write_bundle(folder)
    return system_of("monai", "mask", path=str(folder), preprocessing="default")


SYSTEMS = {
    "tganet": lambda _: system_of("tganet", "mask", size=64),
    "attnmel": lambda _: system_of("attnmel", input="as_is"),
    "torchscript": _torchscript,
    "torchvision": _torchvision,
    "huggingface": _huggingface,
    "smp": _smp,
    "monai": _monai,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_gradients_reach_the_pixels_and_scores_match_the_answer(name: str, tmp_path: Path) -> None:
    system: TorchSystem = SYSTEMS[name](tmp_path)
    system.open(device="cpu", threads=1)
    before = {key: value.clone() for key, value in system.network.state_dict().items()}
    fitted = system.fitted(IMAGE)
    inputs = system.inputs([fitted])
    pixels = torch.from_numpy(fitted.copy()).permute(2, 0, 1)[None].float().div(255).requires_grad_()
    normalised = system.normalised(pixels)
    for expected, actual in zip(
        *((x.values() if isinstance(x, dict) else [x]) for x in (inputs, normalised)), strict=False
    ):
        assert torch.allclose(expected, actual, atol=2e-5)
    with torch.inference_mode():
        official = system.scores(system.forward(inputs))
    scores = system.scores(system.forward(normalised))
    assert torch.allclose(scores, official, atol=1e-3)
    scores.sum().backward()
    assert pixels.grad is not None and float(pixels.grad.abs().sum()) > 0
    with torch.inference_mode():
        (answer,) = system.answers(system.forward(inputs), [IMAGE])
    (predicted,) = system.predict([IMAGE], [HERE])
    assert np.array_equal(
        np.asarray(getattr(answer, "scores", answer)), np.asarray(getattr(predicted, "scores", predicted))
    )
    assert not system.network.training
    assert all(torch.equal(value, before[key]) for key, value in system.network.state_dict().items())
    system.close()


def test_an_unopened_system_is_an_error() -> None:
    with pytest.raises(Exception, match="attnmel-compact is not open"):
        system_of("attnmel").predict([IMAGE], [HERE])
