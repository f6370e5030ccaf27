"""The bundled reader reads drawn scenes, and finds nothing in empty ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from medtest.core.errors import MedtestError
from medtest.core.plugins import part
from medtest.core.scenes import Scene
from medtest.phantoms.scenes import ASPECTS, CLASSES, COLOURS, Placed, draw_scene
from medtest.readers.pictures.bundled.reader import Bundled, BundledSettings, _not_larger
from medtest.readers.pictures.spatial import PREDICATES
from medtest.training.scenes.layouts import pair_layout, random_layout
from medtest.training.scenes.scores import DetectionTally

DOG_BY_HOUSE = (
    Placed(name="house", colour="yellow", box=(0.45, 0.25, 0.95, 0.75)),
    Placed(name="dog", colour="blue", box=(0.05, 0.5, 0.35, 0.75)),
)


@pytest.fixture(scope="module")
def reader() -> Iterator[Bundled]:
    info = part("readers", "bundled")
    kind = info.load()
    opened = kind("bundled", kind.Settings(**info.defaults))
    assert opened.check() == []
    opened.open(device="cpu", threads=1)
    yield opened
    opened.close()


def test_the_shipped_card_is_of_the_shipped_weights(reader: Bundled) -> None:
    assert reader.card is not None and reader.card.pictures == 1000
    assert reader.notice() == ""


def _rng(*numbers: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(list(numbers)))


def _scene(reader: Bundled, picture: np.ndarray) -> Scene:
    return reader.look([picture], [])[0]


def _tally(reader: Bundled, scenes: list[list[Placed]], seed: int) -> DetectionTally:
    tally = DetectionTally()
    for index, placed in enumerate(scenes):
        scene = _scene(reader, draw_scene(placed, rng=_rng(seed, index)))
        tally.add(placed, scene.entities, scene.triples)
    return tally


def test_a_scene_is_read_completely(reader: Bundled) -> None:
    scene = _scene(reader, draw_scene(DOG_BY_HOUSE, rng=_rng(1), clutter=3))
    assert sorted((entity.name, entity.attributes) for entity in scene.entities) == [
        ("dog", ("blue",)),
        ("house", ("yellow",)),
    ]
    assert ("dog", "left of", "house") in scene.named()
    assert ("house", "right of", "dog") in scene.named()
    for entity in scene.entities:
        drawn = next(placed.box for placed in DOG_BY_HOUSE if placed.name == entity.name)
        assert entity.box == pytest.approx(drawn, abs=0.03)
    assert scene.tells.classes == frozenset(CLASSES)
    assert scene.tells.attributes == frozenset(COLOURS)
    assert scene.tells.predicates == frozenset(PREDICATES)
    assert scene.tells.counts


@pytest.mark.slow
def test_every_class_is_seen_alone(reader: Bundled) -> None:
    scenes = []
    for index, name in enumerate(CLASSES):
        width, height = 0.4 * min(1.0, ASPECTS[name]), 0.4 / max(1.0, ASPECTS[name])
        box = (0.48 - width / 2, 0.53 - height / 2, 0.48 + width / 2, 0.53 + height / 2)
        scenes.append([Placed(name=name, colour=COLOURS[index % len(COLOURS)], box=box)])
    tally = _tally(reader, scenes, 2)
    assert tally.matched >= len(CLASSES) - 1
    assert tally.coloured >= len(CLASSES) - 2
    assert tally.detected <= len(CLASSES) + 1


def test_objects_of_a_class_are_counted(reader: Bundled) -> None:
    row = [Placed(name="ball", colour="red", box=(0.02 + 0.24 * k, 0.4, 0.24 + 0.24 * k, 0.62)) for k in range(4)]
    scene = _scene(reader, draw_scene(row, rng=_rng(3), clutter=0))
    assert scene.names() == {"ball": 4}


@pytest.mark.parametrize("size", [(512, 512), (256, 384), (768, 512), (100, 100)])
def test_pictures_of_any_size_are_looked_at(reader: Bundled, size: tuple[int, int]) -> None:
    drawn = draw_scene(DOG_BY_HOUSE, size=max(size), rng=_rng(4), clutter=0)
    picture = np.full((*size, 3), 180, np.uint8)
    side = min(size)
    picture[:side, :side] = cv2.resize(drawn, (side, side), interpolation=cv2.INTER_AREA)
    scene = _scene(reader, picture)
    assert scene.names() == {"dog": 1, "house": 1}
    across, down = side / size[1], side / size[0]
    for entity in scene.entities:
        left_edge, top, right, bottom = next(placed.box for placed in DOG_BY_HOUSE if placed.name == entity.name)
        assert entity.box == pytest.approx((left_edge * across, top * down, right * across, bottom * down), abs=0.04)


def test_nothing_is_seen_where_nothing_is(reader: Bundled) -> None:
    pictures = [
        *(np.full((256, 256, 3), grey, np.uint8) for grey in (0, 128, 255)),
        _rng(5).integers(0, 256, (256, 256, 3), dtype=np.uint8),
        *(draw_scene([], rng=_rng(6, index), clutter=10) for index in range(4)),
    ]
    assert [len(scene.entities) for scene in reader.look(pictures, [])] == [0] * len(pictures)


def test_batches_and_single_pictures_have_equal_readings(reader: Bundled) -> None:
    pictures = [draw_scene(random_layout(_rng(7, index)), rng=_rng(8, index)) for index in range(3)]
    for alone, together in zip(
        (_scene(reader, picture) for picture in pictures), reader.look(pictures, []), strict=True
    ):
        assert alone.names() == together.names()
    assert reader.look([], []) == []


def test_few_unseen_scenes(reader: Bundled) -> None:
    tally = _tally(reader, [random_layout(_rng(9, index)) for index in range(12)], 10)
    assert tally.recall >= 0.8
    assert tally.precision >= 0.9
    assert tally.colours >= 0.9


@pytest.mark.slow
def test_unseen_scenes(reader: Bundled) -> None:
    """Bounds are three standard errors below the figures of ``docs/bundled-reader.md`` for 1,000 scenes."""
    tally = _tally(reader, [random_layout(_rng(11, index)) for index in range(100)], 12)
    assert tally.recall >= 0.90
    assert tally.precision >= 0.955
    assert tally.colours >= 0.975
    assert tally.triples_f1 >= 0.83
    touching = _tally(reader, [pair_layout(_rng(13, index), overlap=0.0) for index in range(60)], 14)
    assert touching.recall >= 0.97 and touching.precision >= 0.98
    overlapping = _tally(reader, [pair_layout(_rng(15, index), overlap=0.2) for index in range(60)], 16)
    assert overlapping.recall >= 0.95


def test_other_weights_may_be_named(tmp_path: Path) -> None:
    missing = Bundled("bundled", BundledSettings(path=str(tmp_path / "none.safetensors")))
    assert [mistake.key for mistake in missing.check()] == ["path"]
    assert missing.weights() == []
    with pytest.raises(MedtestError, match="is not open"):
        missing.look([np.zeros((8, 8, 3), np.uint8)], [])


def test_the_score_decides_what_counts(reader: Bundled) -> None:
    picture = draw_scene(DOG_BY_HOUSE, rng=_rng(1), clutter=3)
    strict = Bundled("bundled", BundledSettings(score=0.999))
    strict.open(device="cpu", threads=1)
    assert all(entity.score >= 0.999 for entity in strict.look([picture], [])[0].entities)
    assert strict.fingerprint() != reader.fingerprint()


@pytest.mark.parametrize(
    ("height", "width", "size"), [(100, 300, (85, 256)), (512, 512, (256, 256)), (90, 256, (90, 256))]
)
def test_the_longer_side_is_bounded_and_pixels_are_averaged(height: int, width: int, size: tuple[int, int]) -> None:
    stripes = np.zeros((height, width, 3), np.uint8)
    stripes[:, ::2] = 200
    shown = _not_larger(stripes, 256)
    assert shown.shape[:2] == size
    assert shown.mean() == pytest.approx(100, abs=1)
