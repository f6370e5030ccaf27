"""The reader of medical pictures of several kinds: the reader for each picture, and users' mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from medtest.core.plugins import is_trusted, part
from medtest.core.scenes import Entity, Pool, dumped
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.findings.orders import BLIND, OrderReader, OrderReaderSettings, kind_of


def reader(**settings: Any) -> OrderReader:
    merged = OrderReaderSettings(**{**part("readers", "orders").defaults, **settings})
    return OrderReader("orders", merged)


def pool(*names: str, absent: tuple[str, ...] = ()) -> Pool:
    return Pool(entities=tuple(Entity(name=name) for name in names), absent=absent)


@pytest.mark.parametrize(
    ("pools", "kind"),
    [
        ([pool("effusion")], "chest film"),
        ([pool(absent=("pneumothorax",)), pool("mass")], "chest film"),
        ([pool("polyp", "tube")], "endoscopy"),
        ([pool("erosion")], "capsule"),
        ([pool("polyp", "effusion")], ""),
        ([pool("dog")], ""),
        ([pool()], ""),
    ],
)
def test_findings_say_the_kind_of_picture(pools: list[Pool], kind: str) -> None:
    assert kind_of(pools) == kind


def test_a_picture_without_a_reader_has_no_reading() -> None:
    content = PictureContent("ab" * 32, (dumped(pool("erosion").as_json()),))
    (scene,) = reader(capsule={}).look([np.zeros((128, 128, 3), np.uint8)], [content])
    assert scene.entities == ()
    assert scene.tells == BLIND
    assert not scene.tells.names("erosion")


def test_the_shipped_readers_are_there_and_their_prints_differ_with_their_settings() -> None:
    orders = reader()
    assert orders.check() == []
    assert set(orders.readers()) == {"chest film", "endoscopy", "capsule"}
    assert "no reader for pictures of kind capsule" in reader(capsule={}).notice()
    other = reader(film={"use": "labels", "system": "chexnet_sides", "threshold": 0.8})
    assert other.print_without_card != orders.print_without_card


def test_each_bundled_reader_has_a_card_that_confirms_its_findings_except_angiectasias() -> None:
    for shipped in reader().readers().values():
        assert shipped.card is not None and shipped.card.pictures == 300
        untold = {row.name for row in shipped.card.of_kind("class") if not row.reliable}
        assert untold == ({"angiectasia"} if "angiectasia" in {row.name for row in shipped.card.rows} else set())
    assert reader().notice().count("no card") == 0


def test_mistakes_name_the_key_and_what_is_allowed() -> None:
    (mistake,) = reader(film={"use": "lables"}).check()
    assert (mistake.key, mistake.found, mistake.nearest) == ("film.use", "lables", "labels")
    (mistake,) = reader(film={"use": "labels", "system": "chexnet_sides", "threshold": 3}).check()
    assert mistake.key == "film.threshold"
    (mistake,) = reader(film={"use": "labels", "treshold": 0.5}).check()
    assert (mistake.key, mistake.found, mistake.nearest) == ("film.treshold", "the key treshold", "threshold")
    (mistake,) = reader(film={}, endoscopy={}, capsule={}).check()
    assert "no reader" in str(mistake.found)


def test_suites_of_others_cannot_set_the_readers() -> None:
    fields = OrderReaderSettings.model_fields
    assert all(is_trusted(fields[name]) for name in ("film", "endoscopy", "capsule"))


def test_cards_of_all_readers_count() -> None:
    card: Any = reader().about()["card"]
    assert {"effusion", "polyp", "bleeding"} <= {row[1] for row in card["rows"] if row[0] == "class"}
    only: Any = reader(endoscopy={}, capsule={}).about()["card"]
    assert only["pictures"] < card["pictures"]
