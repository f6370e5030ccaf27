from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

from medtest.phantoms.classes import FUNDUS
from medtest.systems import build_network
from medtest.systems.checkpoints.checkpoint import CheckpointMismatch, load_strictly, looks_like
from medtest.systems.classification.networks.inception import InceptionConfig, InceptionDR
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
from parity_parts import assert_compact, assert_published_size, golden_state

CIFAR = {"mean": (0.4914, 0.4822, 0.4465), "std": (0.2023, 0.1994, 0.2010)}
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def test_it_has_the_published_size() -> None:
    assert_published_size("inceptionv3_dr", parameters=24_354_536, tensors=580)
    assert_compact("inceptionv3_dr")


@pytest.mark.slow
def test_it_answers_as_recorded(tmp_path: Path) -> None:
    """The file in its authors' format: weights of DataParallel around a wrapper, ``module.model.…``."""
    torch.save({f"module.{key}": value for key, value in golden_state("inceptionv3_dr").items()}, tmp_path / "m.pkl")
    assert_answers_as_recorded("inceptionv3_dr", tmp_path / "m.pkl", 299)


def test_a_checkpoint_is_recognised_and_mistakes_in_it_are_named() -> None:
    with torch.device("meta"):
        network = networks.published("inceptionv3_dr")
    plain = {key.removeprefix("model."): value for key, value in network.state_dict().items()}
    assert looks_like(plain) == "inceptionv3_dr"
    plain["surprise"] = plain.pop("fc.bias")
    with pytest.raises(CheckpointMismatch) as caught:
        load_strictly(network, plain, name="inceptionv3_dr", file="m.pkl")
    assert "missing (1): model.fc.bias" in str(caught.value)
    assert "unexpected (1): model.surprise" in str(caught.value)


def test_the_input_transform_turns_imagenets_normalisation_into_inceptions() -> None:
    """(pixel - mean) / std goes in; the first layer gets (pixel - 0.5) / 0.5."""
    network = InceptionDR(InceptionConfig(sixteenths=1, auxiliary=False)).eval()
    inputs: list[torch.Tensor] = []
    network.model.Conv2d_1a_3x3.register_forward_pre_hook(lambda _m, arguments: inputs.append(arguments[0]))
    pixels = torch.rand(1, 3, 75, 75)
    mean, std = (torch.tensor(IMAGENET[key])[None, :, None, None] for key in ("mean", "std"))
    with torch.inference_mode():
        network((pixels - mean) / std)
    assert torch.allclose(inputs[0], (pixels - 0.5) / 0.5, atol=1e-6)


@pytest.mark.parametrize("sixteenths", [1, 5, 16])
def test_every_width_has_the_same_layers(sixteenths: int) -> None:
    with torch.device("meta"):
        whole, narrow = (
            InceptionDR(InceptionConfig(sixteenths=width, auxiliary=True)).state_dict() for width in (16, sixteenths)
        )
    assert list(whole) == list(narrow)
    for key, value in narrow.items():
        fixed = [i for i, side in enumerate(whole[key].shape) if side in (3, 4) or i > 1]
        for axis, side in enumerate(value.shape):
            assert side == (whole[key].shape[axis] if axis in fixed else whole[key].shape[axis] * sixteenths / 16), key


def test_an_impossible_width_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 16 are possible"):
        InceptionDR(InceptionConfig(sixteenths=0))


def test_training_gives_both_heads() -> None:
    network = InceptionDR(InceptionConfig(sixteenths=1)).train()
    main, side = network(torch.rand(2, 3, 299, 299))
    assert main.shape == side.shape == (2, 4)
    assert network.eval()(torch.rand(1, 3, 299, 299)).shape == (1, 4)


def test_official_input_is_what_torchvision_makes(tmp_path: Path) -> None:
    """The whole picture stretched to the network's side, with CIFAR-10's statistics."""
    from torchvision import transforms

    network = small_weights("inceptionv3_dr", tmp_path / "w.safetensors", size=288)
    system = system_of("inceptionv3_dr", checkpoint=str(tmp_path / "w.safetensors"))
    image = noise(301, 437)
    expected_input = normalised(transforms.Resize((288, 288))(Pillow.fromarray(image)), CIFAR)
    with torch.inference_mode():
        expected = network(expected_input)[0].numpy()
    (got,), inputs = ask(system, image)
    assert torch.allclose(inputs, expected_input, atol=1e-5)
    assert np.abs(got - expected).max() < 1e-4
    assert system.answer_form == "logits"
    assert system.classes == FUNDUS


def test_published_weights_take_299_pixels(tmp_path: Path) -> None:
    torch.save({"model.fc.bias": torch.zeros(4)}, tmp_path / "messidor_inceptionv3.pkl")
    system = system_of("inceptionv3_dr", checkpoint=str(tmp_path / "messidor_inceptionv3.pkl"))
    assert not system.check()
    assert system._official(noise(100, 80)).shape == (299, 299, 3)


@pytest.mark.parametrize("side", [224, 97])
def test_as_is_takes_the_unchanged_image(side: int, tmp_path: Path) -> None:
    network = small_weights("inceptionv3_dr", tmp_path / "w.safetensors", size=288)
    image = noise(side, side)
    expected_input = normalised(Pillow.fromarray(image), CIFAR)
    with torch.inference_mode():
        expected = network(expected_input)[0].numpy()
    system = system_of("inceptionv3_dr", checkpoint=str(tmp_path / "w.safetensors"), input="as_is")
    (got,), inputs = ask(system, image)
    assert torch.allclose(inputs, expected_input, atol=1e-5)
    assert np.abs(got - expected).max() < 1e-4


def test_the_published_network_is_built_by_name() -> None:
    assert build_network("inceptionv3_dr").model.transform_input
