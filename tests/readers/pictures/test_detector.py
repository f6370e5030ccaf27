"""Detectors as ONNX graphs: their inputs, their boxes, and YOLOX on photographs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from picture_graphs import SIDE, save_graph

from medtest.core.cases import Image
from medtest.core.errors import BadOutput, MedtestError
from medtest.core.files.images import read_rgb
from medtest.core.plugins import parts
from medtest.core.scenes import Scene
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.detectors.boxes import (
    Detections,
    above_score,
    fractions,
    letterboxed,
    suppressed,
    yolox_boxes,
)
from medtest.readers.pictures.detectors.coco import COCO_80, pool_class, read_names
from medtest.readers.pictures.detectors.detector import Detector, DetectorSettings

SHARED = Path(os.environ.get("MEDTEST_SHARED", Path(__file__).parents[3].parent / "shared")) / "data"
PHOTOS, YOLOX = SHARED / "photos", SHARED / "detector" / "yolox_nano.onnx"
THREE = PictureContent("0" * 64)


def _opened(path: Path, **settings: Any) -> Detector:
    reader = Detector("detector", DetectorSettings(path=str(path), **settings))
    assert reader.check() == []
    reader.open(device="cpu", threads=1)
    return reader


def _picture(height: int, width: int, colour: tuple[int, int, int]) -> Image:
    return np.full((height, width, 3), colour, np.uint8)


# ------------------------------------------------------------------------------------------------------ pure functions


def test_a_letterboxed_picture_keeps_its_proportions_and_the_rest_is_grey() -> None:
    shown, fit = letterboxed(_picture(100, 200, (9, 8, 7)), (64, 64))
    assert shown.shape == (64, 64, 3)
    assert (shown[:32] == (9, 8, 7)).all()
    assert (shown[32:] == 114).all()
    assert fractions(np.array([[32.0, 16.0, 64.0, 32.0]]), fit).tolist() == [[0.5, 0.5, 1.0, 1.0]]


@given(st.integers(1, 300), st.integers(1, 300), st.data())
def test_boxes_come_back_to_where_they_were(height: int, width: int, data: st.DataObject) -> None:
    _, fit = letterboxed(_picture(height, width, (0, 0, 0)), (128, 96))
    x_min, top = data.draw(st.floats(0, 0.5)), data.draw(st.floats(0, 0.5))
    box = np.array([x_min, top, x_min + 0.3, top + 0.4])
    inside = box * np.array([width * fit.across, height * fit.down] * 2)
    np.testing.assert_allclose(fractions(inside[None], fit)[0], box, atol=1e-9)


def test_cells_of_yolox_are_at_three_strides_one_after_the_other() -> None:
    # 64×64: 8×8 cells at stride 8, 4×4 at 16, 2×2 at 32
    output = np.zeros((84, 7))
    output[1 * 8 + 2] = [0.5, 0.25, np.log(2.0), np.log(3.0), 0.9, 0.5, 1.0]  # stride 8, row 1, column 2
    output[64 + 16 + 3] = [0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 0.0]  # stride 32, row 1, column 1
    boxes, scores = yolox_boxes(output, (64, 64), decoded=False)
    # centre (2.5, 1.25) × 8 = (20, 10), 16 wide, 24 high
    assert boxes[10].tolist() == pytest.approx([12.0, -2.0, 28.0, 22.0])
    assert boxes[83].tolist() == pytest.approx([16.0, 16.0, 48.0, 48.0])
    assert scores[10].tolist() == pytest.approx([0.45, 0.9])
    assert scores[83].tolist() == pytest.approx([0.5, 0.0])
    with pytest.raises(BadOutput, match="84 at strides"):
        yolox_boxes(output[:80], (64, 64), decoded=False)
    with pytest.raises(BadOutput, match="finite"):
        yolox_boxes(np.full((84, 7), np.nan), (64, 64), decoded=False)


def test_graphs_that_decode_give_centres_and_sides_in_pixels() -> None:
    boxes, scores = yolox_boxes(np.array([[20.0, 10.0, 16.0, 24.0, 0.5, 1.0]]), (64, 64), decoded=True)
    assert boxes.tolist() == [[12.0, -2.0, 28.0, 22.0]]
    assert scores.tolist() == [[0.5]]


@given(st.integers(0, 40), st.integers(0, 2**32 - 1), st.sampled_from([0.3, 0.45, 0.7]))
def test_suppression_keeps_what_torchvision_keeps(count: int, seed: int, overlap: float) -> None:
    import torch
    from torchvision.ops import batched_nms

    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 50, (count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(1, 40, (count, 2))], axis=1)
    detections = Detections(boxes=boxes, scores=rng.permutation(count) / 50.0, labels=rng.integers(0, 3, count))
    remaining = suppressed(detections, overlap, 1000)
    tensors = [torch.from_numpy(array) for array in (detections.boxes, detections.scores, detections.labels)]
    expected = batched_nms(tensors[0], tensors[1], tensors[2], overlap).numpy()
    assert remaining.scores.tolist() == detections.scores[expected].tolist()
    assert len(suppressed(detections, overlap, 3).scores) == min(3, len(expected))


def test_a_box_has_its_best_class_where_that_reaches_the_score() -> None:
    boxes, scores = np.zeros((3, 4)), np.array([[0.2, 0.3], [0.29, 0.1], [0.6, 0.5]])
    detections = above_score(boxes, scores, 0.3)
    assert detections.labels.tolist() == [1, 0]
    assert detections.scores.tolist() == [0.3, 0.6]


def test_classes_of_coco_are_those_of_pools() -> None:
    names = read_names(COCO_80)
    assert len(set(names)) == 80
    assert [names[0], names[79]] == ["person", "toothbrush"]
    assert [pool_class(name) for name in ("bicycle", "skis", "sports ball", "dining_table", "Zyzzyva")] == [
        "bike",
        "ski",
        "ball",
        "dining table",
        "zyzzyva",
    ]
    assert len({pool_class(name) for name in names}) == 80  # all are different


# --------------------------------------------------------------------------------------------------------------- graphs


def _cells(score: float = 1.0) -> np.ndarray[Any, Any]:
    """Return a picture's cells with one object of class 1 (of 3) at pixels 8…24 × 0…32."""
    output = np.zeros((1, 84, 8), np.float32)
    output[0, 10] = [0.0, 1.0, np.log(2.0), np.log(4.0), score, 0.0, 0.9, 0.0]
    return output


