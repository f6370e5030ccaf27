"""Texts and boxes beside the pictures of each task in the report's browser, from records alone."""

from __future__ import annotations

import json

import numpy as np

from medtest.core.cases import Address, Prompt
from medtest.core.outputs import PictureOutput
from medtest.core.scenes import Pool
from medtest.core.tasks.base import task_of


def test_labels_have_their_probabilities_the_largest_first() -> None:
    source = {"label": "normal", "probabilities": json.dumps({"normal": 0.9, "vascular": 0.08, "bleeding": 0.02})}
    record = {
        "label": "bleeding",
        "source_label": "normal",
        "expected": "normal|vascular",
        "probabilities": json.dumps({"normal": 0.1, "vascular": 0.3, "bleeding": 0.6}),
    }
    shown = task_of("label").drawing.browsed(record, source)
    assert shown["bars"] == [
        ["normal", 0.9, 0.1, True],
        ["bleeding", 0.02, 0.6, False],
        ["vascular", 0.08, 0.3, True],
    ]
    assert shown["short"] == "normal → bleeding"


def test_labels_without_probabilities_have_none() -> None:
    shown = task_of("label").drawing.browsed({"label": "", "source_label": "a", "expected": None}, None)
    assert shown["bars"] == [] and shown["short"] == "a → none of the findings"


def test_answers_mark_the_passage_that_their_value_was_read_from() -> None:
    texts = {"question": "Is there a polyp?", "kind": "yes_no", "said": "yes", "state": "value"}
    source = {**texts, "answer": "There is a polyp.", "evidence": "is a polyp"}
    record = {**texts, "answer": "I see none.", "said": "no", "evidence": "none"}
    shown = task_of("answer").drawing.browsed(record, source)
    assert shown["marked"] == ["none", "is a polyp"]
    assert shown["short"] == "yes → no"
    assert all(any(passage in text for _, text in shown["words"]) for passage in shown["marked"])


def test_pictures_have_the_boxes_of_detected_entities() -> None:
    scene = {"entities": [["cup", [0.1, 0.2, 0.4, 0.5], 0.9, ["red"]], ["dog", None, 0.8, []]], "triples": []}
    record = {"prompt": "a red cup", "scene": json.dumps(scene), "source_scene": None}
    shown = task_of("depiction").drawing.browsed(record, None)
    assert shown["boxes"] == [[[0.1, 0.2, 0.4, 0.5], "red cup"]] and shown["source_boxes"] == []


def test_answers_that_are_pictures_are_shown_as_pictures() -> None:
    pixels = np.zeros((4, 6, 3), np.uint8)
    address = Address(dataset="a", seed_id="b")
    output = PictureOutput(address=address, prompt=Prompt(text="", pool=Pool()), picture="ab")
    drawing = task_of("depiction").drawing
    assert drawing.answer_picture(None, output, {"ab": pixels}.get) is pixels  # type: ignore[arg-type]
    assert task_of("mask").drawing.answer_picture(None, output, {"ab": pixels}.get) is None  # type: ignore[arg-type]
