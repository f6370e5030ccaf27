"""Instrument, feces, blood: their promises besides the contract of every relation."""

from __future__ import annotations

import hashlib
import json
import platform
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from object_parts import NAMES, draws, flat_seed, follow, pasting, relation, seed_of, solid_of
from scipy.ndimage import distance_transform_edt

from medtest.core.cases import PreparedSeed, image_sha256
from medtest.core.errors import NotApplicable, UserMistakes
from medtest.core.plugins import parts
from medtest.relations.objects import cutouts as object_cutouts
from medtest.relations.objects.cutouts import Variant, pose
from medtest.relations.objects.library import load_library
from medtest.relations.objects.placing import LOWEST_SHARE
from medtest.testing import synthetic_seed

LEVELS = (1, 2, 3, 4, 5)
relaxed = settings(max_examples=15)

GOLDEN = {
    ("instrument", "levels"): (4, "d60dc04ca3776bc7"),
    ("instrument", "published"): (4, "85ba94a0ae95440d"),
    ("feces", "levels"): (7, "cd8ffe32d960cf87"),
    ("feces", "published"): (7, "94c539594745db7d"),
    ("blood", "levels"): (7, "06116f922733fbaf"),
    ("blood", "published"): (7, "2d91e46f9b312183"),
}


# --- places of objects ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_facts_agree_with_a_count_and_with_scipys_distances(name: str) -> None:
    paster = pasting(name)
    case_count = 0
    for number in range(4):
        seed = seed_of(number)
        assert seed.mask is not None
        distances = distance_transform_edt(~seed.mask)
        for severity, repeat in draws(paster):
            try:
                result = follow(paster, seed, severity, repeat)
            except NotApplicable:
                continue
            case_count += 1
            solid = solid_of(paster, seed, result)
            # Pieces may touch: counted separately they can only be more than together.
            share = result.facts["object_area"] * np.count_nonzero(~seed.frame)
            assert solid.sum() <= share + 1
            assert solid.sum() >= 0.95 * share
            assert result.facts["lesion_distance"] == pytest.approx(distances[solid].min(), abs=1e-3)
            assert result.facts["lesion_distance"] > round(paster.settings.margin * seed.height)
    assert case_count >= 12


@pytest.mark.parametrize("name", NAMES)
def test_the_area_is_that_of_the_severity(name: str) -> None:
    paster = pasting(name)
    for number in range(6):
        for severity, repeat in draws(paster):
            try:
                result = follow(paster, seed_of(number), severity, repeat)
            except NotApplicable:
                continue
            ratio = 100 * result.facts["object_area"] / result.scale
            assert LOWEST_SHARE * 0.93 <= ratio <= 1.3, (number, severity)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_lesion_there_is_no_distance_to_it(name: str) -> None:
    result = follow(relation(name), flat_seed(lesion=False), 2)
    assert "lesion_distance" not in result.facts
    assert result.facts["object_area"] > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("labelled", [False, True])
def test_a_rough_mask_of_the_user_is_left_alone(name: str, labelled: bool) -> None:
    seed = synthetic_seed(1, height=288, width=320, labelled=labelled, avoid=True)
    assert seed.avoid is not None
    for severity in (1, 2, 3):
        result = follow(relation(name), seed, severity)
        assert np.array_equal(result.image[seed.avoid], seed.image[seed.avoid])


