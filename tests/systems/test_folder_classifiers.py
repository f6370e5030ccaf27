"""Classifiers in folders of timm and of transformers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

from medtest.core.cases import Classes
from medtest.core.errors import MedtestError

sys.path.insert(0, str(Path(__file__).parent / "classification"))
from classifier_parts import noise
from library_parts import NAMES, answers_of, both_of, system_of
from tiny_networks import TIMM, timm_folder, vit

# --- timm ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["center", "squash"])
def test_timm_answers_as_its_own_transforms_and_network(mode: str, tmp_path: Path) -> None:
    network = timm_folder(tmp_path / "m", names=NAMES, crop_mode=mode, crop_pct=0.9, interpolation="bicubic")
    from timm.data import create_transform, resolve_data_config

    system = system_of("timm", path=str(tmp_path / "m"), batch=1)
    described = json.loads((tmp_path / "m" / "config.json").read_text())
    steps = create_transform(**resolve_data_config({}, pretrained_cfg=described["pretrained_cfg"]), is_training=False)
    images = [noise(301, 437), noise(500, 260)]
    expected_input = torch.stack([steps(Pillow.fromarray(image_)) for image_ in images])
    with torch.inference_mode():
        expected = network(expected_input).numpy()
    got, inputs = both_of(system, *images)
    assert torch.allclose(inputs, expected_input, atol=1e-5)
    assert np.abs(np.stack(got) - expected).max() < 1e-4
    assert described["pretrained_cfg"]["crop_mode"] == mode
    assert system.classes == Classes(names=tuple(NAMES))
    assert set(system.fingerprint()) == {"weights_sha256", "config_sha256"}


def test_timm_takes_a_state_dict_and_a_name(tmp_path: Path) -> None:
    network = timm_folder(tmp_path / "m")
    torch.save(network.state_dict(), tmp_path / "w.pth")
    image = noise(200, 200)
    (by_name,) = answers_of(system_of("timm", architecture=TIMM, checkpoint=str(tmp_path / "w.pth")), image)
    (by_folder,) = answers_of(system_of("timm", path=str(tmp_path / "m")), image)
    assert by_name.shape == (3,)
    assert np.array_equal(by_name, by_folder)
    assert system_of("timm", path=str(tmp_path / "m")).classes is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"architecture": "hf-hub:someone/network"}, "timm has no network"),
        ({"model_args": {"checkpoint_path": "x.pth"}}, "may not hold checkpoint_path"),
        ({"model_args": {"pretrained": True}}, "may not hold pretrained"),
        ({"model_args": {"act_layer": "../a/path"}}, "is not a number, truth value or word"),
        ({"model_args": {"in_chans": 1}}, "takes 1 channels"),
        ({"num_classes": 10**9}, "are possible"),
        ({"num_classes": 4}, "these are not weights of"),
        ({"pretrained_cfg": {"input_size": [3, 160, 320]}}, "square RGB images"),
        ({"pretrained_cfg": {"crop_mode": "border"}}, "square RGB images"),
        ({"pretrained_cfg": {"std": [0.0, 1.0, 1.0]}}, "square RGB images"),
    ],
)
def test_a_foreign_timm_folder_fetches_and_runs_nothing(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    timm_folder(tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    described = json.loads(config.read_text())
    own = {**described["pretrained_cfg"], **changed.pop("pretrained_cfg", {})}
    config.write_text(json.dumps({**described, **changed, "pretrained_cfg": own}))
    with pytest.raises(MedtestError, match=message):
        system_of("timm", path=str(tmp_path / "m")).open(device="cpu", threads=1)


def test_mistakes_in_timm_folders_are_messages(tmp_path: Path) -> None:
    def messages(**changed: Any) -> str:
        return " ".join(str(mistake) for mistake in system_of("timm", **changed).check())

    (tmp_path / "empty").mkdir()
    assert "has no config.json" in messages(path=str(tmp_path / "empty"))
    (tmp_path / "empty" / "config.json").write_text('{"model_type": "vit"}')
    assert "model=huggingface" in messages(path=str(tmp_path / "empty"))
    (tmp_path / "empty" / "config.json").write_text('{"architecture": "resnet18"}')
    assert "holds no model.safetensors" in messages(path=str(tmp_path / "empty"))
    assert "one of them" in messages(path=str(tmp_path / "empty"), architecture="resnet18")
    assert "path=FOLDER" in messages()


# --- transformers ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_transformers_answers_as_its_own_pipeline(tmp_path: Path) -> None:
    from transformers import AutoImageProcessor

    network = vit(tmp_path, NAMES)
    system = system_of("huggingface", path=str(tmp_path), batch=1)
    images = [noise(60, 90), noise(32, 32)]
    processor = AutoImageProcessor.from_pretrained(tmp_path)
    expected_input = torch.cat([processor(images=[image_], return_tensors="pt")["pixel_values"] for image_ in images])
    with torch.inference_mode():
        expected = network(pixel_values=expected_input).logits.numpy()
    got, inputs = both_of(system, *images)
    assert torch.allclose(inputs, expected_input, atol=1e-5)
    assert np.abs(np.stack(got) - expected).max() < 1e-5
    assert system.classes == Classes(names=tuple(NAMES))
    assert system.answer_form == "logits"


def test_transformers_folders_define_whether_several_classes_may_be_true(tmp_path: Path) -> None:
    vit(tmp_path, NAMES, problem_type="multi_label_classification")
    assert system_of("huggingface", path=str(tmp_path)).classes == Classes(names=tuple(NAMES), multi=True)
    assert system_of("huggingface", path=str(tmp_path), multi=False).classes == Classes(names=tuple(NAMES))
    (tmp_path / "plain").mkdir()
    vit(tmp_path / "plain", NAMES, id2label={0: "LABEL_0", 1: "LABEL_1"}, label2id={"LABEL_0": 0, "LABEL_1": 1})
    assert system_of("huggingface", path=str(tmp_path / "plain")).classes is None
    (answer,) = answers_of(system_of("huggingface", path=str(tmp_path / "plain"), classes=["b", "a"]), noise(32, 32))
    assert answer.shape == (2,)


def test_transformers_crops_like_its_processor_and_not_at_all_as_is(tmp_path: Path) -> None:
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
    expected_input = processor(images=[image], return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        expected = network(pixel_values=expected_input).logits[0].numpy()
    (got,), inputs = both_of(system_of("huggingface", path=str(tmp_path)), image)
    assert torch.allclose(inputs, expected_input, atol=1e-5)
    assert np.abs(got - expected).max() < 1e-5
    _, inputs = both_of(system_of("huggingface", path=str(tmp_path), input="as_is"), image)
    assert torch.allclose(inputs, whole, atol=1e-5)
    in_suite = system_of("huggingface", path=str(tmp_path))
    in_suite.squared = True
    assert torch.allclose(both_of(in_suite, image)[1], whole, atol=1e-5), (
        "what a suite has prepared is not cropped again"
    )
    assert in_suite.resolved() == {"input": "as_is"}


def test_settings_of_the_other_kind_of_answer_are_mistakes(tmp_path: Path) -> None:
    vit(tmp_path, NAMES)

    def messages(kind: str, **changed: Any) -> str:
        return " ".join(
            str(mistake) for mistake in system_of("huggingface", kind, path=str(tmp_path), **changed).check()
        )

    assert "seeds expect labels" in messages("label", lesion=1)
    assert "seeds expect labels" in messages("label", activation="softmax")
    assert "seeds expect masks" in messages("mask", classes=NAMES)
    assert "did you mean: nevus" in messages("label", labels={"nevis": "benign"})
    assert "2 names for a network of 3 classes" in messages("label", classes=["a", "b"])


def test_a_segmentation_network_is_not_a_classifier(tmp_path: Path) -> None:
    vit(tmp_path, NAMES)
    with pytest.raises(MedtestError, match="vit is not a network for semantic segmentation"):
        system_of("huggingface", "mask", path=str(tmp_path)).open(device="cpu", threads=1)
    described = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**described, "model_type": "sam"}))
    with pytest.raises(MedtestError, match="sam is not a network for image classification"):
        system_of("huggingface", path=str(tmp_path)).open(device="cpu", threads=1)


def test_a_backbone_without_a_head_is_refused(tmp_path: Path) -> None:
    from transformers import ViTModel

    network = vit(tmp_path, NAMES)
    ViTModel(network.config).save_pretrained(tmp_path)
    with pytest.raises(MedtestError, match="trained for image classification"):
        system_of("huggingface", path=str(tmp_path)).open(device="cpu", threads=1)
