"""``medtest readers card``: cards of labelled photographs and of drawn pictures, and mistakes in the command."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from medtest.cli.app import run_app
from medtest.cli.data.labelled import capsule_pictures, film_pictures, question_pictures, scene_pictures
from medtest.core.cases import Image, image_sha256
from medtest.core.errors import MedtestError, UserMistakes
from medtest.core.scenes import Scene
from medtest.phantoms.scenes import CLASSES, COLOURS
from medtest.readers.pictures.base import PictureContent, PictureReader, PictureSettings
from medtest.readers.pictures.card import Card
from medtest.readers.pictures.labelled import LabelledPictures, coco_pictures, make_card
from medtest.readers.pictures.spatial import PREDICATES
from medtest.results.cards import card_rows

SHARED = Path(os.environ.get("MEDTEST_SHARED", Path(__file__).parents[2].parent / "shared")) / "data"
PHOTOS, YOLOX = SHARED / "photos", SHARED / "detector" / "yolox_nano.onnx"


def _photographs(folder: Path) -> Path:
    (folder / "images").mkdir(parents=True)
    for name in ("a", "b"):
        cv2.imwrite(str(folder / "images" / f"{name}.png"), np.full((100, 200, 3), 90, np.uint8))
    return folder


LISTED: Any = [
    {
        "file": "a.png",
        "width": 200,
        "height": 100,
        "objects": [
            {"class": "dog", "box_xywh": [0, 0, 50, 50]},
            {"class": "bicycle", "box_xywh": [100, 0, 60, 60]},
            {"class": "cat", "box_xywh": [100, 0, 10, 10]},
        ],
    },
    {"file": "b.png", "width": 200, "height": 100, "objects": []},
]
COCO: Any = {
    "images": [{"id": 7, "file_name": "a.png", "width": 200, "height": 100}, {"id": 9, "file_name": "b.png"}],
    "categories": [
        {"id": 1, "name": "dog"},
        {"id": 5, "name": "bicycle"},
        {"id": 9, "name": "cat"},
        {"id": 8, "name": "cow"},
    ],
    "annotations": [
        {"image_id": 7, "category_id": 1, "bbox": [0, 0, 50, 50]},
        {"image_id": 7, "category_id": 5, "bbox": [100, 0, 60, 60], "iscrowd": 1},
        {"image_id": 7, "category_id": 9, "bbox": [100, 0, 10, 10]},
    ],
}
COCO["images"][1] |= {"width": 200, "height": 100}


def test_labels_in_both_layouts_give_true_scenes(tmp_path: Path) -> None:
    folder = _photographs(tmp_path / "one")
    (folder / "annotations.json").write_text(json.dumps(LISTED))
    labelled = coco_pictures(folder)
    first, second = labelled.pictures
    assert labelled.classes == {"dog", "bike", "cat"}
    assert [(entity.name, entity.box) for entity in first.truth.entities] == [
        ("dog", (0.0, 0.0, 0.25, 0.5)),
        ("bike", (0.5, 0.0, 0.8, 0.6)),
    ]
    assert ("dog", "left of", "bike") in first.truth.named()
    assert first.doubtful == ("cat",)  # too small to count, neither there nor not
    assert second.truth.entities == ()
    assert first.pixels().shape == (100, 200, 3)
    other = _photographs(tmp_path / "two")
    (other / "annotations").mkdir()
    (other / "annotations" / "instances_val2017.json").write_text(json.dumps(COCO))
    as_coco = coco_pictures(other)
    assert as_coco.classes == {"dog", "bike", "cat", "cow"}
    assert [(entity.name, entity.box is None) for entity in as_coco.pictures[0].truth.entities] == [
        ("dog", False),
        ("bike", True),
    ]
    assert len(coco_pictures(other, limit=1).pictures) == 1


def test_labels_may_name_relations_and_attributes(tmp_path: Path) -> None:
    folder = _photographs(tmp_path / "one")
    listed = json.loads(json.dumps(LISTED))
    listed[0]["objects"][1]["attributes"] = ["red"]
    listed[0]["triples"] = [[0, "laying on", 1], [2, "near", 1]]
    (folder / "annotations.json").write_text(json.dumps(listed))
    labelled = coco_pictures(folder)
    assert labelled.pictures[0].truth.named() == (("dog", "lying on", "bike"),)  # the cat is too small
    assert labelled.pictures[0].truth.entities[1].attributes == ("red",)
    assert (labelled.predicates, labelled.attributes) == ({"lying on", "near"}, {"red"})
    listed[0]["triples"] = [[0, "on", 7]]
    (folder / "annotations.json").write_text(json.dumps(listed))
    with pytest.raises(MedtestError, match="a triple names an object"):
        coco_pictures(folder)


class SeesTruth(PictureReader):
    """Reader that looks up the true scene by the picture's pixels."""

    def __init__(self, drawn: LabelledPictures) -> None:
        super().__init__("truth", PictureSettings())
        self.truths = {image_sha256(picture.pixels()): picture.truth for picture in drawn.pictures}

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        return [self.truths[image_sha256(image)] for image in images]