@pytest.mark.parametrize("name", NAMES)
def test_without_a_mask_the_middle_of_the_field_is_left_alone(name: str) -> None:
    seed = seed_of(0, labelled=False)
    result = follow(relation(name), seed, 1)
    rows, columns = np.flatnonzero((~seed.frame).any(axis=1)), np.flatnonzero((~seed.frame).any(axis=0))
    middle = ((rows[0] + rows[-1]) // 2, (columns[0] + columns[-1]) // 2)
    window = np.s_[middle[0] - 40 : middle[0] + 40, middle[1] - 40 : middle[1] + 40]
    assert np.array_equal(result.image[window], seed.image[window])


@pytest.mark.parametrize("name", NAMES)
def test_no_room_is_skipped_with_the_reason(name: str) -> None:
    seed = synthetic_seed(0, height=288, width=320)
    mask = ~seed.frame
    full = PreparedSeed(ref=seed.ref, image=seed.image, mask=mask, original_mask=mask, frame=seed.frame, grey=seed.grey)
    for severity in (1, 5):
        with pytest.raises(NotApplicable, match=r"no room for (an instrument|feces|blood)"):
            follow(relation(name), full, severity)


def test_instruments_enter_from_the_rim_near_their_original_pose() -> None:
    paster = pasting("instrument")
    entered = 0
    for number in range(12):
        seed = seed_of(number)
        rows, columns = np.flatnonzero((~seed.frame).any(axis=1)), np.flatnonzero((~seed.frame).any(axis=0))
        low = np.array([columns[0], rows[0]])
        extent = np.array([columns[-1] + 1, rows[-1] + 1]) - low
        for severity in LEVELS:
            try:
                result = follow(paster, seed, severity)
            except NotApplicable:
                continue
            (item,) = result.params["objects"]  # type: ignore[misc]
            assert abs(item["angle"]) <= paster.settings.turn
            assert item["flip"] is False
            info = paster.library.info("instrument", item["name"])
            variant = Variant(info=info, angle=item["angle"], step=item["size"])
            where = pose(paster.library, variant, round(paster.settings.edge_blur * seed.height, 2))
            points = where.place(np.array([[0.5, 0.5], info.tip, *info.cut])) + (item["x"], item["y"])
            away = (points[0] - low) / extent - np.array(info.centre)
            assert np.abs(away).max() <= paster.settings.reach + 1e-9
            x, y = np.floor(points[1]).astype(int)
            assert not seed.frame[y, x], "the tip is in the field"
            for x, y in np.floor(points[2:]).astype(int):
                inside = 0 <= x < seed.width and 0 <= y < seed.height
                assert not inside or seed.frame[y, x], "the shaft's end lies outside the field"
            entered += bool(info.cut)
    assert entered >= 20


def test_pieces_are_as_many_as_drawn_or_a_few_more() -> None:
    for name in ("feces", "blood"):
        for count in (1, 3, 6):
            ranges = {"area_low": 4.0, "area_high": 6.0, "count_low": count, "count_high": count}
            result = follow(relation(name, mode="published", published=ranges), flat_seed(), 0)
            assert count <= len(result.params["objects"]) <= 2 * count + 2  # type: ignore[arg-type]
            assert result.effect.data["count"] == len(result.params["objects"])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_the_effect_says_what_came_and_where(name: str) -> None:
    paster = relation(name)
    seed = flat_seed()
    result = follow(paster, seed, 3)
    assert result.effect.kind == "add"
    data = json.loads(json.dumps(result.effect.data))
    assert data["what"] == name
    assert data["count"] == len(data["places"])
    assert [data["x"], data["y"]] == data["places"][0]
    changed = np.argwhere((result.image != seed.image).any(axis=2))
    if data["count"] == 1:
        middle = (changed.min(axis=0) + changed.max(axis=0) + 1) / 2
        assert data["y"] * seed.height == pytest.approx(middle[0], abs=6)
        assert data["x"] * seed.width == pytest.approx(middle[1], abs=6)
    for x, y in data["places"]:
        assert 0 <= x <= 1
        assert 0 <= y <= 1


# --- replay, modes, mistakes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@relaxed
@given(number=st.integers(0, 500), severity=st.sampled_from(LEVELS), repeat=st.integers(0, 3))
def test_parameters_replay_in_another_relation_with_empty_caches(
    name: str, number: int, severity: int, repeat: int
) -> None:
    seed = synthetic_seed(number, height=160, width=192)
    try:
        result = follow(relation(name), seed, severity, repeat)
    except NotApplicable:
        return
    for cache_ in (object_cutouts._CUTOUTS, object_cutouts._SOURCES, object_cutouts._COARSE):
        cache_._kept.clear()
        cache_._bytes = 0
    again = relation(name).apply(
        synthetic_seed(number, height=160, width=192), json.loads(json.dumps(result.params, allow_nan=False))
    )
    assert again.image.tobytes() == result.image.tobytes()
    assert again.effect == result.effect
    assert seed.mask is not None
    assert np.array_equal(result.image[seed.mask | seed.frame], seed.image[seed.mask | seed.frame])


@pytest.mark.parametrize("name", NAMES)
def test_published_mode_draws_its_scale_from_the_assumed_range(name: str) -> None:
    paster = relation(name, mode="published")
    assert paster.severities() == (0,)
    drawn = paster.settings.published
    scales = [follow(paster, flat_seed(), 0, repeat).scale for repeat in range(8)]
    assert len(set(scales)) == 8
    assert all(drawn.area_low <= scale <= drawn.area_high for scale in scales)
    file = parts("relations")[name].file
    assert file is not None
    assert "Assumed" in file.read_text(encoding="utf-8").split("\npublished:")[0].rsplit("\n\n", 1)[-1]


@pytest.mark.parametrize("name", NAMES)
def test_the_library_is_in_the_fingerprint(name: str) -> None:
    assert pasting(name).fingerprint() == {"library": load_library().digest}


def test_swatches_are_in_the_fingerprint_of_levels() -> None:
    stool, blood = (relation(name).fingerprint() for name in ("feces", "blood"))
    assert stool["library"] == blood["library"] == load_library().digest
    assert stool["swatches"] != blood["swatches"]


def test_the_library_folder_cannot_come_from_a_suite() -> None:
    for name in NAMES:
        extra = parts("relations")[name].load().Settings.model_fields["library_folder"].json_schema_extra
        assert extra == {"trusted": True}


def test_a_library_without_the_kind_and_one_that_is_not_there_are_mistakes(tmp_path: Any) -> None:
    import shutil

    from medtest.core.files.paths import package_folder

    shutil.copytree(package_folder() / "relations" / "objects" / "bundled" / "blood", tmp_path / "own" / "blood")
    assert relation("blood", library_folder=str(tmp_path / "own")).infos
    with pytest.raises(UserMistakes, match="none of this kind"):
        relation("feces", library_folder=str(tmp_path / "own"))
    with pytest.raises(UserMistakes, match="no such folder"):
        relation("feces", library="not-there")
    with pytest.raises(ValueError, match="library"):
        relation("feces", library="../up")


def test_ranges_upside_down_are_refused() -> None:
    with pytest.raises(ValueError, match="area_low is above area_high"):
        relation("instrument", published={"area_low": 5.0, "area_high": 1.0})
    counts = {"area_low": 1.0, "area_high": 5.0, "count_low": 4, "count_high": 2}
    with pytest.raises(ValueError, match="count_low is above count_high"):
        relation("blood", published=counts)


# --- bytes of the revision --------------------------------------------------------------------------------------------


def golden(name: str, mode: str) -> tuple[int, str]:
    digest = hashlib.sha256()
    paster = relation(name, mode=mode)
    for number in range(4):
        for severity, repeat in draws(paster):
            try:
                result = follow(paster, seed_of(number), severity, repeat)
            except NotApplicable:
                digest.update(b"skipped")
                continue
            digest.update(image_sha256(result.image).encode())
            digest.update(json.dumps(result.params, sort_keys=True).encode())
    return paster.revision, digest.hexdigest()[:16]


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="bytes are promised per CPU architecture")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", ["levels", "published"])
def test_bytes_are_those_of_the_revision(name: str, mode: str) -> None:
    assert golden(name, mode) == GOLDEN[name, mode], f"{name} gives other bytes: raise its revision and mend the table"
