"""A network of scene graphs as an ONNX graph: objects, relations, and refused outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from picture_graphs import SIDE, save_graph

from medtest.core.errors import BadOutput, MedtestError
from medtest.core.plugins import parts
from medtest.language.captions.vocabulary import vg150
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.scene_graph import SceneGraph, SceneGraphSettings
from medtest.readers.pictures.spatial import PREDICATES

IMAGE = np.zeros((32, 64, 3), np.uint8)
VOCABULARY = vg150()


def _label(name: str) -> int:
    return VOCABULARY.classes.index(name) + 1  # 0 is none


def _scores(*pairs: tuple[str, float]) -> list[float]:
    row = np.zeros(51)
    for predicate, score in pairs:
        row[VOCABULARY.predicates.index(predicate) + 1] = score
    row[0] = 0.9
    return row.tolist()


def _outputs(**changed: Any) -> dict[str, Any]:
    plain = {
        # a man on a horse; a bird that nobody is sure of; a guy is a man
        "boxes": np.array([[0, 0, 16, 16], [0, 8, 32, 32], [50, 0, 60, 10], [40, 16, 60, 32]], np.float32),
        "labels": np.array([_label("man"), _label("horse"), _label("bird"), _label("guy")], np.int64),
        "scores": np.array([0.8, 0.9, 0.1, 0.5], np.float32),
        "pairs": np.array([[0, 1], [2, 1], [3, 1]], np.int64),
        "predicate_scores": np.array(
            [
                _scores(("riding", 0.7), ("on", 0.3), ("wears", 0.05)),
                _scores(("near", 0.9)),
                _scores(("laying on", 0.2)),
            ],
            np.float32,
        ),
    }
    return plain | changed


def _opened(path: Path, **settings: Any) -> SceneGraph:
    reader = SceneGraph("scene_graph", SceneGraphSettings(path=str(path), resize="stretch", **settings))
    assert reader.check() == []
    reader.open(device="cpu", threads=1)
    return reader


@pytest.mark.parametrize("batch", [False, True])
def test_objects_and_relations_are_those_of_the_network(tmp_path: Path, batch: bool) -> None:
    outputs = {name: array[None] if batch else array for name, array in _outputs().items()}
    reader = _opened(save_graph(tmp_path / "sg.onnx", outputs))
    (scene,) = reader.look([IMAGE], [PictureContent("0" * 64)])
    assert [(entity.name, entity.score) for entity in scene.entities] == [
        ("horse", pytest.approx(0.9)),
        ("man", pytest.approx(0.8)),
        ("man", pytest.approx(0.5)),
    ]
    assert scene.entities[1].box == (0.0, 0.0, 0.25, 0.25)
    named = set(scene.named())
    assert {triple for triple in named if triple[1] not in PREDICATES} == {
        ("man", "riding", "horse"),
        ("man", "lying on", "horse"),
    }
    assert ("man", "on", "horse") in named  # the network's
    assert ("man", "right of", "horse") in named  # the boxes', for which it has no predicate
    assert not any(triple[1] == "near" for triple in named)  # the network has that, and does not report it
    assert scene.tells.classes is not None
    assert {"man", "bird"} <= scene.tells.classes
    assert "guy" not in scene.tells.classes
    assert scene.tells.predicates is not None
    assert {"riding", "left of", "lying on"} <= scene.tells.predicates


def test_the_surest_relations_are_kept(tmp_path: Path) -> None:
    reader = _opened(save_graph(tmp_path / "sg.onnx", _outputs()), most_relations=1, score=0.0)
    (scene,) = reader.look([IMAGE], [PictureContent("0" * 64)])
    own = {triple for triple in scene.named() if triple[1] not in ("left of", "right of")}
    assert own == {("bird", "near", "horse")}


def test_own_names_without_a_background(tmp_path: Path) -> None:
    (tmp_path / "things.txt").write_text("dog\nkennel\n")
    (tmp_path / "said.txt").write_text("guards\nnext to\n")
    outputs = {
        "boxes": np.array([[0, 0, 16, 16], [16, 0, 32, 16]], np.float32),
        "labels": np.array([0, 1], np.int64),
        "scores": np.array([0.8, 0.9], np.float32),
        "pairs": np.array([[0, 1]], np.int64),
        "predicate_scores": np.array([[0.5, 0.6]], np.float32),
    }
    graph = save_graph(tmp_path / "sg.onnx", outputs)
    files = {"names": str(tmp_path / "things.txt"), "predicates": str(tmp_path / "said.txt")}
    reader = _opened(graph, background=False, **files)
    (scene,) = reader.look([IMAGE], [PictureContent("0" * 64)])
    assert {("dog", "guards", "kennel"), ("dog", "near", "kennel")} <= set(scene.named())
    assert len(reader.fingerprint()["weights"]) == 3


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"pairs": np.array([[0, 1], [2, 1], [3, 4]], np.int64)}, "a pair of things that it does not have"),
        ({"labels": np.array([1, 2, 3, 151], np.int64)}, "gave class 151; the names are 150"),
        ({"predicate_scores": np.zeros((3, 50), np.float32)}, "scores of 50 predicates"),
        ({"scores": np.zeros(3, np.float32)}, "boxes, "),
        ({"boxes": np.full((4, 4), np.nan, np.float32)}, "not finite"),
        ({"pairs": np.zeros((2, 3, 2), np.int64)}, "2 axes are expected"),
    ],
)
def test_outputs_that_do_not_fit_are_reported(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    reader = _opened(save_graph(tmp_path / "sg.onnx", _outputs(**changed)))
    with pytest.raises(BadOutput, match=words):
        reader.look([IMAGE], [PictureContent("0" * 64)])


def test_a_graph_without_relations_is_refused(tmp_path: Path) -> None:
    outputs = _outputs()
    del outputs["pairs"]
    with pytest.raises(MedtestError, match="lacks pairs"):
        _opened(save_graph(tmp_path / "sg.onnx", outputs))


def test_a_picture_without_things_is_an_empty_scene(tmp_path: Path) -> None:
    empty = {name: array[:0] for name, array in _outputs().items()}
    reader = _opened(save_graph(tmp_path / "sg.onnx", empty, image=(1, 3, SIDE, SIDE)))
    (scene,) = reader.look([IMAGE], [PictureContent("0" * 64)])
    assert scene.entities == ()
    assert scene.triples == ()


def test_the_part_is_found_by_its_name() -> None:
    assert parts("readers")["scene_graph"].load() is SceneGraph
