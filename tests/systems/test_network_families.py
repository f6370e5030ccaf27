"""Networks of transformers, segmentation_models_pytorch and MONAI: tiny real ones, made here."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from forked_program import command

from medtest.core.cases import Address
from medtest.core.errors import MedtestError
from medtest.core.plugins import part
from medtest.systems.base import System

sys.path.insert(0, str(Path(__file__).parent))
from tiny_networks import mask2former, segformer, unet, write_bundle

ROOT = Path(__file__).parents[2]
ADDRESS = Address(dataset="set", seed_id="a1")


def system_of(name: str, **settings: Any) -> System:
    info = part("systems", name)
    kind = info.load()
    system: System = kind(name, kind.Settings(**{**info.defaults, **settings}))
    return pickle.loads(pickle.dumps(system))  # as a worker gets it  # noqa: S301


def picture(height: int = 96, width: int = 128, seed: int = 0) -> np.ndarray:
    coarse = np.random.default_rng(seed).integers(0, 256, (8, 10, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


def answers_of(system: System, *images: np.ndarray) -> list[np.ndarray]:
    assert not system.check()
    system.open(device="cpu", threads=1)
    return [np.asarray(answer) for answer in system.predict(images, [ADDRESS] * len(images))]


# ------------------------------------------------------------------------------------------------------- transformers


def _labels(network: Any, folder: Path, image: np.ndarray) -> np.ndarray:
    """Return transformers' own answer: the class of each pixel."""
    import torch
    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained(folder)
    with torch.no_grad():
        outputs = network(**processor(images=[image], return_tensors="pt"))
    (labels,) = processor.post_process_semantic_segmentation(outputs, target_sizes=[image.shape[:2]])
    return np.asarray(labels)


@pytest.mark.parametrize(
    ("labels", "lesion", "classes"), [(2, None, [1]), (4, "lesion", [2]), (4, 0, [0]), (4, [1, 3], [1, 3])]
)
def test_a_segformer_answers_as_transformers_does(labels: int, lesion: Any, classes: list[int], tmp_path: Path) -> None:
    folder = tmp_path / "my seg [1]=x"
    names = {0: "background", 1: "polyp", 2: "lesion", 3: "blood"} if labels == 4 else None
    network = segformer(folder, labels, names=names)
    first, second = picture(), picture(64, 80, 1)
    answers = answers_of(system_of("huggingface", path=str(folder), lesion=lesion, batch=1), first, second)
    for image, answer in zip((first, second), answers, strict=True):
        assert answer.shape == image.shape[:2]
        expected = np.isin(_labels(network, folder, image), classes)
        assert (expected != (answer > 0.5)).sum() <= 2  # ties within rounding
    expected = np.isin(_labels(network, folder, first), classes)
    assert 0 < expected.mean() < 1


