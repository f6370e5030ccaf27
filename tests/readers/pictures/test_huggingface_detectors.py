"""Detectors of transformers in folders: readings equal to transformers', and forbidden contents of folders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_detectors import save_detr, save_grounding_dino, save_owlv2, save_rt_detr

from medtest.core.errors import MedtestError
from medtest.core.plugins import parts
from medtest.core.scenes import Entity, dumped, pool_of
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.detectors.huggingface import ClassDetector, DetectorFolderSettings
from medtest.readers.pictures.detectors.word_detectors import WordDetector, WordSettings

IMAGE = np.random.default_rng(0).integers(0, 255, (80, 120, 3), np.uint8)
SAVED: dict[str, Callable[[Path], Path]] = {
    "detr": save_detr,
    "rt_detr": save_rt_detr,
    "owlv2": save_owlv2,
    "grounding_dino": save_grounding_dino,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("detectors")
    return {name: save(folder / name) for name, save in SAVED.items()}


def _content(*pools: Sequence[str]) -> PictureContent:
    texts = [dumped(pool_of([Entity(name=name) for name in names]).as_json()) for names in pools]
    return PictureContent("0" * 64, tuple(texts))


def _opened(name: str, folder: Path, **settings: Any) -> Any:
    reader_class: type[Any] = ClassDetector if name.endswith("detr") else WordDetector
    reader = reader_class(name, reader_class.Settings(path=str(folder), **settings))
    assert reader.check() == []
    reader.open(device="cpu", threads=1)
    return reader


@pytest.mark.slow
@pytest.mark.parametrize("name", ["detr", "rt_detr"])
def test_fixed_classes_are_seen_as_transformers_says(folders: dict[str, Path], name: str) -> None:
    import torch
    from transformers import AutoImageProcessor, AutoModelForObjectDetection

    processor = AutoImageProcessor.from_pretrained(folders[name])
    network = AutoModelForObjectDetection.from_pretrained(folders[name]).eval()
    with torch.inference_mode():
        outputs = network(**processor(images=[IMAGE], return_tensors="pt"))
    (expected,) = processor.post_process_object_detection(outputs, threshold=0.2, target_sizes=[(80, 120)])
    (scene,) = _opened(name, folders[name], score=0.2).look([IMAGE], [_content()])
    names = {"dog": "dog", "bicycle": "bike"}
    labels = [names.get(network.config.id2label[label]) for label in expected["labels"].tolist()]
    assert [entity.name for entity in scene.entities] == [label for label in labels if label]
    assert len(scene.entities) > 1
    real = [index for index, label in enumerate(labels) if label]
    boxes = np.clip(expected["boxes"].numpy()[real] / [120, 80, 120, 80], 0, 1)
    np.testing.assert_allclose([entity.box for entity in scene.entities], boxes, atol=1e-5)
    assert scene.tells.classes == {"dog", "bike"}  # and not "N/A"
    assert scene.tells.attributes == frozenset()


def test_owlv2_gets_the_classes_of_both_pools_and_reports_only_them(folders: dict[str, Path]) -> None:
    import torch
    from transformers import AutoModelForZeroShotObjectDetection, AutoProcessor

    processor = AutoProcessor.from_pretrained(folders["owlv2"])
    network = AutoModelForZeroShotObjectDetection.from_pretrained(folders["owlv2"]).eval()
    prompts = [f"a photo of a {name}" for name in ("cat", "dog", "fire hydrant")]
    inputs = processor(text=[prompts], images=[IMAGE], return_tensors="pt", padding="max_length", truncation=True)
    with torch.inference_mode():
        outputs = network(**inputs)
    (expected,) = processor.post_process_grounded_object_detection(outputs, threshold=0.3, target_sizes=[(80, 120)])
    reader = _opened("owlv2", folders["owlv2"], score=0.3, words="a photo of a {}")
    (scene,) = reader.look([IMAGE], [_content(["dog", "cat"], ["fire hydrant", "dog"])])
    assert scene.tells.classes == {"cat", "dog", "fire hydrant"}
    names = [("cat", "dog", "fire hydrant")[label] for label in expected["labels"].tolist()]
    assert scene.names() == {name: names.count(name) for name in sorted(set(names))}
    assert len(names) > 1
    (nothing,) = reader.look([IMAGE], [_content()])
    assert nothing.entities == ()
    assert nothing.tells.classes == frozenset()


def test_a_box_of_grounding_dino_has_a_class_that_was_asked_for(folders: dict[str, Path]) -> None:
    import torch
    from transformers import AutoModelForZeroShotObjectDetection, AutoProcessor

    folder = folders["grounding_dino"]
    processor = AutoProcessor.from_pretrained(folder)
    network = AutoModelForZeroShotObjectDetection.from_pretrained(folder).eval()
    inputs = processor(text="cat. dog. fire hydrant.", images=[IMAGE], return_tensors="pt")
    with torch.inference_mode():
        scores = network(**inputs).logits[0].sigmoid().numpy()
    # [CLS] cat . dog . fire hydrant . [SEP]
    table = np.stack([scores[:, 1], scores[:, 3], np.maximum(scores[:, 5], scores[:, 6])], axis=1)
    names = [("cat", "dog", "fire hydrant")[best] for best in table.argmax(axis=1)]
    reader = _opened("grounding_dino", folder, score=0.0)
    (scene,) = reader.look([IMAGE], [_content(["dog", "fire hydrant"], ["cat"])])
    assert scene.names() == {name: names.count(name) for name in set(names)}
    assert max(entity.score for entity in scene.entities) == pytest.approx(float(table.max()), abs=1e-6)


def test_more_classes_than_a_network_takes_at_once_are_passed_in_parts(folders: dict[str, Path]) -> None:
    # 16 tokens: at most four classes of two words and a full stop beside the two marks
    reader = _opened("grounding_dino", folders["grounding_dino"], score=0.0)
    classes = ["fire hydrant", "dog", "cat", "table", "red table", "red"]
    (scene,) = reader.look([IMAGE], [_content(classes)])
    assert len(scene.entities) == 20  # ten boxes of either part
    assert set(scene.names()) <= set(classes)
    assert scene.tells.classes == set(classes)


def test_a_folder_counts_by_all_that_decides(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["detr"], tmp_path / "one")
    before = ClassDetector("detr", DetectorFolderSettings(path=str(folder))).fingerprint()
    preprocessor = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps({**preprocessor, "image_mean": [0.1, 0.1, 0.1]}))
    assert ClassDetector("detr", DetectorFolderSettings(path=str(folder))).fingerprint() != before
    assert str(tmp_path) not in json.dumps(before)


def _broken(folder: Path, defect: str) -> Path:
    config = json.loads((folder / "config.json").read_text())
    match defect:
        case "pickle":
            (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
        case "code":
            config["auto_map"] = {"AutoModel": "model.Model"}
        case "family":
            config["model_type"] = "bert"
        case "config":
            (folder / "config.json").write_text("{")
            return folder
        case "shard":
            (folder / "model.safetensors").unlink()
            index = {"weight_map": {"a": "model-1.safetensors"}}
            (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("defect", "words"),
    [
        ("pickle", "not safetensors"),
        ("code", "auto_map"),
        ("family", "model_type bert"),
        ("config", "config.json"),
        ("shard", "model-1.safetensors is missing"),
    ],
)
def test_folders_that_cannot_be_read_are_mistakes(
    folders: dict[str, Path], tmp_path: Path, defect: str, words: str
) -> None:
    folder = _broken(shutil.copytree(folders["detr"], tmp_path / "detr"), defect)
    (mistake,) = ClassDetector("detr", DetectorFolderSettings(path=str(folder))).check()
    assert words in mistake.found


def test_weights_that_are_missing_are_not_drawn_at_random(folders: dict[str, Path], tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = shutil.copytree(folders["detr"], tmp_path / "detr")
    weights = load_file(folder / "model.safetensors")
    incomplete = {name: value for name, value in weights.items() if "bbox_predictor" not in name}
    assert len(incomplete) < len(weights)
    save_file(incomplete, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(MedtestError, match="would be drawn at random"):
        _opened("detr", folder)


def test_the_word_for_a_class_names_it() -> None:
    (mistake,) = WordDetector("owlv2", WordSettings(path=".", words="a photo")).check()
    assert mistake.key == "words"


@pytest.mark.parametrize("name", ["detr", "owlv2", "grounding_dino"])
def test_the_parts_are_found_by_their_names(name: str) -> None:
    info = parts("readers")[name]
    assert info.load()(name, info.load().Settings(**info.defaults)).check()[0].key == "path"
