"""Offers of each system, and probes of systems that give only scores."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
from library_parts import NAMES, system_of
from probe_parts import THREE, official, picture, pixels_of, probabilities, script

from medtest.core.cases import Classes
from medtest.core.errors import MedtestError
from medtest.core.plugins import parts
from medtest.core.probes import Need
from medtest.phantoms.classes import DERMOSCOPY
from medtest.systems.pytorch.probe import GradientProbe, ScoreProbe, output_gap, probe_gap, probe_of

FUNCTIONS = """
import numpy as np

def logits(image):
    red, green, blue = image.reshape(-1, 3).mean(axis=0) / 10
    return {"nevus": green, "melanoma": red, "keratosis": blue}

def shares(image):
    powers = np.exp(np.array(list(logits(image).values())) / 10)
    return powers / powers.sum()

def name(image):
    return "nevus"

def lesion(image):
    return image[..., 0] > 127

def soft(image):
    np.random.seed(1)
    return image[::2, ::2, 0] / 255
"""


def _function(folder: Path, name: str, kind: str, **settings: Any) -> Any:
    path = folder / "mine.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    return system_of("callable", kind, target=f"{path}:{name}", **settings)


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [
        ("logits", "label", {"gives": "logits"}),
        ("shares", "label", {"classes": ["nevus", "melanoma", "keratosis"]}),
        ("lesion", "mask", {}),
        ("soft", "mask", {}),
    ],
)
def test_functions_give_scores_of_eight_bit_pixels(name: str, kind: str, settings: Any, tmp_path: Path) -> None:
    system = _function(tmp_path, name, kind, **settings)
    assert system.offers() is Need.SCORES
    system.open(device="cpu", threads=1)
    classes = THREE if kind == "label" else None
    probe = probe_of(system, classes=classes)
    assert isinstance(probe, ScoreProbe) and probe.gives is Need.SCORES
    image = picture(32, 40)
    before = repr(np.random.get_state())  # noqa: NPY002
    pixels = (pixels_of(image) + 0.4 / 255).requires_grad_()
    logits = probe.logits(pixels)
    assert not logits.requires_grad and torch.isfinite(logits).all()
    assert before == repr(np.random.get_state())  # noqa: NPY002
    (answer,) = official(system, [image], classes)
    assert probe_gap(probe, image, answer) < 1e-6
    assert output_gap(answer, answer) == 0
    (other,) = official(system, [255 - image], classes)
    assert output_gap(answer, other) > 0.01


def test_a_function_that_names_classes_has_no_scores(tmp_path: Path) -> None:
    system = _function(tmp_path, "name", "label", gives="classes", classes=NAMES)
    assert system.offers() is Need.NOTHING
    system.open(device="cpu", threads=1)
    with pytest.raises(MedtestError, match="neither scores nor gradients"):
        probe_of(system, classes=THREE)
    (first, second) = official(system, [picture(8, 8), picture(9, 9)], THREE)
    assert output_gap(first, second) == 0


def test_an_onnx_graph_gives_scores(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    nodes = [helper.make_node("GlobalAveragePool", ["image"], ["mean"]), helper.make_node("Flatten", ["mean"], ["out"])]
    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [2, 3, 32, 32])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("out", TensorProto.FLOAT, [2, 3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    system = system_of("onnx", path=str(tmp_path / "net.onnx"), classes=NAMES)
    assert system.offers() is Need.SCORES
    system.open(device="cpu", threads=1)
    probe = probe_of(system, classes=THREE)
    images = [picture(32, 32, seed) for seed in range(3)]
    for image, answer in zip(images, official(system, images, THREE), strict=True):
        assert probe_gap(probe, image, answer) < 1e-6
    pixels = pixels_of(*images).requires_grad_()
    assert not probe.logits(pixels).requires_grad


def test_the_offer_of_each_system() -> None:
    """Networks of torch give gradients, other running code scores; finished answers, APIs and series give nothing."""
    offers = {(system.name, system.kind): system.offers() for system in _all_systems()}
    gradients = {name for (name, _), need in offers.items() if need is Need.GRADIENTS}
    assert gradients == {
        *(
            "agdn",
            "attnmel",
            "chexnet",
            "chexnet_sides",
            "capsule_findings",
            "dsinet",
            "inceptionv3_dr",
        ),
        *("pranet", "sanet", "ssformer", "ssformer_l", "ssformer_s", "tganet"),
        *("huggingface", "monai", "smp", "timm", "torchscript", "torchvision"),
        *("resnet50", "resnet101", "resnet152", "vgg19"),
    }
    assert {name for (name, _), need in offers.items() if need is Need.SCORES} == {"callable", "mlflow", "onnx"}
    assert all(need is Need.NOTHING for (_, kind), need in offers.items() if kind not in ("label", "mask"))
    assert offers["predictions", "mask"] is offers["predictions", "label"] is Need.NOTHING
    decided = system_of("torchscript", "mask", gives="classes")
    assert decided.offers() is Need.SCORES


def _all_systems() -> Iterator[Any]:
    for name, info in parts("systems").items():
        kind = info.load()
        for task in kind.tasks:
            system: Any = kind(name, kind.Settings.model_construct(**info.defaults))
            system.kind = task
            yield system


def test_a_system_in_memory_has_the_offer_of_its_implementation(tmp_path: Path) -> None:
    from medtest.systems.adapters.in_memory import ObjectSystem

    def held(implementation: Any, kind: str) -> Any:
        system = ObjectSystem("held", ObjectSystem.Settings(implementation=implementation))
        system.kind, system.squared = kind, True
        return system

    assert held(lambda image: image[..., 0], "mask").offers() is Need.SCORES
    assert held(system_of("predictions", "mask"), "mask").offers() is Need.NOTHING
    system = held(system_of("attnmel"), "label")
    assert system.offers() is Need.GRADIENTS
    system.open(device="cpu", threads=1)
    probe = probe_of(system, classes=DERMOSCOPY)
    assert isinstance(probe, GradientProbe) and probe.name == system.record_name
    (answer,) = official(system, [picture(224, 224)], DERMOSCOPY)
    assert probe_gap(probe, picture(224, 224), answer) < 1e-6


def test_logits_are_recovered_from_a_network_that_ends_in_a_softmax(tmp_path: Path) -> None:
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 3), nn.Softmax(dim=1))
    with torch.no_grad():
        network[2].weight.mul_(40)
    system = script(tmp_path, network, 32, kind="label", gives="probability", classes=NAMES)
    system.open(device="cpu", threads=1)
    probe = probe_of(system, classes=Classes(names=tuple(NAMES)))
    assert np.allclose(probabilities(probe, pixels_of(picture(32, 32))).sum(), 1, atol=1e-6)