def _named(folder: Path, names: str = "dog\ncat\nbicycle\n") -> str:
    (folder / "names.txt").write_text(names)
    return str(folder / "names.txt")


def test_yolox_gets_blue_first_and_unscaled_levels(tmp_path: Path) -> None:
    graph = save_graph(tmp_path / "x.onnx", {"output": _cells(1 / 255)}, score="output", channel=0)
    # the graph's scores are those of the brightest level of its first channel: blue
    reader = _opened(graph, names=_named(tmp_path))
    blue, red = _picture(SIDE, SIDE, (0, 0, 255)), _picture(SIDE, SIDE, (255, 0, 0))
    # multiplied by 255, offsets and sides of the cell too: only scores are checked
    scenes = reader.look([blue, red], [THREE, THREE])
    assert [scene.names() for scene in scenes] == [{"cat": 1}, {}]
    assert scenes[0].tells.classes == {"dog", "cat", "bike"}
    assert scenes[0].tells.attributes == frozenset()
    turned = _opened(graph, names=_named(tmp_path), order="rgb")
    assert [scene.names() for scene in turned.look([blue, red], [THREE, THREE])] == [{}, {"cat": 1}]


def test_objects_are_at_their_place_in_the_picture(tmp_path: Path) -> None:
    reader = _opened(save_graph(tmp_path / "x.onnx", {"output": _cells()}), names=_named(tmp_path))
    (scene,) = reader.look([_picture(100, 200, (0, 0, 0))], [THREE])
    (cat,) = scene.entities
    # cell (2, 1) of stride 8 moved by one row: centre (16, 16), 16 wide, 32 high; the picture fills the upper half
    assert cat.box == pytest.approx((8 / 64, 0.0, 24 / 64, 1.0))
    assert cat.score == pytest.approx(0.9)


BOXES = np.array([[[0.0, 0.0, 32.0, 32.0], [32.0, 0.0, 64.0, 32.0], [1.0, 1.0, 32.0, 32.0]]], np.float32)
SCORES = np.array([[0.9, 0.8, 0.1]], np.float32)
LABELS = np.array([[2, 0, 1]], np.int64)
ROWS = np.concatenate([BOXES, SCORES[..., None], LABELS[..., None].astype(np.float32)], axis=2)
TABLE = np.zeros((1, 3, 3), np.float32)
TABLE[0, [0, 1, 2], [2, 0, 1]] = SCORES[0]


@pytest.mark.parametrize(
    "outputs",
    [
        {"boxes": BOXES, "scores": SCORES, "labels": LABELS},
        {"class_ids": LABELS, "confidence": SCORES, "dets": BOXES},
        {"pred": ROWS},
        {"pred_boxes": BOXES, "pred_scores": TABLE},
    ],
)
def test_exports_with_decoded_objects_are_read(tmp_path: Path, outputs: dict[str, Any]) -> None:
    graph = save_graph(tmp_path / "x.onnx", outputs)
    reader = _opened(graph, names=_named(tmp_path), layout="boxes", order="rgb", scale=255.0)
    (scene,) = reader.look([_picture(SIDE, SIDE, (0, 0, 0))], [THREE])
    assert [(entity.name, entity.box) for entity in scene.entities] == [
        ("bike", (0, 0, 0.5, 0.5)),
        ("dog", (0.5, 0, 1, 0.5)),
    ]
    assert ("bike", "left of", "dog") in scene.named()


def test_a_graph_that_gets_the_size_gives_pixels_of_the_picture(tmp_path: Path) -> None:
    outputs = {"boxes": BOXES / 64, "scores": SCORES, "labels": LABELS}
    graph = save_graph(tmp_path / "x.onnx", outputs, sizes=True)
    reader = _opened(graph, names=_named(tmp_path), layout="boxes", resize="stretch")
    (scene,) = reader.look([_picture(100, 200, (0, 0, 0))], [THREE])
    assert [entity.box for entity in scene.entities] == [(0, 0, 0.5, 0.5), (0.5, 0, 1, 0.5)]


