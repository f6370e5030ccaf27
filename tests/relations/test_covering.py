"""Stool and blood of levels: they nest, keep off the lesion and its rim, and follow from their parameters."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest
from object_layout_files import FRAME, blob, paint, save, scene

from medtest.core.cases import Address, FollowUp, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.relations.base import Relation
from medtest.relations.objects.build import BuildOptions, build_library
from medtest.relations.objects.scene import scene_of
from medtest.testing import SUITE_SEED, load_relation, synthetic_seed

COVERING = ("blood", "feces")


@cache
def seed_of(number: int) -> PreparedSeed:
    return synthetic_seed(number, height=288, width=320)


def ladder_of(name: str, seed: PreparedSeed) -> list[FollowUp | None]:
    relation = load_relation(name)
    return [make_follow_up(relation, name, seed, severity) for severity in relation.severities()]


def make_follow_up(relation: Relation, name: str, seed: PreparedSeed, severity: int) -> FollowUp | None:
    address = Address(dataset=seed.ref.dataset, seed_id=seed.ref.seed_id, relation=name, severity=severity)
    try:
        return relation.follow_up(seed, severity, relation.generator(address, SUITE_SEED))
    except NotApplicable:
        return None


@pytest.mark.parametrize("name", COVERING)
def test_a_severity_covers_more_of_the_same(name: str) -> None:
    for number in range(4):
        seed = seed_of(number)
        ladder = ladder_of(name, seed)
        results = [follow_up for follow_up in ladder if follow_up is not None]
        assert [follow_up is None for follow_up in ladder] == sorted(follow_up is None for follow_up in ladder)
        changes = [np.abs(item.image.astype(int) - seed.image).max(axis=2) for item in results]
        means = [0.0, *(float(change.mean()) for change in changes)]
        assert all(low < high for low, high in zip(means, means[1:], strict=False)), means
        for low, high in zip(changes, changes[1:], strict=False):
            assert np.count_nonzero((low > 20) & (high <= 4)) <= 0.02 * np.count_nonzero(low > 20)
        assert len({(str(item.params["matter"]), item.params["ladder"]) for item in results}) == 1


@pytest.mark.parametrize("name", COVERING)
def test_lesion_rim_ring_and_frame_stay(name: str) -> None:
    for number in range(4):
        seed = seed_of(number)
        assert seed.mask is not None
        width = max(1, round(0.05 * 2 * np.sqrt(np.count_nonzero(seed.mask) / np.pi)))
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * width + 1, 2 * width + 1))
        ring = cv2.dilate(seed.mask.view(np.uint8), disc).astype(bool) & ~seed.mask & ~seed.frame
        for follow_up in ladder_of(name, seed):
            if follow_up is not None:
                changed = (follow_up.image != seed.image).any(axis=2)
                assert not changed[seed.mask | seed.frame].any()
                assert changed[ring].mean() <= 0.05


@pytest.mark.parametrize("name", COVERING)
def test_parameters_alone_make_the_same_bytes(name: str) -> None:
    relation, seed = load_relation(name), seed_of(1)
    first = [follow_up for follow_up in ladder_of(name, seed) if follow_up is not None]
    fresh = synthetic_seed(1, height=288, width=320)
    for follow_up in reversed(first):
        assert np.array_equal(relation.apply(fresh, follow_up.params).image, follow_up.image)


@pytest.mark.parametrize("name", COVERING)
def test_area_and_effect_say_what_was_done(name: str) -> None:
    for follow_up in ladder_of(name, seed_of(2)):
        if follow_up is not None:
            assert follow_up.facts["object_area"] == pytest.approx(follow_up.scale / 100, rel=0.02)
            assert follow_up.facts["lesion_distance"] > 0
            data = follow_up.effect.data
            assert data["what"] == name
            places, grid = data["places"], data["grid"]
            assert isinstance(places, list)
            assert isinstance(grid, list)
            assert data["count"] == len(places) >= 1
            assert sum(float(str(share)) for share in grid) == pytest.approx(1.0, abs=0.002)


@pytest.mark.parametrize("name", COVERING)
def test_pieces_of_a_severity_contain_those_of_the_one_below(name: str) -> None:
    for number in range(6):
        seed, relation = seed_of(number), load_relation(name)
        below = np.zeros((0,))
        for follow_up in ladder_of(name, seed):
            if follow_up is not None:
                matter, ladder = relation._ladder(seed, follow_up.params)  # type: ignore[attr-defined]
                _, solid = matter.pour(seed, ladder, follow_up.scale / 100, 0)
                assert not below.size or solid[below].all()
                below = solid


@pytest.mark.slow
@pytest.mark.parametrize("name", COVERING)
def test_every_step_changes_more_on_nearly_every_image(name: str) -> None:
    grows = []
    for number in range(100):
        seed = synthetic_seed(number, height=256, width=256)
        images = [follow_up.image for follow_up in ladder_of(name, seed) if follow_up is not None]
        means = [0.0, *(float(np.abs(image.astype(int) - seed.image).mean()) for image in images)]
        grows.append(all(low < high for low, high in zip(means, means[1:], strict=False)))
    assert np.mean(grows) >= 0.99


@pytest.mark.parametrize("name", COVERING)
def test_no_room_is_skip_from_a_severity_on(name: str) -> None:
    """An image with less and less free area: a severity without room has none at a higher one."""
    seed = seed_of(0)
    rows = np.arange(seed.height)[:, None]
    skips = []
    for share in (0.6, 0.75, 0.8, 0.85, 0.9):
        part = replace(seed, mask=~seed.frame & (rows < share * seed.height), _memo={})
        skips.append([follow_up is None for follow_up in ladder_of(name, part)])
        assert skips[-1] == sorted(skips[-1])
    counts = [sum(row) for row in skips]
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] == 5
    assert 0 < counts[-2] < 5


@pytest.mark.parametrize("name", COVERING)
def test_a_whole_lesion_leaves_no_room(name: str) -> None:
    seed = seed_of(0)
    assert make_follow_up(load_relation(name), name, replace(seed, mask=~seed.frame, _memo={}), 1) is None


@pytest.mark.parametrize("name", COVERING)
def test_text_and_boxes_burnt_into_the_picture_stay(name: str) -> None:
    """Rows of glyphs off the middle and a green box, over the whole field of possible matter."""
    seed = seed_of(2)
    image = seed.image.copy()
    glyphs = np.zeros(seed.frame.shape, np.uint8)
    for row in range(40, 260, 16):
        for column in (24, 250):
            cv2.putText(glyphs, "12:34:56", (column, row), cv2.FONT_HERSHEY_PLAIN, 0.8, 255, 1)
    text = (glyphs > 0) & ~seed.frame
    image[text] = 235
    image[200:240, 100:150] = (20, 165, 140)
    changed = replace(seed, image=image, mask=np.zeros_like(seed.frame), _memo={})
    overlay = scene_of(changed).overlay
    assert overlay[200:240, 100:150].all()
    assert overlay[text].mean() >= 0.9
    assert scene_of(seed).overlay.mean() < 0.002
    follow_up = make_follow_up(load_relation(name), name, changed, 5)
    assert follow_up is not None
    assert np.array_equal(follow_up.image[overlay], image[overlay])


@pytest.mark.slow
def test_liquids_of_an_image_run_one_way() -> None:
    """Both relations, and all draws, use the gravity of the image; its length is 1, and images differ."""
    ways = np.array([scene_of(seed_of(number)).gravity for number in range(6)])
    assert np.allclose(np.hypot(*ways.T), 1.0)
    assert len(np.unique(ways.round(3), axis=0)) == 6
    for name in COVERING:
        for number in range(6):
            seed = seed_of(number)
            along = []
            for repeat in range(6):
                address = Address(dataset="d", seed_id=str(number), relation=name, severity=5, repeat=repeat)
                relation = load_relation(name)
                try:
                    follow_up = relation.follow_up(seed, 5, relation.generator(address, SUITE_SEED))
                except NotApplicable:
                    continue
                changed = np.abs(follow_up.image.astype(int) - seed.image).max(axis=2) > 30
                rows, columns = np.nonzero(changed)
                middle = np.array([columns.mean() / seed.width, rows.mean() / seed.height]) - 0.5
                along.append(float(middle @ ways[number]))
            if name == "feces":
                assert np.mean(along) > 0


def test_stool_and_blood_have_the_colours_of_real_ones() -> None:
    """Stool is lighter, less red and yellower than the tissue below it; blood is darker and smoother."""
    for name, signs in (("feces", (1, -1, 1)), ("blood", (-1, 0, 0))):
        offsets = []
        for number in range(8):
            seed = seed_of(number)
            follow_up = ladder_of(name, seed)[2]
            if follow_up is None:
                continue
            lab, tissue = (
                cv2.cvtColor(image.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
                for image in (follow_up.image, seed.image)
            )
            changed = np.abs(follow_up.image.astype(int) - seed.image).max(axis=2) > 30
            offsets.append(lab[changed].mean(axis=0) - tissue[changed].mean(axis=0))
        middle = np.median(offsets, axis=0)
        assert all(value * sign >= 0 for value, sign in zip(middle, signs, strict=True)), (name, middle)
        assert abs(middle[0]) > 4


def test_levels_have_no_count() -> None:
    with pytest.raises(ValueError, match="count"):
        load_relation("feces", levels={1: {"area": 2.0, "count": 3}}, severities=[1])


@pytest.mark.parametrize(("name", "colour"), [("feces", (176, 128, 62)), ("blood", (96, 24, 18))])
def test_a_library_of_the_users_pictures_pours_their_colours(
    name: str, colour: tuple[int, int, int], tmp_path: Path
) -> None:
    for number in range(2):
        save(tmp_path / "data" / "images" / f"x{number}.png", paint(scene(number), blob(150, 120, 40), colour))
        save(tmp_path / "data" / "masks" / f"x{number}.png", blob(150, 120, 40))
    options = BuildOptions(licence="CC-BY-4.0", source="test", kind=name)
    build_library("masks", tmp_path / "data", tmp_path / "lib", options)
    relation = load_relation(name, library_folder=str(tmp_path / "lib"))
    image = cv2.resize(scene(5)[FRAME:-FRAME, FRAME:-FRAME], (320, 288))
    seed = replace(
        seed_of(0),
        image=image, mask=np.zeros((288, 320), bool), frame=np.zeros((288, 320), bool), _memo={},
    )  # fmt: skip
    follow_up = make_follow_up(relation, name, seed, 5)
    assert follow_up is not None
    assert str(follow_up.params["matter"]).startswith("x")
    changed = np.abs(follow_up.image.astype(int) - image).max(axis=2) > 40
    hue = np.median(follow_up.image[changed], axis=0)
    # Light and depth change brightness; the proportions of the colours stay.
    assert hue[1] / hue[0] == pytest.approx(colour[1] / colour[0], abs=0.1)
    assert hue[2] / hue[0] == pytest.approx(colour[2] / colour[0], abs=0.12)
    assert hue[0] == pytest.approx(colour[0], rel=0.3)
