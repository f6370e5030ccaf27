"""Classifiers as readers of findings: names of classes, sides, thresholds, and the card of drawn films."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from medtest.cli.data.labelled import film_pictures
from medtest.core.cases import Classes
from medtest.core.scenes import SIDES, Scene, SeenEntity, Tells
from medtest.phantoms.chest.sides import CHEST_SIDES
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.card import Card, CardCounts, CardRow
from medtest.readers.pictures.findings.labels import LabelReader, LabelReaderSettings, finding_of_class
from medtest.readers.pictures.findings.orders import joined
from medtest.readers.pictures.labelled import make_card
from medtest.systems.base import System
from medtest.systems.classification.heads import CAPSULE_FINDINGS


@pytest.mark.parametrize(
    ("label", "meaning"),
    [
        ("Effusion", ("effusion", "")),
        ("Pleural_Thickening", ("pleural_thickening", "")),
        ("Left Pleural Effusion", ("effusion", "left")),
        ("PTX right", ("pneumothorax", "right")),
        ("Paris IIa polyp", ("polyp", "Paris IIa")),
        ("5-10mm polyp", ("polyp", "5-10mm")),
        ("red_polyp", ("polyp", "red")),
        ("short-segment barretts", ("short-segment barretts", "")),
        ("No Finding", None),
        ("left", None),
    ],
)
def test_a_class_names_a_finding_and_a_side(label: str, meaning: tuple[str, str] | None) -> None:
    assert finding_of_class(label) == meaning


def test_every_class_of_systems_that_ship_is_a_finding() -> None:
    for classes in (CHEST_SIDES, CAPSULE_FINDINGS):
        assert all(finding_of_class(name) for name in classes.names)


def test_attributes_count_where_the_finding_itself_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = Classes(names=("polyp", "red polyp", "Paris Ip polyp"), multi=True)
    scene = _read(monkeypatch, classes, [0.8, 0.9, 0.1])
    assert [(entity.name, entity.attributes, round(entity.score, 2)) for entity in scene.entities] == [
        ("polyp", ("red",), 0.8)
    ]
    assert scene.tells.attributes == {"red", "Paris Ip"}
    assert _read(monkeypatch, classes, [0.4, 0.9, 0.1]).entities == ()


@pytest.mark.parametrize(
    ("names", "name", "nearest"),
    [({"edma": "edema"}, "edma", "edema"), ({"edema": "edmea"}, "edmea", "edema")],
)
def test_names_of_no_class_or_no_finding_are_mistakes(names: dict[str, str], name: str, nearest: str) -> None:
    (mistake,) = LabelReader("labels", LabelReaderSettings(names=names)).check()
    assert (mistake.found, mistake.nearest) == (name, nearest)
    assert LabelReader("labels", LabelReaderSettings(names={"edema": "left effusion", "hernia": ""})).check() == []


def test_drawn_pictures_are_drawn_on_demand() -> None:
    pictures = film_pictures(100_000, 3).pictures
    assert len(pictures) == 100_000
    assert [picture.truth for picture in pictures[2:4]] == [picture.truth for picture in film_pictures(4, 3).pictures][
        2:
    ]


@pytest.mark.parametrize("system", ["chexnet_sides", "capsule_findings"])
def test_bundled_systems_have_their_own_card(system: str) -> None:
    card = LabelReader("labels", LabelReaderSettings(system=system)).card
    assert card is not None and card.of_kind("class")


def _read(monkeypatch: pytest.MonkeyPatch, classes: Classes, scores: Sequence[float], **settings: Any) -> Scene:
    """Return the scene for the scores of a system."""

    class Scored(System):
        answer_form = "probabilities"

        def fingerprint(self) -> dict[str, Any]:
            return {}

        def open(self, *, device: str, threads: int) -> None:
            self.classes = classes

        def predict(self, images: Any, addresses: Any) -> Any:
            return [np.array(scores, np.float32)] * len(images)

    reader = LabelReader("labels", LabelReaderSettings(**settings))
    monkeypatch.setattr(reader, "create_system", lambda: Scored("scored", Scored.Settings()))
    reader.open(device="cpu", threads=1)
    (scene,) = reader.look([np.zeros((8, 8, 3), np.uint8)], [PictureContent("0" * 64)])
    return scene


def test_labels_above_the_threshold_are_findings_with_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("edema", "left nodule", "right nodule", "left effusion", "right effusion", "No Finding")
    scores = [0.4, 0.7, 0.9, 0.2, 0.6, 0.8]
    scene = _read(monkeypatch, Classes(names=names, multi=True), scores)
    assert [(entity.name, entity.attributes) for entity in scene.entities] == [
        ("effusion", ("right",)),
        ("nodule", ("bilateral",)),
    ]
    assert scene.tells.classes == {"edema", "nodule", "effusion"}
    assert scene.tells.attributes == frozenset(SIDES) and not scene.tells.counts
    strict = _read(monkeypatch, Classes(names=names, multi=True), scores, threshold=0.65)
    assert [(entity.name, entity.attributes) for entity in strict.entities] == [("nodule", ("bilateral",))]


def test_of_exclusive_classes_the_most_probable_one_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = Classes(names=("normal", "vascular", "inflammatory"))
    scene = _read(monkeypatch, classes, [0.1, 0.6, 0.3], names={"vascular": "bleeding", "inflammatory": "ulcer"})
    assert [entity.name for entity in scene.entities] == ["bleeding"]
    assert scene.tells.classes == {"bleeding", "ulcer"} and scene.tells.attributes == frozenset()


def test_a_system_without_findings_is_a_mistake() -> None:
    (mistake,) = LabelReader("labels", LabelReaderSettings(system="agdn", settings={})).check()
    assert mistake.key == "names" and "normal, vascular" in mistake.found


def _films(*sides: str) -> Scene:
    return Scene(entities=tuple(SeenEntity(name="effusion", attributes=(side,) if side else ()) for side in sides))


def test_sides_are_counted_where_a_finding_is_on_one_side_and_read_on_one() -> None:
    counts = CardCounts(classes=frozenset({"effusion"}), attributes=frozenset(SIDES))
    pairs = [("left", "left")] * 5 + [("left", "right")] + [("right", "right")] * 3 + [("right", "left")]
    pairs += [("bilateral", "left"), ("left", "bilateral"), ("left", "")]
    for true, read in pairs:
        counts.add(_films(true), _films(read), Tells())
    row = counts.card().row("side", "effusion")
    assert row is not None and row.counts == (6, 5, 4, 1)


def test_a_side_that_a_reader_confuses_is_not_reported() -> None:
    rows = [CardRow(kind="class", name=name, present=20, seen=20, absent=20, spurious=0) for name in ("mass", "nodule")]
    rows += [CardRow(kind="side", name="mass", present=20, seen=19, absent=20, spurious=1)]
    rows += [CardRow(kind="side", name="nodule", present=20, seen=15, absent=20, spurious=6)]
    tells = Card(rows=tuple(rows)).restricted(Tells())
    assert tells.describes("left", "mass") and not tells.describes("left", "nodule")
    assert tells.describes("red", "nodule") and Tells.of_json(tells.as_json()) == tells
    assert "unsided" not in Tells().as_json()


@pytest.mark.slow
def test_the_card_of_the_film_reader_trusts_every_side() -> None:
    reader = LabelReader("labels", LabelReaderSettings())
    reader.open(device="cpu", threads=1)
    card = make_card(reader, film_pictures(120, 3))
    reader.close()
    sides = card.of_kind("side")
    assert len(sides) == 8 and sum(row.seen for row in sides) >= 0.9 * sum(row.present for row in sides)
    assert sum(row.reliable for row in card.of_kind("class")) >= 13


def test_cards_of_several_readers_are_one_with_the_rows_of_all() -> None:
    rows = [CardRow(kind="class", name=name, present=4, seen=3, absent=4, spurious=1) for name in ("edema", "ulcer")]
    both = joined([Card(rows=(rows[0],), pictures=8, data="films"), Card(rows=(rows[1],), pictures=9, data="frames")])
    assert both.rows == tuple(rows) and both.pictures == 17 and both.data == "films; frames"
