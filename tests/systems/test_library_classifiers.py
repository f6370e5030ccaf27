"""Classifiers of torchvision, timm and transformers, each a tiny real one made here."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow
from scipy.special import expit, softmax

from medtest.cases import Classes
from medtest.errors import MedtestError
from medtest.plugins import part
from medtest.systems.adapters.label_names import LabelSettings, naming, real_names
from medtest.systems.base import System

sys.path.insert(0, str(Path(__file__).parent / "classification"))
from classifier_parts import asked, noise  # noqa: E402

NAMES = ["melanoma", "nevus", "keratosis"]


def system_of(name: str, kind: str = "label", **changed: Any) -> System:
    info = part("systems", name)
    made: System = info.load()(name, info.load().Settings(**{**info.defaults, **changed}))
    made.kind = kind
    return pickle.loads(pickle.dumps(made))  # as a worker gets it  # noqa: S301


def answers_of(system: System, *images: np.ndarray) -> list[np.ndarray]:
    return both_of(system, *images)[0]


def both_of(system: System, *images: np.ndarray) -> tuple[list[np.ndarray], torch.Tensor]:
    """Return the answers, and what the network got."""
    assert not system.check()
    found, seen = asked(system, *images)
    return [np.asarray(one) for one in found], seen


# --- names of classes ------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-30, 30), min_size=4, max_size=4), st.booleans())
def test_merged_classes_sum_up(scores: list[float], multi: bool) -> None:
    wanted = LabelSettings(classes=["a", "b", "c", "d"], labels={"b": "x", "d": "x"}, multi=multi)
    found = naming(wanted, None)
    assert found is not None
    assert found.classes == Classes(names=("a", "x", "c"), multi=multi)
    got = found.merged(np.array(scores), "logits")
    shares = expit(scores) if multi else softmax(scores)
    together = max(shares[1], shares[3]) if multi else shares[1] + shares[3]
    assert np.allclose(got, [shares[0], together, shares[2]], atol=1e-12)
    assert np.allclose(found.merged(shares, "probabilities"), got, atol=1e-12)


def test_names_that_only_number_classes_are_none() -> None:
    assert real_names({"1": "nevus", "0": "melanoma"}) == ("melanoma", "nevus")
    assert real_names({"0": "LABEL_0", "1": "LABEL_1"}) is None
    assert real_names(["nevus", "nevus"]) is None
    assert real_names(["nevus"], 2) is None
    assert real_names({"first": "nevus"}) is None
    assert real_names(None) is None


def test_mistakes_in_names_are_said(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1)}, tmp_path / "w.pth")

    def found(**changed: Any) -> str:
        return " ".join(
            str(one) for one in system_of("resnet50", checkpoint=str(tmp_path / "w.pth"), **changed).check()
        )

    assert not found(classes=NAMES, labels={"nevus": "benign"})
    assert "did you mean: nevus" in found(classes=NAMES, labels={"nevis": "benign"})
    assert "nobody has named" in found(labels={"nevus": "benign"})
    assert "nevus twice" in found(classes=["nevus", "nevus"])
    assert "at least size" in found(size=224, resize=200)


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
    given = torch.stack([preset(Pillow.fromarray(one)) for one in images])
    with torch.inference_mode():
        wanted = network(given).numpy()
    got, seen = both_of(system, *images)
    assert torch.allclose(seen, given, atol=1e-5)
    assert np.abs(np.stack(got) - wanted).max() < 1e-4
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
    wanted = functional.normalize(functional.to_tensor(image), [0.5] * 3, [0.25] * 3)[None]
    (got,), seen = both_of(system, image)
    assert torch.allclose(seen, wanted, atol=1e-5)
    with torch.inference_mode():
        assert np.abs(got - network(wanted)[0].numpy()).max() < 1e-4
    assert system.classes is None, "the seeds' classes in the seeds' order"


def test_several_of_its_classes_may_stand_for_one_of_the_seeds(squeezed: tuple[Path, Any]) -> None:
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
    from medtest.systems.adapters.torchvision_classifier import recipe_of

    assert part("systems", name).defaults["architecture"] == name
    recipe = recipe_of(name)
    assert (recipe.size, recipe.resize, recipe.how) == (224, 256, "bilinear")
    assert recipe.kind.mean == (0.485, 0.456, 0.406)


@pytest.mark.parametrize(("name", "classes"), [("densenet121", 5), ("inception_v3", 2), ("mobilenet_v3_small", 4)])
def test_the_number_of_classes_is_the_checkpoints(name: str, classes: int) -> None:
    from torchvision.models import get_model

    from medtest.systems.adapters.torchvision_classifier import _classes_of

    options = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    with torch.device("meta"):
        state = get_model(name, weights=None, num_classes=classes, **options).state_dict()
    assert _classes_of(name, {f"module.{k}": v for k, v in state.items()}, options, "w.pth") == classes


@pytest.mark.parametrize("transform", [True, False])
def test_a_fine_tuned_inception_keeps_the_transform_that_no_parameter_tells(transform: bool, tmp_path: Path) -> None:
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
    seen: list[torch.Tensor] = []
    system._network.Conv2d_1a_3x3.register_forward_pre_hook(lambda _m, given: seen.append(given[0].clone()))
    assert np.asarray(system.predict([image], [])[0]).shape == (2,)
    mean, std = ([0.5] * 3, [0.5] * 3) if transform else ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    wanted = functional.normalize(functional.to_tensor(image), mean, std)[None]
    assert torch.allclose(seen[0], wanted, atol=1e-5)


def test_wrong_names_and_wrong_checkpoints_of_torchvision_are_said(squeezed: tuple[Path, Any], tmp_path: Path) -> None:
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


# --- timm ------------------------------------------------------------------------------------------------------------

TIMM = "test_resnet.r160_in1k"
"""A network of half a million parameters that timm keeps for tests."""


def _timm(folder: Path, *, names: list[str] | None = None, **configured: Any) -> Any:
    timm = pytest.importorskip("timm", reason="timm is not installed (an extra)")
    torch.manual_seed(4)
    network = timm.create_model(TIMM, pretrained=False, num_classes=3).eval()
    timm.models.save_for_hf(
        network,
        str(folder),
        model_config={"label_names": names} if names else {},
        safe_serialization=True,
        data_config=configured or None,
    )
    return network


@pytest.mark.parametrize("mode", ["center", "squash"])
def test_timm_answers_as_its_own_transforms_and_network(mode: str, tmp_path: Path) -> None:
    network = _timm(tmp_path / "m", names=NAMES, crop_mode=mode, crop_pct=0.9, interpolation="bicubic")
    from timm.data import create_transform, resolve_data_config

    system = system_of("timm", path=str(tmp_path / "m"), batch=1)
    described = json.loads((tmp_path / "m" / "config.json").read_text())
    steps = create_transform(**resolve_data_config({}, pretrained_cfg=described["pretrained_cfg"]), is_training=False)
    images = [noise(301, 437), noise(500, 260)]
    given = torch.stack([steps(Pillow.fromarray(one)) for one in images])
    with torch.inference_mode():
        wanted = network(given).numpy()
    got, seen = both_of(system, *images)
    assert torch.allclose(seen, given, atol=1e-5)
    assert np.abs(np.stack(got) - wanted).max() < 1e-4
    assert described["pretrained_cfg"]["crop_mode"] == mode
    assert system.classes == Classes(names=tuple(NAMES))
    assert set(system.fingerprint()) == {"weights_sha256", "config_sha256"}


def test_timm_takes_a_state_dict_and_a_name(tmp_path: Path) -> None:
    network = _timm(tmp_path / "m")
    torch.save(network.state_dict(), tmp_path / "w.pth")
    image = noise(200, 200)
    (one,) = answers_of(system_of("timm", architecture=TIMM, checkpoint=str(tmp_path / "w.pth")), image)
    (other,) = answers_of(system_of("timm", path=str(tmp_path / "m")), image)
    assert one.shape == (3,)
    assert np.array_equal(one, other)
    assert system_of("timm", path=str(tmp_path / "m")).classes is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"architecture": "hf-hub:someone/network"}, "timm has no network"),
        ({"model_args": {"checkpoint_path": "x.pth"}}, "may not hold checkpoint_path"),
        ({"model_args": {"pretrained": True}}, "may not hold pretrained"),
        ({"model_args": {"act_layer": "../a/path"}}, "is no number, truth value or word"),
        ({"model_args": {"in_chans": 1}}, "takes 1 channels"),
        ({"num_classes": 10**9}, "are possible"),
        ({"num_classes": 4}, "these weights are not those"),
        ({"pretrained_cfg": {"input_size": [3, 160, 320]}}, "square RGB images"),
        ({"pretrained_cfg": {"crop_mode": "border"}}, "square RGB images"),
        ({"pretrained_cfg": {"std": [0.0, 1.0, 1.0]}}, "square RGB images"),
    ],
)
def test_a_strangers_timm_folder_fetches_and_runs_nothing(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    _timm(tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    described = json.loads(config.read_text())
    own = {**described["pretrained_cfg"], **changed.pop("pretrained_cfg", {})}
    config.write_text(json.dumps({**described, **changed, "pretrained_cfg": own}))
    with pytest.raises(MedtestError, match=said):
        system_of("timm", path=str(tmp_path / "m")).open(device="cpu", threads=1)


def test_mistakes_in_timm_folders_are_said(tmp_path: Path) -> None:
    def found(**changed: Any) -> str:
        return " ".join(str(one) for one in system_of("timm", **changed).check())

    (tmp_path / "empty").mkdir()
    assert "has no config.json" in found(path=str(tmp_path / "empty"))
    (tmp_path / "empty" / "config.json").write_text('{"model_type": "vit"}')
    assert "model=huggingface" in found(path=str(tmp_path / "empty"))
    (tmp_path / "empty" / "config.json").write_text('{"architecture": "resnet18"}')
    assert "holds no model.safetensors" in found(path=str(tmp_path / "empty"))
    assert "one of them" in found(path=str(tmp_path / "empty"), architecture="resnet18")
    assert "path=FOLDER" in found()


# --- transformers ----------------------------------------------------------------------------------------------------


def _vit(folder: Path, **configured: Any) -> Any:
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    torch.manual_seed(5)
    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=32,
        patch_size=8,
        **{"id2label": dict(enumerate(NAMES)), "label2id": {n: i for i, n in enumerate(NAMES)}, **configured},
    )
    network = ViTForImageClassification(config).eval()
    network.save_pretrained(folder)
    ViTImageProcessor(size={"height": 32, "width": 32}, image_mean=[0.4, 0.5, 0.6]).save_pretrained(folder)
    return network


def test_transformers_answers_as_its_own_pipeline(tmp_path: Path) -> None:
    from transformers import AutoImageProcessor

    network = _vit(tmp_path)
    system = system_of("huggingface", path=str(tmp_path), batch=1)
    images = [noise(60, 90), noise(32, 32)]
    processor = AutoImageProcessor.from_pretrained(tmp_path)
    given = torch.cat([processor(images=[one], return_tensors="pt")["pixel_values"] for one in images])
    with torch.inference_mode():
        wanted = network(pixel_values=given).logits.numpy()
    got, seen = both_of(system, *images)
    assert torch.allclose(seen, given, atol=1e-5)
    assert np.abs(np.stack(got) - wanted).max() < 1e-5
    assert system.classes == Classes(names=tuple(NAMES))
    assert system.answer_form == "logits"


def test_transformers_folders_say_whether_several_classes_may_be_true(tmp_path: Path) -> None:
    _vit(tmp_path, problem_type="multi_label_classification")
    assert system_of("huggingface", path=str(tmp_path)).classes == Classes(names=tuple(NAMES), multi=True)
    assert system_of("huggingface", path=str(tmp_path), multi=False).classes == Classes(names=tuple(NAMES))
    (tmp_path / "plain").mkdir()
    _vit(tmp_path / "plain", id2label={0: "LABEL_0", 1: "LABEL_1"}, label2id={"LABEL_0": 0, "LABEL_1": 1})
    assert system_of("huggingface", path=str(tmp_path / "plain")).classes is None
    (answer,) = answers_of(system_of("huggingface", path=str(tmp_path / "plain"), classes=["b", "a"]), noise(32, 32))
    assert answer.shape == (2,)


def test_transformers_crops_as_its_processor_and_not_at_all_as_is(tmp_path: Path) -> None:
    from transformers import AutoImageProcessor, ConvNextImageProcessor, ResNetConfig, ResNetForImageClassification

    torch.manual_seed(6)
    network = ResNetForImageClassification(
        ResNetConfig(embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], num_labels=2, layer_type="basic")
    ).eval()
    network.save_pretrained(tmp_path)
    ConvNextImageProcessor(size={"shortest_edge": 64}, crop_pct=0.875).save_pretrained(tmp_path)
    processor = AutoImageProcessor.from_pretrained(tmp_path)
    image = noise(90, 120)
    mean, std = np.array(processor.image_mean, np.float32), np.array(processor.image_std, np.float32)
    small = np.asarray(Pillow.fromarray(image).resize((64, 64), Pillow.Resampling.BILINEAR), np.float32) / 255
    whole = torch.from_numpy(((small - mean) / std).transpose(2, 0, 1)[None])
    given = processor(images=[image], return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        wanted = network(pixel_values=given).logits[0].numpy()
    (got,), seen = both_of(system_of("huggingface", path=str(tmp_path)), image)
    assert torch.allclose(seen, given, atol=1e-5)
    assert np.abs(got - wanted).max() < 1e-5
    _, seen = both_of(system_of("huggingface", path=str(tmp_path), input="as_is"), image)
    assert torch.allclose(seen, whole, atol=1e-5)


def test_settings_of_the_other_kind_of_answer_are_mistakes(tmp_path: Path) -> None:
    _vit(tmp_path)

    def found(kind: str, **changed: Any) -> str:
        return " ".join(str(one) for one in system_of("huggingface", kind, path=str(tmp_path), **changed).check())

    assert "seeds expect labels" in found("label", lesion=1)
    assert "seeds expect labels" in found("label", activation="softmax")
    assert "seeds expect masks" in found("mask", classes=NAMES)
    assert "did you mean: nevus" in found("label", labels={"nevis": "benign"})
    assert "2 names for a network of 3 classes" in found("label", classes=["a", "b"])


def test_a_segmentation_network_is_no_classifier(tmp_path: Path) -> None:
    _vit(tmp_path)
    with pytest.raises(MedtestError, match="vit is no network for semantic segmentation"):
        system_of("huggingface", "mask", path=str(tmp_path)).open(device="cpu", threads=1)
    described = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**described, "model_type": "sam"}))
    with pytest.raises(MedtestError, match="sam is no network for image classification"):
        system_of("huggingface", path=str(tmp_path)).open(device="cpu", threads=1)


def test_a_backbone_without_a_head_is_refused(tmp_path: Path) -> None:
    from transformers import ViTModel

    network = _vit(tmp_path)
    ViTModel(network.config).save_pretrained(tmp_path)
    with pytest.raises(MedtestError, match="never trained to classify"):
        system_of("huggingface", path=str(tmp_path)).open(device="cpu", threads=1)
