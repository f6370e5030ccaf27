"""Classifiers of libraries: names of classes, and torchvision."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow
from scipy.special import expit, softmax

from medtest.core.cases import Classes
from medtest.core.errors import MedtestError
from medtest.core.plugins import part
from medtest.suite.compose import load
from medtest.systems.adapters.libraries.label_names import LabelSettings, naming, naming_mistakes, real_names
from medtest.systems.classification.answers import check_label, classes_misfit

sys.path.insert(0, str(Path(__file__).parent / "classification"))
from classifier_parts import ask, noise
from library_parts import NAMES, answers_of, both_of, system_of

# --- names of classes ------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-30, 30), min_size=4, max_size=4), st.booleans())
def test_merged_classes_sum_up(scores: list[float], multi: bool) -> None:
    label_settings = LabelSettings(classes=["a", "b", "c", "d"], labels={"b": "x", "d": "x"}, multi=multi)
    named = naming(label_settings, None)
    assert named is not None
    assert named.classes == Classes(names=("a", "x", "c"), multi=multi)
    got = named.merged(np.array(scores), "logits")
    shares = expit(scores) if multi else softmax(scores)
    together = max(shares[1], shares[3]) if multi else shares[1] + shares[3]
    assert np.allclose(got, [shares[0], together, shares[2]], atol=1e-12)
    assert np.allclose(named.merged(shares, "probabilities"), got, atol=1e-12)


def test_names_that_only_number_classes_are_ignored() -> None:
    assert real_names({"1": "nevus", "0": "melanoma"}) == ("melanoma", "nevus")
    assert real_names({"0": "LABEL_0", "1": "LABEL_1"}) is None
    assert real_names(["nevus", "nevus"]) is None
    assert real_names(["nevus"], 2) is None
    assert real_names({"first": "nevus"}) is None
    assert real_names(None) is None


def test_mistakes_in_names_are_messages(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1)}, tmp_path / "w.pth")

    def messages(**changed: Any) -> str:
        return " ".join(
            str(mistake) for mistake in system_of("resnet50", checkpoint=str(tmp_path / "w.pth"), **changed).check()
        )

    assert not messages(classes=NAMES, labels={"nevus": "benign"})
    assert "did you mean: nevus" in messages(classes=NAMES, labels={"nevis": "benign"})
    assert "without class names" in messages(labels={"nevus": "benign"})
    assert "nevus twice" in messages(classes=["nevus", "nevus"])
    assert "at least size" in messages(size=224, resize=200)


# --- torchvision -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def squeezed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Return a checkpoint of torchvision's smallest network with three classes, and the network."""
    from torchvision.models import squeezenet1_1

    torch.manual_seed(2)
    network = squeezenet1_1(num_classes=3).eval()
    file = tmp_path_factory.mktemp("torchvision") / "w.pth"
    torch.save({"state_dict": {f"module.{key}": value for key, value in network.state_dict().items()}}, file)
    return file, network


def test_torchvision_answers_as_its_own_transforms_and_network(squeezed: tuple[Path, Any]) -> None:
    from torchvision.models import SqueezeNet1_1_Weights

    file, network = squeezed
    system = system_of("torchvision", architecture="squeezenet1_1", checkpoint=str(file), classes=NAMES, batch=2)
    images = [noise(301, 437), noise(500, 260), noise(256, 256)]
    preset = SqueezeNet1_1_Weights.IMAGENET1K_V1.transforms()
    expected_input = torch.stack([preset(Pillow.fromarray(image)) for image in images])
    with torch.inference_mode():
        expected = network(expected_input).numpy()
    got, inputs = both_of(system, *images)
    assert torch.allclose(inputs, expected_input, atol=1e-5)
    assert np.abs(np.stack(got) - expected).max() < 1e-4
    assert system.classes == Classes(names=tuple(NAMES))
    assert system.answer_form == "logits"
    assert set(system.fingerprint()) == {"weights_sha256"}


