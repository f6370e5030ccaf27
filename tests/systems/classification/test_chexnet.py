from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

from medtest.phantoms.classes import CHEST
from medtest.systems import build_network
from medtest.systems.checkpoints.checkpoint import CheckpointMismatch, read_state
from medtest.systems.checkpoints.glance import names_in
from medtest.systems.pytorch import networks

sys.path.insert(0, str(Path(__file__).parent))
from classifier_parts import (
    ask,
    assert_answers_as_recorded,
    noise,
    normalised,
    small_weights,
    system_of,
)
from parity_parts import State, assert_compact, assert_published_size, golden_state

IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def _as_in_2017(state: State) -> State:
    """Return weights under the names that PyTorch 0.3 and DataParallel gave them, without batch counters."""
    return {
        "module." + re.sub(r"(denselayer\d+\.(?:norm|conv))([12])", r"\1.\2", key): value
        for key, value in state.items()
        if not key.endswith("num_batches_tracked")
    }


def test_it_has_the_published_size() -> None:
    assert_published_size("chexnet", parameters=6_968_206, tensors=727)
    assert_compact("chexnet")


def test_it_answers_as_recorded(tmp_path: Path) -> None:
    """The file in its authors' format: torch's old one, with dots in names that torch no longer allows."""
    state = _as_in_2017(golden_state("chexnet"))
    assert "module.densenet121.features.denseblock1.denselayer1.norm.1.weight" in state
    whole = {"epoch": 7, "state_dict": state, "best_loss": 0.1, "optimizer": {"state": {}, "param_groups": []}}
    torch.save(whole, tmp_path / "model.pth.tar", _use_new_zipfile_serialization=False)
    assert_answers_as_recorded("chexnet", tmp_path / "model.pth.tar", 224)


def test_names_of_old_are_read_without_loading_too(tmp_path: Path) -> None:
    state = {key: torch.zeros(1) for key in golden_state("chexnet")}
    torch.save(_as_in_2017(state), tmp_path / "c.pth")
    assert names_in(tmp_path / "c.pth") == {key for key in state if not key.endswith("num_batches_tracked")}


def test_nothing_is_left_at_its_first_value(tmp_path: Path) -> None:
    """strict=False, a common advice, would leave the dense layers untrained: here a missing layer is an error."""
    state = golden_state("chexnet")
    name = "densenet121.features.denseblock4.denselayer16.conv2.weight"
    torch.save({key: value for key, value in state.items() if key != name}, tmp_path / "c.pth")
    with pytest.raises(CheckpointMismatch, match=re.escape(f"missing (1): {name}")):
        build_network("chexnet", tmp_path / "c.pth")


def test_both_names_of_one_weight_are_a_mistake(tmp_path: Path) -> None:
    state = {f"features.denseblock1.denselayer1.{name}.weight": torch.zeros(2) for name in ("norm1", "norm.1")}
    torch.save(state, tmp_path / "c.pth")
    assert set(read_state(tmp_path / "c.pth")) == set(state)


def test_logits_are_what_the_sigmoid_gets() -> None:
    torch.manual_seed(6)
    network = networks.make(networks.COMPACT["chexnet"])
    x = torch.rand(2, 3, 64, 64)
    with torch.inference_mode():
        assert torch.allclose(network.logits(x).sigmoid(), network(x), atol=1e-6)


def test_ten_crops_are_what_torchvision_makes(tmp_path: Path) -> None:
    from torchvision import transforms

    network = small_weights("chexnet", tmp_path / "w.safetensors")
    image = noise(301, 437)
    crops = transforms.TenCrop(224)(transforms.Resize(256)(Pillow.fromarray(image)))
    expected_input = torch.cat([normalised(crop, IMAGENET) for crop in crops])
    with torch.inference_mode():
        expected = network(expected_input).mean(dim=0).numpy()
    system = system_of("chexnet", checkpoint=str(tmp_path / "w.safetensors"), crops=10)
    got, inputs = ask(system, image, image[:, ::-1])
    assert torch.allclose(inputs[:10], expected_input, atol=1e-5)
    assert np.abs(got[0] - expected).max() < 1e-5
    assert np.abs(got[1] - expected).max() < 1e-5, "the ten crops of a mirrored image are the same ten"
    assert system.answer_form == "probabilities"
    assert system.classes == CHEST


def test_one_crop_is_the_middle_one(tmp_path: Path) -> None:
    from torchvision import transforms

    network = small_weights("chexnet", tmp_path / "w.safetensors")
    images = [noise(437, 301), noise(224, 500)]
    steps = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224)])
    expected_input = torch.cat([normalised(steps(Pillow.fromarray(image)), IMAGENET) for image in images])
    with torch.inference_mode():
        expected = network(expected_input).numpy()
    got, inputs = ask(system_of("chexnet", checkpoint=str(tmp_path / "w.safetensors")), *images)
    assert torch.allclose(inputs, expected_input, atol=1e-5)
    for answer, expected_answer in zip(got, expected, strict=True):
        assert np.abs(answer - expected_answer).max() < 1e-5


def test_as_is_takes_the_unchanged_image(tmp_path: Path) -> None:
    network = small_weights("chexnet", tmp_path / "w.safetensors")
    for image in (noise(224, 224), noise(160, 192)):
        expected_input = normalised(Pillow.fromarray(image), IMAGENET)
        with torch.inference_mode():
            expected = network(expected_input)[0].numpy()
        (got,), inputs = ask(system_of("chexnet", checkpoint=str(tmp_path / "w.safetensors"), input="as_is"), image)
        assert torch.allclose(inputs, expected_input, atol=1e-5)
        assert np.abs(got - expected).max() < 1e-5


def test_published_weights_are_asked_ten_times_by_default(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1)}, tmp_path / "model.pth.tar")
    published = str(tmp_path / "model.pth.tar")
    assert system_of("chexnet", checkpoint=published).crops == 10
    assert system_of("chexnet", checkpoint=published, input="as_is").crops == 1
    assert system_of("chexnet", checkpoint=published, input="as_is", crops=10).crops == 10
    assert system_of("chexnet").crops == 1