def test_drawn_scenes_are_the_same_again_and_a_perfect_reader_has_a_full_card() -> None:
    card = make_card(SeesTruth(scene_pictures(30, 5)), scene_pictures(30, 5))
    classes, predicates, colours = (card.of_kind(kind) for kind in ("class", "predicate", "attribute"))
    assert len(classes) == len(CLASSES)
    assert len(predicates) == len(PREDICATES)
    assert len(colours) == len(COLOURS)
    assert all(row.seen == row.present and row.spurious == 0 for row in card.rows)
    assert all(row.present + row.absent == 30 for row in classes)
    assert sum(row.reliable for row in predicates) == len(PREDICATES)


@pytest.mark.parametrize("drawn", [scene_pictures, question_pictures, film_pictures, capsule_pictures])
def test_only_the_pictures_of_a_batch_are_drawn(drawn: Callable[[int, int], LabelledPictures]) -> None:
    many = drawn(100_000, 5).pictures  # drawing all of them would take an hour, and 20 GB
    assert len(many) == 100_000
    batch = many[99_998:100_004]
    assert [picture.name.split()[-1] for picture in batch] == ["99998", "99999"]
    assert image_sha256(batch[1].pixels()) == image_sha256(many[99_999].pixels())


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("{", "no labels as COCO's"),
        ("[]", "names no picture"),
        ('[{"file": "a.png", "width": 0, "height": 9, "objects": []}]', "has no size"),
        ('[{"file": "c.png", "width": 9, "height": 9, "objects": []}]', "c.png is missing"),
        ('[{"file": "../a.png", "width": 9, "height": 9, "objects": []}]', "not in the folder"),
        (
            '[{"file": "a.png", "width": 9, "height": 9, "objects": [{"class": "a", "box_xywh": [0, 0, -1, 1]}]}]',
            "not a box",
        ),
        ('{"images": 3}', "no labels as COCO's"),
    ],
)
def test_unreadable_labels_are_one_sentence(tmp_path: Path, labels: str, words: str) -> None:
    folder = _photographs(tmp_path / "one")
    (folder / "annotations.json").write_text(labels)
    with pytest.raises(MedtestError, match=words):
        coco_pictures(folder)