def test_as_is_and_settings_of_the_user_replace_the_configuration(squeezed: tuple[Path, Any]) -> None:
    from torchvision.transforms import functional

    file, network = squeezed
    image = noise(96, 96)
    system = system_of(
        "torchvision",
        architecture="squeezenet1_1",
        checkpoint=str(file),
        input="as_is",
        size=96,
        mean=[0.5, 0.5, 0.5],
        std=[0.25, 0.25, 0.25],
    )
    expected_input = functional.normalize(functional.to_tensor(image), [0.5] * 3, [0.25] * 3)[None]
    (got,), inputs = both_of(system, image)
    assert torch.allclose(inputs, expected_input, atol=1e-5)
    with torch.inference_mode():
        assert np.abs(got - network(expected_input)[0].numpy()).max() < 1e-4
    assert system.classes is None, "the seeds' classes in the seeds' order"


def test_several_of_its_classes_may_be_merged_into_one_of_the_seeds(squeezed: tuple[Path, Any]) -> None:
    file, _ = squeezed
    common = {"architecture": "squeezenet1_1", "checkpoint": str(file), "classes": NAMES}
    (plain,) = answers_of(system_of("torchvision", **common), noise(256, 256))
    system = system_of("torchvision", **common, labels={"nevus": "benign", "keratosis": "benign"})
    (merged,) = answers_of(system, noise(256, 256))
    shares = softmax(plain.astype(np.float64))
    assert np.allclose(merged, [shares[0], shares[1] + shares[2]], atol=1e-9)
    assert system.classes == Classes(names=("melanoma", "benign"))
    assert system.answer_form == "probabilities"


@pytest.mark.parametrize("name", ["vgg19", "resnet50", "resnet101", "resnet152"])
def test_presets_of_published_tables_name_their_networks(name: str) -> None:
    from medtest.systems.adapters.libraries.torchvision_classifier import recipe_of

    assert part("systems", name).defaults["architecture"] == name
    recipe = recipe_of(name)
    assert (recipe.size, recipe.resize, recipe.filter_name) == (224, 256, "bilinear")
    assert recipe.kind.mean == (0.485, 0.456, 0.406)


@pytest.mark.parametrize(("name", "classes"), [("densenet121", 5), ("inception_v3", 2), ("mobilenet_v3_small", 4)])
def test_the_number_of_classes_is_the_checkpoints(name: str, classes: int) -> None:
    from torchvision.models import get_model

    from medtest.systems.adapters.libraries.torchvision_classifier import _classes_of

    options = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    with torch.device("meta"):
        state = get_model(name, weights=None, num_classes=classes, **options).state_dict()
    assert _classes_of(name, {f"module.{k}": v for k, v in state.items()}, options, "w.pth") == classes


@pytest.mark.slow
@pytest.mark.parametrize("transform", [True, False])
def test_a_fine_tuned_inception_keeps_the_transform_that_its_weights_do_not_show(
    transform: bool, tmp_path: Path
) -> None:
    """Its first layer gets (pixel - 0.5) / 0.5, or ImageNet's normalisation where the transform is off."""
    from torchvision.models import inception_v3
    from torchvision.transforms import functional

    torch.manual_seed(3)
    network = inception_v3(num_classes=2, init_weights=False, aux_logits=False)
    torch.save(network.state_dict(), tmp_path / "w.pth")
    image = noise(299, 299)
    system: Any = system_of(
        "torchvision",
        architecture="inception_v3",
        checkpoint=str(tmp_path / "w.pth"),
        input="as_is",
        transform_input=transform,
    )
    system.open(device="cpu", threads=1)
    inputs: list[torch.Tensor] = []
    system._network.Conv2d_1a_3x3.register_forward_pre_hook(lambda _m, arguments: inputs.append(arguments[0].clone()))
    assert np.asarray(system.predict([image], [])[0]).shape == (2,)
    mean, std = ([0.5] * 3, [0.5] * 3) if transform else ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    expected_input = functional.normalize(functional.to_tensor(image), mean, std)[None]
    assert torch.allclose(inputs[0], expected_input, atol=1e-5)


