"""Cards of readers: counts, readings that a card does not confirm, and the fingerprint of the card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.core.cases import Image, image_sha256
from medtest.core.errors import UserMistakes
from medtest.core.files.by_content import PictureFiles
from medtest.core.records import PICTURES
from medtest.core.scenes import Scene, SeenEntity, Tells, Triple
from medtest.readers.pictures.base import PictureContent, PictureReader, PictureSettings
from medtest.readers.pictures.card import BadCard, Card, CardCounts, CardRow


def _scene(*names: str, triples: Sequence[tuple[int, str, int]] = (), **attributes: tuple[str, ...]) -> Scene:
    entities = tuple(SeenEntity(name=name, attributes=attributes.get(name, ())) for name in names)
    return Scene(entities=entities, triples=tuple(Triple(subject=a, predicate=p, object=b) for a, p, b in triples))


def _row(present: int, hits: int, absent: int, spurious: int) -> CardRow:
    return CardRow(kind="class", name="dog", present=present, seen=hits, absent=absent, spurious=spurious)


def test_presence_is_counted_picture_by_picture() -> None:
    counts = CardCounts(classes=frozenset({"dog", "cat", "car"}))
    tells = Tells(classes=frozenset({"dog", "cat"}))
    counts.add(_scene("dog", "dog"), _scene("dog"), tells)
    counts.add(_scene("dog"), _scene("cat"), tells)
    counts.add(_scene("cat"), _scene("cat", "dog"), tells)
    counts.add(_scene("car"), _scene(), tells, doubtful=["dog"])
    card = counts.card(data="four", reader="r")
    assert card.pictures == 4
    assert [(row.name, *row.counts) for row in card.rows] == [("cat", 1, 1, 3, 1), ("dog", 2, 1, 1, 1)]
    dog = card.row("class", "dog")
    assert dog is not None
    assert (dog.sensitivity, dog.specificity, dog.reliable) == (0.5, 0.0, False)
    assert card.row("class", "car") is None  # the reader does not claim it


def test_relations_are_counted_end_to_end_over_present_entities() -> None:
    counts = CardCounts(classes=frozenset({"dog", "cat"}), predicates=frozenset({"on", "near"}))
    tells = Tells(predicates=frozenset({"on"}))
    truth = _scene("dog", "cat", triples=[(0, "on", 1)])
    counts.add(truth, truth, tells)
    counts.add(truth, _scene("dog"), tells)  # the cat is missed, and with it the object on it
    counts.add(_scene("dog", "cat"), _scene("dog", "cat", triples=[(1, "on", 0)]), tells)
    assert counts.card().of_kind("predicate") == ()  # there is no evidence for either class
    for _ in range(5):
        counts.add(_scene("dog"), _scene("dog"), tells)
        counts.add(_scene("cat"), _scene("cat"), tells)
    on = counts.card().row("predicate", "on")
    # six ordered pairs of different classes: two of which hold, one of these seen
    assert on is not None
    assert on.counts == (2, 1, 4, 1)
    assert counts.card().row("predicate", "near") is None


def test_relations_with_unreliable_classes_are_not_counted() -> None:
    counts = CardCounts(classes=frozenset({"dog", "cat", "owl"}), predicates=frozenset({"on"}))
    truth = _scene("dog", "cat", "owl", triples=[(0, "on", 1), (2, "on", 1)])
    partial = _scene("dog", "cat", triples=[(0, "on", 1)])
    for picture in (truth, _scene("dog"), _scene("cat")):
        counts.add(picture, partial if picture is truth else picture, Tells())
    on = counts.card().row("predicate", "on")
    assert on is not None
    assert on.counts == (1, 1, 1, 0)  # dog and cat alone: the owl is never seen


def test_attributes_are_counted_over_classes_that_are_there() -> None:
    counts = CardCounts(classes=frozenset({"dog", "cat"}), attributes=frozenset({"red"}))
    counts.add(_scene("dog", "cat", dog=("red",)), _scene("dog", "cat", cat=("red",)), Tells())
    counts.add(_scene("dog"), _scene("dog"), Tells(attributes=frozenset()))
    counts.add(_scene("cat"), _scene("cat"), Tells(attributes=frozenset()))
    red = counts.card().row("attribute", "red")
    assert red is not None
    assert red.counts == (1, 0, 1, 1)


@pytest.mark.parametrize(
    ("counts", "reliable"),
    [
        ((10, 9, 10, 4), True),  # 0.9 + 0.6
        ((10, 9, 10, 5), False),
        ((24, 22, 36, 27), False),  # PraNet at one half on question phantoms: 0.917 + 0.25
        ((10, 10, 10, 0), True),
        ((10, 5, 10, 0), True),
        ((10, 4, 10, 0), False),
        ((0, 0, 10, 0), False),
        ((10, 10, 0, 0), False),
    ],
)
def test_sums_below_one_and_a_half_are_unreliable(counts: tuple[int, ...], reliable: bool) -> None:
    assert _row(*counts).reliable is reliable


@given(st.integers(1, 50), st.integers(1, 50), st.data())
def test_the_sum_is_compared_without_rounding(present: int, absent: int, data: st.DataObject) -> None:
    from fractions import Fraction

    hits, spurious = data.draw(st.integers(0, present)), data.draw(st.integers(0, absent))
    exact = Fraction(hits, present) + 1 - Fraction(spurious, absent)
    assert _row(present, hits, absent, spurious).reliable == (exact >= Fraction(3, 2))


def test_readings_that_a_card_does_not_confirm_are_removed() -> None:
    good = CardRow(kind="class", name="cat", present=5, seen=5, absent=5, spurious=0)
    card = Card(rows=(good, _row(10, 4, 10, 0)))
    everything = Tells(predicates=frozenset({"on"}))
    assert card.restricted(everything).classes == {"cat"}
    assert card.restricted(Tells(classes=frozenset({"dog", "owl"}))).classes == frozenset()
    # an unmeasured kind stays unchanged
    assert card.restricted(everything).predicates == {"on"}
    assert card.restricted(everything).attributes is None
    assert not card.restricted(Tells(counts=False)).counts


def test_a_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    card = Card(rows=(_row(3, 2, 4, 1),), pictures=7, data="seven “pictures”", reader="ab")
    card.write(tmp_path / "x.card.json")
    assert Card.read(tmp_path / "x.card.json") == card
    assert Card.read(tmp_path / "x.card.json").sha256 == card.sha256


_HEAD = '{"card": 1, "reader": "", "data": "", "pictures": 1, '


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"card": 2, "reader": "", "data": "", "pictures": 0, "rows": []}',
        f'{_HEAD}"rows": [["class", "dog", 1, 2, 3, 0]]}}',
        f'{_HEAD}"rows": [["smell", "dog", 1, 1, 3, 0]]}}',
        f'{_HEAD}"rows": [["class", "a", 1, 1, 3, 0], ["class", "a", 1, 1, 3, 0]]}}',
    ],
)
def test_files_that_are_no_cards_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.card.json"
    path.write_text(content)
    with pytest.raises(BadCard, match=r"x\.card\.json"):
        Card.read(path)


class SeesDogs(PictureReader):
    """Sees a dog in every picture; a file takes the place of its weights."""

    file: Path | None = None

    def weights(self) -> Sequence[Path]:
        return [self.file] if self.file is not None else []

    def card_beside(self) -> Path | None:
        return None if self.file is None else self.file.with_suffix(".card.json")

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        return [Scene(entities=(SeenEntity(name="dog"),), tells=Tells(classes=frozenset({"dog"}))) for _ in images]


def _reader(folder: Path, **settings: str) -> SeesDogs:
    reader = SeesDogs("dogs", PictureSettings(**settings))
    reader.file = folder / "weights.bin"
    if not reader.file.exists():
        reader.file.write_bytes(b"one")
    return reader


def test_a_reader_without_a_card_says_so_and_reads_as_before(tmp_path: Path) -> None:
    reader = _reader(tmp_path)
    assert reader.card is None
    assert "dogs has no card" in reader.notice()
    assert reader.check() == []


def test_a_card_beside_the_reader_is_used_and_is_in_its_fingerprint(tmp_path: Path) -> None:
    bare = _reader(tmp_path)
    before = bare.fingerprint()
    Card(rows=(_row(24, 22, 36, 27),), reader=bare.print_without_card).write(tmp_path / "weights.card.json")
    reader = _reader(tmp_path)
    assert reader.card is not None
    assert reader.notice() == ""
    assert reader.fingerprint() != before
    picture = np.full((8, 8, 3), 7, np.uint8)
    files = PictureFiles(tmp_path / "run" / PICTURES)
    files.put("images", image_sha256(picture), picture)
    reader.keep_in([tmp_path / "run"])
    (scene,) = reader.read([PictureContent(image_sha256(picture))])
    assert scene.names() == {"dog": 1}
    assert scene.tells.classes == frozenset()  # the card fails it
    # without a card all readings are kept
    bare = _reader(tmp_path, card="none")
    bare.keep_in([tmp_path / "run"])
    assert bare.read([PictureContent(image_sha256(picture))])[0].tells.classes == {"dog"}
    assert bare.fingerprint() == before


def test_a_card_of_other_weights_is_not_taken(tmp_path: Path) -> None:
    first = _reader(tmp_path)
    beside = tmp_path / "weights.card.json"
    Card(rows=(_row(5, 5, 5, 0),), reader=first.print_without_card).write(beside)
    (tmp_path / "weights.bin").write_bytes(b"others")
    second = _reader(tmp_path)
    assert second.card is None
    assert "made with other weights" in second.notice()
    (mistake,) = _reader(tmp_path, card=str(beside)).check()
    assert "other weights" in mistake.found
    with pytest.raises(UserMistakes):
        raise mistake.as_error()


def test_a_named_card_that_is_missing_or_no_card_is_a_mistake(tmp_path: Path) -> None:
    (missing,) = _reader(tmp_path, card=str(tmp_path / "no.json")).check()
    assert "there is no such file" in missing.found
    (tmp_path / "odd.json").write_text(json.dumps({"rows": 3}))
    (odd,) = _reader(tmp_path, card=str(tmp_path / "odd.json")).check()
    assert "no card of a reader" in odd.found