@pytest.mark.slow
def test_a_segmenter_is_not_a_reader_of_polyps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bundled PraNet at one half marks something in most pictures, with polyps or without; its card shows it."""
    target = tmp_path / "pranet.card.json"
    assert run_app(["readers", "card", "reader=segments", "questions=60", "seed=1", f"card={target}"]) == 0
    card = Card.read(target)
    polyp = card.row("class", "polyp")
    assert polyp is not None
    assert polyp.counts == (24, 22, 36, 27)
    assert not polyp.reliable
    shown = capsys.readouterr().out
    assert "not used" in shown and "oracles.reader.card=" in shown
    (row,) = list(csv.DictReader((tmp_path / "pranet.card.csv").open(encoding="utf-8")))
    # Wilson's intervals of 22 of 24 and of 9 of 36, from statsmodels
    from statsmodels.stats.proportion import proportion_confint

    ends = [*proportion_confint(22, 24, method="wilson"), *proportion_confint(9, 36, method="wilson")]
    names = [f"{rate}_{end}" for rate in ("sensitivity", "specificity") for end in ("low", "high")]
    assert [float(row[name]) for name in names] == pytest.approx(ends, abs=1e-4)
    assert row["told"] == "False"
    # with that card the reader tells nothing of polyps
    from medtest.readers.pictures.segments import Segments, SegmentsSettings

    reader = Segments("segments", SegmentsSettings(card=str(target)))
    assert reader.check() == []
    assert reader.card == card
    other = Segments("segments", SegmentsSettings(card=str(target), threshold=0.9))
    assert "other settings" in other.check()[0].found


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["questions=3"], "reader=NAME"),
        (["reader=segments"], "one of data=FOLDER, scenes=N, questions=N"),
        (["reader=segments", "questions=60", "data=x"], "data and questions"),
        (["reader=segments", "questions=many"], "a number from 1 to"),
        (["reader=bundled", "scenes=0", "card=x.json"], "a number from 1 to"),
        (["reader=bundled", "capsules=1", "card=x.json"], "names nothing of it"),
        (["reader=segment", "questions=1"], "segments"),
        (["reader=typed_answers", "questions=1"], "a reader of pictures"),
        (["reader=segments", "questions=1"], "add card=FILE"),
        (["reader=segments", "questions=1", "sytem=pranet"], "sytem"),
        (["reader=segments", "questions=1", "system=gpt_5", "card=x.json"], "pranet"),
        (["reader=segments", "questions=1", "settings.size=-3", "card=x.json"], "settings.size"),
        (["reader=detector", "data=nowhere"], "add path=PATH"),
        (["reader=segments", "data=nowhere", "card=x.json"], "existing folder or file of labels"),
        (["reader=segments", "questions=1", "card=nowhere/x.json"], "existing folder"),
        (["segments"], "KEY=VALUE"),
    ],
)
def test_mistakes_in_the_command_are_one_message(
    typed: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserMistakes, match=words):
        run_app(["readers", "card", *typed])
    assert not [*tmp_path.iterdir()]


def test_a_card_without_pictures_of_a_name_is_a_mistake() -> None:
    from medtest.readers.pictures.card import CardRow

    (row,) = card_rows(Card(rows=(CardRow(kind="class", name="dog", present=0, seen=0, absent=4, spurious=0),)))
    assert row["sensitivity"] is None
    assert row["sensitivity_low"] is None
    assert row["specificity"] == 1.0
    assert row["told"] is False


@pytest.mark.slow
@pytest.mark.skipif(not (PHOTOS.is_dir() and YOLOX.is_file()), reason="the 60 photographs and YOLOX-nano are not here")
def test_the_card_of_yolox_nano_is_beside_it_and_is_used(tmp_path: Path) -> None:
    from medtest.readers.pictures.detectors.detector import Detector, DetectorSettings

    graph = tmp_path / "yolox.onnx"
    graph.write_bytes(YOLOX.read_bytes())
    assert run_app(["readers", "card", "reader=detector", f"path={graph}", f"data={PHOTOS}"]) == 0
    reader = Detector("detector", DetectorSettings(path=str(graph)))
    assert reader.card is not None
    rows = reader.card.of_kind("class")
    assert sum(row.present for row in rows) == 177
    assert sum(row.seen for row in rows) == pytest.approx(114, abs=2)
    person, plant = reader.card.row("class", "person"), reader.card.row("class", "potted plant")
    assert person is not None
    assert person.reliable
    assert plant is not None
    assert not plant.reliable
    assert Detector("detector", DetectorSettings(path=str(graph), score=0.4)).card is None  # made at 0.3