def test_one_class_is_a_sigmoid_and_the_threshold_moves(tmp_path: Path) -> None:
    import torch

    network = segformer(tmp_path, 1, processor=False)
    image = picture()
    system = system_of("huggingface", path=str(tmp_path), size=[64, 64])
    assert "preprocessor_config.json" in system.notice()
    (plain,) = answers_of(system, image)
    small = cv2.resize(image, (64, 64), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
    ready = (small - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    with torch.no_grad():
        logits = network(torch.from_numpy(ready.transpose(2, 0, 1)[None].astype(np.float32))).logits
        full = torch.nn.functional.interpolate(logits, size=image.shape[:2], mode="bilinear", align_corners=False)
    assert plain == pytest.approx(full.sigmoid()[0, 0].numpy(), abs=1e-4)
    cut = float(np.median(plain))
    (moved,) = answers_of(system_of("huggingface", path=str(tmp_path), size=[64, 64], threshold=cut), image)
    assert np.array_equal(moved > 0.5, plain.astype(float) > cut)


def test_settings_replace_the_processors(tmp_path: Path) -> None:
    segformer(tmp_path)
    image = picture()
    plain, *others = (
        answers_of(system_of("huggingface", path=str(tmp_path), **changed), image)[0]
        for changed in ({}, {"size": [128, 128]}, {"mean": [0.5, 0.5, 0.5]}, {"std": [0.5, 0.5, 0.5]})
    )
    for other in others:
        assert np.abs(plain - other).max() > 1e-5
    same = answers_of(system_of("huggingface", path=str(tmp_path), size=[64, 64], mean=[0.485, 0.456, 0.406]), image)
    assert np.array_equal(same[0], plain)


@pytest.mark.parametrize("labels", [1, 3])
def test_query_networks_answer_as_transformers_does(labels: int, tmp_path: Path) -> None:
    import torch

    network, processor = mask2former(tmp_path, labels)
    image = picture(64, 64)
    (answer,) = answers_of(system_of("huggingface", path=str(tmp_path), lesion=labels - 1), image)
    with torch.no_grad():
        outputs = network(pixel_values=processor(images=[image], return_tensors="pt")["pixel_values"])
    (segmentation,) = processor.post_process_semantic_segmentation(outputs, [(64, 64)], return_segmentation_scores=True)
    scores = np.asarray(segmentation.segmentation_scores)
    if labels == 1:
        assert answer == pytest.approx(scores[0].clip(0, 1), abs=1e-4)
    else:
        rival = scores[:-1].max(axis=0)
        assert answer == pytest.approx(scores[-1] / (scores[-1] + rival), abs=1e-4)
        assert ((answer > 0.5) != (np.asarray(segmentation.segmentation) == labels - 1)).sum() <= 2


def test_folders_without_a_network_are_mistakes(tmp_path: Path) -> None:
    def messages(path: str) -> str:
        return " ".join(str(mistake) for mistake in system_of("huggingface", path=path).check())

    assert "nothing" in messages("")
    assert "hf download nvidia/segformer-b0" in messages("nvidia/segformer-b0")
    assert "has no config.json" in messages(str(tmp_path))
    config = tmp_path / "config.json"
    for text, reason in (("{", "cannot be read"), ("[]", "model_type"), ('{"model_type": "segformer"}', "no weights")):
        config.write_text(text, encoding="utf-8")
        assert reason in messages(str(tmp_path))
    config.write_text('{"model_type": "x", "auto_map": {"AutoModel": "evil.Model"}}', encoding="utf-8")
    assert "does not run" in messages(str(tmp_path))
    config.write_text('{"model_type": "segformer"}', encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    assert "git lfs pull" in messages(str(tmp_path))


def test_a_backbone_without_head_is_refused_not_filled_at_random(tmp_path: Path) -> None:
    network = segformer(tmp_path)
    network.segformer.save_pretrained(tmp_path)
    with pytest.raises(MedtestError, match="weights of SegformerForSemanticSegmentation are not in the folder"):
        system_of("huggingface", path=str(tmp_path)).open(device="cpu", threads=1)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    with pytest.raises(MedtestError, match="bert is not a network for semantic segmentation"):
        system_of("huggingface", path=str(tmp_path)).open(device="cpu", threads=1)


def test_the_code_of_a_pickle_does_not_run(tmp_path: Path) -> None:
    segformer(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    touched = tmp_path / "touched"

    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(touched),)

    import torch

    torch.save({"a": Evil()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(MedtestError, match="cannot make a network"):
        system_of("huggingface", path=str(tmp_path)).open(device="cpu", threads=1)
    assert not touched.exists()


def test_fingerprints_follow_weights_and_descriptions(tmp_path: Path) -> None:
    segformer(tmp_path)
    fingerprints = [system_of("huggingface", path=str(tmp_path)).fingerprint()]
    for name in ("model.safetensors", "config.json", "preprocessor_config.json"):
        with (tmp_path / name).open("ab") as file:
            file.write(b" ")
        fingerprints.append(system_of("huggingface", path=str(tmp_path)).fingerprint())
    assert len({json.dumps(fingerprint) for fingerprint in fingerprints}) == 4
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path, copy, ignore=shutil.ignore_patterns("copy"))
    assert system_of("huggingface", path=str(copy)).fingerprint() == fingerprints[-1]


# ---------------------------------------------------------------------------------------- segmentation_models_pytorch


def _bare(network: Any, image: np.ndarray, mean: Any, std: Any) -> Any:
    import torch

    ready = ((image.astype(np.float32) / 255 - np.float32(mean)) / np.float32(std)).transpose(2, 0, 1)[None]
    with torch.no_grad():
        return network(torch.from_numpy(np.ascontiguousarray(ready, np.float32)))


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "more"), [(1, {}), (2, {}), (3, {}), (1, {"activation": "sigmoid"})])
def test_a_saved_unet_answers_as_the_library_does(classes: int, more: dict[str, Any], tmp_path: Path) -> None:
    network = unet(tmp_path / "a b", classes, **more)
    image = picture()
    scores = _bare(network, image, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    lesion = 2 if classes == 3 else None
    (answer,) = answers_of(system_of("smp", path=str(tmp_path / "a b"), lesion=lesion), image)
    if more:
        assert answer == pytest.approx(scores[0, 0].numpy(), abs=1e-5)
    elif classes == 1:
        assert answer == pytest.approx(scores.sigmoid()[0, 0].numpy(), abs=1e-5)
    elif classes == 2:
        assert answer == pytest.approx(scores.softmax(1)[0, 1].numpy(), abs=1e-5)
    else:
        assert np.array_equal(answer > 0.5, scores.argmax(1)[0].numpy() == 2)
        with pytest.raises(MedtestError, match="3 classes; choose"):
            system_of("smp", path=str(tmp_path / "a b")).open(device="cpu", threads=1)


def test_a_checkpoint_with_its_architectures_name(tmp_path: Path) -> None:
    smp = pytest.importorskip("segmentation_models_pytorch")
    import torch

    torch.manual_seed(0)
    network = smp.FPN("mobilenet_v2", encoder_weights=None, classes=2).eval()
    file = tmp_path / "a b=c.ckpt"
    # as PyTorch Lightning leaves it, from a module that holds the network as self.model
    torch.save({"epoch": 3, "state_dict": {f"model.{k}": v for k, v in network.state_dict().items()}}, file)
    image = picture(90, 130)  # no multiples of 32: taken to 96 × 128
    named = {"checkpoint": str(file), "architecture": "fpn", "encoder": "mobilenet_v2"}
    (answer,) = answers_of(system_of("smp", **named, mean=[0.5] * 3, std=[0.25] * 3), image)
    small = cv2.resize(image, (128, 96), interpolation=cv2.INTER_LINEAR)
    expected = _bare(network, small, [0.5] * 3, [0.25] * 3).softmax(1)[0, 1].numpy()
    assert answer == pytest.approx(expected, abs=1e-5)
    for changed, reason in (
        ({"architecture": "Unett"}, "did you mean Unet"),
        ({"encoder": "mobilenet_v3"}, "did you mean mobilenet_v2"),
        ({"architecture": "Unet"}, "(?s)not weights of Unet on mobilenet_v2.*missing"),
    ):
        with pytest.raises(MedtestError, match=reason) as caught:
            system_of("smp", **{**named, **changed}).open(device="cpu", threads=1)
        assert "Traceback" not in str(caught.value)


def test_a_checkpoint_with_a_training_scripts_settings_is_to_be_converted_first(tmp_path: Path) -> None:
    pytest.importorskip("segmentation_models_pytorch")
    import argparse

    import torch

    file = tmp_path / "old.ckpt"
    torch.save({"state_dict": unet(tmp_path / "unet").state_dict(), "args": argparse.Namespace(lr=0.1)}, file)
    named = {"architecture": "Unet", "encoder": "mobilenet_v2"}
    with pytest.raises(MedtestError, match=r"medtest weights convert .*old\.ckpt old\.safetensors"):
        system_of("smp", checkpoint=str(file), **named).open(device="cpu", threads=1)


def test_smp_folders_without_a_network_are_mistakes(tmp_path: Path) -> None:
    pytest.importorskip("segmentation_models_pytorch")

    def messages(**settings: Any) -> str:
        return " ".join(str(mistake) for mistake in system_of("smp", **settings).check())

    assert "architecture=Unet" in messages()
    assert "has no config.json" in messages(path=str(tmp_path))
    (tmp_path / "w.pth").write_bytes(b"x")
    assert messages(checkpoint=str(tmp_path / "w.pth")).count("fix:     add") == 2
    assert "one of them" in messages(checkpoint=str(tmp_path / "w.pth"), path=str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "segformer"}', encoding="utf-8")
    assert "model=huggingface" in messages(path=str(tmp_path))
    unet(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    for changed, reason in (
        ({"in_channels": 4}, "takes 4 channels"),
        ({"_model_class": "os"}, "no architecture 'os'"),
        ({"checkpoint_path": "/etc/passwd"}, "checkpoint_path"),
        ({"decoder_channels": "x"}, "cannot be built"),
        ({"decoder_channels": [4, 4, 4, 4, 4]}, "not weights of Unet"),
        # timm takes addresses for names, and would ask the hub
        ({"encoder_name": "tu-hf-hub:stranger/network"}, r"no encoder 'tu-hf-hub:stranger/network'\. It has"),
        ({"encoder_name": "tu-local-dir:/etc"}, "no encoder"),
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, **changed}), encoding="utf-8")
        with pytest.raises(MedtestError, match=reason):
            system_of("smp", path=str(tmp_path)).open(device="cpu", threads=1)


def test_encoders_were_trained_with_their_own_normalisation() -> None:
    pytest.importorskip("timm")
    from medtest.systems.adapters.libraries.smp import HALVES, IMAGENET, pretraining

    assert pretraining("resnet34", "imagenet") == IMAGENET
    assert pretraining("xception", "imagenet") == pretraining("efficientnet-b0", "advprop") == HALVES
    # timm, models/xception.py: mean and std of one half
    assert [tuple(pair) for pair in pretraining("tu-legacy_xception", None)] == [tuple(pair) for pair in HALVES]
    assert pretraining("tu-no_such_network", None) == IMAGENET


@pytest.mark.parametrize("name", ["smp", "monai"])
def test_a_missing_library_gives_a_message_with_the_install_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from medtest.systems.pytorch import torch_system

    monkeypatch.setattr(torch_system, "find_spec", lambda _: None)
    mistakes = system_of(name, path=str(tmp_path)).check()
    assert [mistake.fix for mistake in mistakes if "not installed" in mistake.found] == [
        f"pip install 'medtest[{name}]'"
    ]


# --------------------------------------------------------------------------------------------------------- end to end


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_three_run_under_a_suite(tmp_path: Path) -> None:
    import pandas as pd

    segformer(tmp_path / "hugging face")
    unet(tmp_path / "smp=net")
    write_bundle(tmp_path / "bundle [1]")
    process = command(
        *(ROOT / "run.py", "suite=polyp_seg", "model=[huggingface,smp,monai]", "limit=1"),
        *("only=relation:blur,severity:3", "track=false", "device=cpu", "workers=1"),
        f"systems.huggingface.path={tmp_path / 'hugging face'}",
        f"systems.smp.path={tmp_path / 'smp=net'}",
        f"systems.monai.path={tmp_path / 'bundle [1]'}",
        folder=tmp_path,
    )
    out, err = process.communicate(500)
    assert process.returncode == 0, err[-3000:]
    assert "Loading weights" not in out + err
    for name in ("hugging-face", "smp-net", "bundle-1"):  # a system is called as its folder is
        (file,) = (tmp_path / "outputs" / "polyp_seg" / name).glob("*/records.parquet")
        records = pd.read_parquet(file)
        assert sorted(records.relation) == ["blur", "source"]
        assert not (records.verdict == "ERROR").any(), records.reason.tolist()
        assert records.dice.notna().all()