def test_wrong_names_and_wrong_checkpoints_of_torchvision_are_messages(
    squeezed: tuple[Path, Any], tmp_path: Path
) -> None:
    file, _ = squeezed

    def opened(**changed: Any) -> None:
        system_of("torchvision", **{"checkpoint": str(file), **changed}).open(device="cpu", threads=1)

    with pytest.raises(MedtestError, match="did you mean squeezenet1_1"):
        opened(architecture="squeezenet11")
    with pytest.raises(MedtestError, match="fcn_resnet50"):
        opened(architecture="fcn_resnet50")
    with pytest.raises(MedtestError, match=r"fc\.bias, the last layer of resnet18, is not in this file"):
        opened(architecture="resnet18")
    with pytest.raises(MedtestError, match="3 classes, and 2 are named"):
        opened(architecture="squeezenet1_1", classes=["a", "b"])
    torch.save({"classifier.1.bias": torch.zeros(3), "other": torch.zeros(2)}, tmp_path / "few.pth")
    with pytest.raises(MedtestError, match="missing"):
        opened(architecture="squeezenet1_1", checkpoint=str(tmp_path / "few.pth"))
    assert "architecture" in str(system_of("torchvision", checkpoint=str(file)).check()[0])


# --- the field of view -----------------------------------------------------------------------------------------------


def framed_square(side: int = 224) -> np.ndarray:
    """Return a black square with a white border, like an image that a suite has prepared."""
    image = np.full((side, side, 3), 255, np.uint8)
    image[12:-12, 12:-12] = 0
    return image


def sees_border(inputs: torch.Tensor) -> bool:
    """Return whether a network got all four sides of the border."""
    channel = inputs.reshape(-1, *inputs.shape[-2:])[0]
    sides = channel[0], channel[-1], channel[:, 0], channel[:, -1]
    middle = channel[channel.shape[0] // 2, channel.shape[1] // 2]
    return all(bool((side > middle + 1e-3).all()) for side in sides)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agdn", "dsinet", "attnmel", "inceptionv3_dr", "chexnet", "torchvision"])
def test_every_system_of_a_suite_sees_the_same_field(name: str, squeezed: tuple[Path, Any]) -> None:
    settings = {"architecture": "squeezenet1_1", "checkpoint": str(squeezed[0])} if name == "torchvision" else {}
    assert part("systems", name).defaults["input"] == "auto"
    system = system_of(name, **settings)
    system.squared = True
    _, inputs = ask(system, framed_square())
    assert sees_border(inputs)
    assert "input" not in system.notice()
    crops = name in ("attnmel", "chexnet", "torchvision")
    assert system.resolved() == {"input": "as_is" if crops else "official"}
    if crops:
        again = system_of(name, **settings, input="official")
        again.squared = True
        assert not sees_border(ask(again, framed_square())[1])
        assert f"systems.{name}.input=auto uses the whole image" in again.notice()


def test_unresized_images_are_normalised_like_the_networks_authors_do(squeezed: tuple[Path, Any]) -> None:
    system = system_of("torchvision", architecture="squeezenet1_1", checkpoint=str(squeezed[0]))
    assert system.resolved() == {"input": "official"}
    assert not sees_border(both_of(system, framed_square())[1])
    sized = system_of("torchvision", architecture="squeezenet1_1", checkpoint=str(squeezed[0]), resize=256)
    sized.squared = True
    assert sized.resolved() == {"input": "official"}, "who names the side before the crop wants the crop"
    assert "less of them than the others" in sized.notice()


def test_systems_know_what_their_suite_prepares() -> None:
    for name, squared in (("skin_folder", True), ("wce", True)):
        suite = load(name, []).suite
        assert all(system.squared is squared for system in suite.build_systems().values())
        plan = suite.systems[0]
        system = suite.build_systems()[plan.id]
        assert system.resolved()["input"] in ("official", "as_is")


def test_names_match_without_case() -> None:
    class Settings:
        classes: ClassVar = ["Melanoma", "NEVUS", "Keratosis"]
        labels: ClassVar = {"nevus": "benign", "keratosis": "Benign"}
        multi = None

    named = naming(Settings(), None)
    assert named is not None and named.classes.names == ("Melanoma", "benign")
    assert not naming_mistakes(Settings(), None, where="x")
    asked_for = Classes(names=("benign", "melanoma"))
    assert classes_misfit(named.classes, asked_for) == ""
    answer = check_label([0.2, 0.8], expected=asked_for, own=named.classes, form="probabilities")
    assert answer.labels == ("benign",)
    assert check_label({"BENIGN": 0.1, "Melanoma": 0.9}, expected=asked_for, own=None, form="probabilities").labels == (
        "melanoma",
    )
    assert check_label("MELANOMA", expected=asked_for, own=None, form="labels").labels == ("melanoma",)