def test_boxes_may_be_fractions_of_the_input(tmp_path: Path) -> None:
    outputs = {"boxes": BOXES / 64, "scores": SCORES, "labels": LABELS}
    reader = _opened(
        save_graph(tmp_path / "x.onnx", outputs), names=_named(tmp_path), layout="boxes", boxes="fractions"
    )
    (scene,) = reader.look([_picture(SIDE, SIDE, (0, 0, 0))], [THREE])
    assert [entity.box for entity in scene.entities] == [(0, 0, 0.5, 0.5), (0.5, 0, 1, 0.5)]


@pytest.mark.parametrize(
    ("outputs", "layout", "words"),
    [
        ({"output": _cells()[..., :7]}, "yolox", "scores of 2 classes; the names are 3"),
        ({"a": SCORES, "b": SCORES}, "boxes", r"one output of boxes K×4 is expected"),
        ({"boxes": BOXES, "scores": SCORES, "labels": LABELS + 2}, "boxes", "gave class 4; the names are 3"),
        ({"boxes": np.full_like(BOXES, np.inf), "scores": SCORES, "labels": LABELS}, "boxes", "not finite"),
        ({"boxes": BOXES, "x": SCORES, "y": LABELS}, "boxes", "boxes, scores and labels"),
    ],
)
def test_outputs_that_do_not_fit_the_layout_are_reported(tmp_path: Path, outputs: Any, layout: str, words: str) -> None:
    reader = _opened(save_graph(tmp_path / "x.onnx", outputs), names=_named(tmp_path), layout=layout)
    with pytest.raises(BadOutput, match=words):
        reader.look([_picture(SIDE, SIDE, (0, 0, 0))], [THREE])


def test_graphs_that_take_no_picture_or_no_known_size_are_refused(tmp_path: Path) -> None:
    outputs = {"output": _cells()}
    grey = save_graph(tmp_path / "grey.onnx", outputs, image=(1, 1, SIDE, SIDE))
    with pytest.raises(MedtestError, match="N×3×height×width"):
        _opened(grey)
    free = save_graph(tmp_path / "free.onnx", outputs, image=("N", 3, "H", "W"))
    with pytest.raises(MedtestError, match=r"set size="):
        _opened(free)
    assert _opened(free, size=[64, 64], names=_named(tmp_path)).look([_picture(9, 9, (0, 0, 0))], [THREE])
    fixed = save_graph(tmp_path / "fixed.onnx", outputs)
    with pytest.raises(MedtestError, match="takes pictures of 64×64"):
        _opened(fixed, size=[416, 416])


def test_missing_files_are_mistakes_and_weights_count(tmp_path: Path) -> None:
    (mistake,) = Detector("detector", DetectorSettings()).check()
    assert mistake.fix == "add path=PATH"
    graph = save_graph(tmp_path / "x.onnx", {"output": _cells()})
    mistakes = Detector("detector", DetectorSettings(path=str(graph), names=str(tmp_path / "none.txt"))).check()
    assert [mistake.key for mistake in mistakes] == ["names"]
    first = Detector("detector", DetectorSettings(path=str(graph)))
    second = Detector("detector", DetectorSettings(path=str(graph), score=0.4))
    assert first.fingerprint() != second.fingerprint()
    assert len(first.fingerprint()["weights"]) == 1
    assert str(tmp_path) not in json.dumps(first.fingerprint())


def test_the_part_is_found_by_its_name() -> None:
    assert parts("readers")["detector"].load() is Detector


# --------------------------------------------------------------------------------------------------------- photographs


def _presence(reader: Detector) -> tuple[int, int, int]:
    """Return the numbers of present classes over 32² pixels, of those that are seen, and of spurious ones."""
    annotated = json.loads((PHOTOS / "annotations.json").read_text())
    present = hits = spurious = 0
    for photograph in annotated:
        scene: Scene
        (scene,) = reader.look([read_rgb(PHOTOS / "images" / photograph["file"])], [THREE])
        every = {pool_class(item["class"]) for item in photograph["objects"]}
        large = {pool_class(t["class"]) for t in photograph["objects"] if t["box_xywh"][2] * t["box_xywh"][3] > 32**2}
        present, hits = present + len(large), hits + len(large & scene.names().keys())
        spurious += len(scene.names().keys() - every)
    return present, hits, spurious


@pytest.mark.slow
@pytest.mark.skipif(not (PHOTOS.is_dir() and YOLOX.is_file()), reason="the 60 photographs and YOLOX-nano are not here")
def test_yolox_nano_sees_on_photographs_what_it_saw_before() -> None:
    present, hits, spurious = _presence(_opened(YOLOX))
    assert present == 177
    assert hits == pytest.approx(114, abs=2)
    assert spurious == pytest.approx(22, abs=2)
    _, turned, _ = _presence(_opened(YOLOX, order="rgb"))
    assert turned == pytest.approx(95, abs=2)
