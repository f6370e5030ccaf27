"""Promises of every perturbation in both forms: one table, and no names except for golden digests."""

from __future__ import annotations

import hashlib
import json
import platform
from functools import cache

import numpy as np
import pytest
from corruption_parts import (
    NAMES,
    PREFIX,
    TYPES,
    VARIANTS,
    address_of,
    built,
    frame_of,
    frame_params,
    level_of,
    seed_of,
    sequence_of,
    smooth_picture,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from relation_files import assert_every_key_is_documented

from medtest.core.cases import ImageSpec, Seed, SeedRef, image_sha256
from medtest.core.plugins import parts
from medtest.preparation import prepare
from medtest.relations.corruptions.base import Corruption
from medtest.relations.series import follow_up
from medtest.testing import SUITE_SEED, synthetic_seed

relaxed = settings(max_examples=15)
SIZES = [(1, 1), (2, 3), (17, 300), (97, 131), (224, 224), (300, 60)]
NOISE = {"gaussian_noise", "shot_noise", "speckle_noise"}


def test_the_fourteen_are_there() -> None:
    assert TYPES == [
        "brightness",
        "gaussian_blur",
        "gaussian_noise",
        "motion_blur",
        "rotate",
        "scale",
        "shear",
        "shot_noise",
        "snow",
        "spatter",
        "speckle_noise",
        "tilt",
        "translate",
        "zoom_blur",
    ]


@pytest.mark.parametrize("name", TYPES)
def test_the_class_says_what_it_is(name: str) -> None:
    relation = built(name)
    assert relation.group in {"noise", "blur", "weather", "geometric"}
    assert (relation.group == "noise") == (name in NOISE)
    assert relation.scale_unit
    assert parts("relations")[PREFIX + name].summary
    assert relation.severities() == (1, 2, 3, 4, 5)
    assert relation.frames() == 1
    assert sequence_of(name).frames() == sequence_of(name, "released").frames() == 10
    assert sequence_of(name, "imagenet_p", severities=[1]).frames() == (41 if name == "translate" else 31)
    assert sequence_of(name, "imagenet_p", frames=7).frames() == 7


@pytest.mark.parametrize("name", NAMES)
def test_the_yaml_documents_every_key(name: str) -> None:
    assert_every_key_is_documented(name)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_any_size_and_form(name: str, shape: tuple[int, int]) -> None:
    seed = seed_of(smooth_picture(*shape))
    before = seed.image.copy()
    seed.image.setflags(write=False)
    follows = [level_of(built(name), seed, severity) for severity in (1, 5)]
    follows += [frame_of(sequence_of(name, variant, severities=[2]), seed, 9, 2) for variant in VARIANTS]
    for follow in follows:
        assert follow.image.dtype == np.uint8
        assert follow.image.shape == seed.image.shape
        assert follow.image.flags.c_contiguous
        assert not np.shares_memory(follow.image, seed.image)
        assert np.isfinite(follow.scale)
        assert follow.scale > 0
    assert np.array_equal(seed.image, before)


@pytest.mark.parametrize("name", TYPES)
def test_grey_pictures_stay_grey_unless_colours_have_separate_noise(name: str) -> None:
    grey = np.repeat(smooth_picture(100, 120)[..., :1], 3, axis=2)
    for severity in (1, 3, 5):
        image = level_of(built(name), seed_of(grey), severity).image.astype(int)
        coloured = np.ptp(image, axis=2).max() > 1
        assert coloured == (name in NOISE or name == "spatter")


@pytest.mark.parametrize("name", TYPES)
def test_grey_series_are_taken_as_three_equal_colours(name: str) -> None:
    image = np.ascontiguousarray(smooth_picture(64, 80)[..., 0])
    spec = ImageSpec(axes="yx")
    seed = prepare(Seed(ref=SeedRef(dataset="d", seed_id="g"), image=image, kind="image", spec=spec), size=None)
    result = follow_up(sequence_of(name), seed, address_of(frame=9, severity=2), SUITE_SEED)
    assert result.image.shape == image.shape
    assert result.image.dtype == np.uint8


@pytest.mark.parametrize("name", TYPES)
@relaxed
@given(data=st.data())
def test_frames_do_not_depend_on_their_order(name: str, data: st.DataObject) -> None:
    variant = data.draw(st.sampled_from(VARIANTS))
    difficulty = data.draw(st.integers(1, 5))
    height, width = data.draw(st.tuples(st.integers(1, 70), st.integers(1, 70)))
    relation = sequence_of(name, variant, severities=[difficulty], frames=6, raw=data.draw(st.booleans()))
    order = data.draw(st.permutations(range(6)))
    image = smooth_picture(height, width, random=height)
    first, second = seed_of(image), seed_of(image)
    frames = {frame: frame_of(relation, first, frame, difficulty) for frame in order}
    for frame in range(6):
        stored = json.loads(json.dumps(frames[frame].params, allow_nan=False))
        again = relation.apply(second, stored)
        assert again.image.tobytes() == frames[frame].image.tobytes()
        assert again.image.shape == (height, width, 3)
        assert again.scale == frames[frame].scale
        assert again.effect == frames[frame].effect
    if variant == "paper":
        assert frames[0].image is first.image
        assert frames[0].scale == 0.0


@pytest.mark.parametrize("name", TYPES)
@relaxed
@given(severity=st.integers(1, 5), repeat=st.integers(0, 3), raw=st.booleans(), framed=st.booleans())
def test_levels_are_replayed_by_their_parameters(
    name: str, severity: int, repeat: int, raw: bool, framed: bool
) -> None:
    relation = built(name, raw=raw)
    first = level_of(relation, synthetic_seed(repeat, framed=framed), severity, repeat)
    again = relation.apply(synthetic_seed(repeat, framed=framed), json.loads(json.dumps(first.params, allow_nan=False)))
    assert again.image.tobytes() == first.image.tobytes()
    assert again.scale == first.scale


@pytest.mark.parametrize("name", TYPES)
def test_scale_belongs_to_the_severity_and_grows(name: str) -> None:
    relation = built(name)
    scales = []
    for severity in range(1, 6):
        of_severity = {
            level_of(relation, seed_of(smooth_picture(side, 2 * side)), severity, side).scale for side in (60, 224, 300)
        }
        assert len(of_severity) == 1
        scales.append(of_severity.pop())
    assert all(lower < upper for lower, upper in zip([0.0, *scales], scales, strict=False))


@cache
def detailed() -> np.ndarray:
    rng = np.random.default_rng(8)
    return np.clip(smooth_picture(224, 224) * 0.6 + 30 + rng.normal(0, 8, (224, 224, 3)), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("name", TYPES)
def test_a_sequence_of_the_paper_leaves_the_clean_image_step_by_step(name: str) -> None:
    """Neighbouring frames differ less than the last from the first; noise has one strength from the first frame on."""
    relation, seed = sequence_of(name, severities=[2]), seed_of(detailed())
    frames = [frame_of(relation, seed, index, 2).image.astype(float) for index in range(10)]
    away = [np.abs(frame - frames[0]).mean() for frame in frames]
    assert away[0] == 0.0
    if name in NOISE:
        assert np.ptp(away[1:]) < 0.1 * away[1]
        assert all((frames[i] != frames[i + 1]).any() for i in range(9))
        return
    steps = [np.abs(after - before).mean() for before, after in zip(frames, frames[1:], strict=False)]
    assert max(steps) <= away[-1]
    assert away[-1] > away[3] > 0.0


@pytest.mark.parametrize("name", TYPES)
def test_damage_grows_with_the_level(name: str) -> None:
    relation = built(name)
    damage = []
    for severity in range(1, 6):
        each = [
            np.abs(level_of(relation, seed_of(detailed()), severity, r).image - detailed().astype(float)).mean()
            for r in range(4)
        ]
        damage.append(np.mean(each))
    slack = 0.04 if name == "snow" else 0.0  # ImageNet-C's third level of snow is hardly worse than its second.
    ladders = [damage[:3], damage[3:]] if name == "spatter" else [damage]  # Water brightens, mud covers.
    for ladder in ladders:
        pairs = zip(ladder, ladder[1:], strict=False)
        assert all(after > before * (1 - slack) for before, after in pairs), damage


@pytest.mark.parametrize("name", TYPES)
def test_difficulty_multiplies_the_step(name: str) -> None:
    """Frame 2 i of difficulty 1 has the parameters of frame i of difficulty 2, except for random draws."""
    for variant in VARIANTS:
        relation, seed = sequence_of(name, variant, severities=[1, 2]), seed_of(smooth_picture(224, 224))
        first, second = frame_params(relation, seed, 8, 1), frame_params(relation, seed, 4, 2)
        drawn = {"frame", "noise_seed", "layer_seed", "step", "count"} | ({"angle"} if variant == "paper" else set())
        if name in NOISE:
            assert second["scale"] == pytest.approx(2 * first["scale"])
            continue
        assert {k: v for k, v in first.items() if k not in drawn} == pytest.approx(
            {k: v for k, v in second.items() if k not in drawn}
        )


def test_the_last_frame_represents_a_sequence() -> None:
    relation, seed = sequence_of("brightness"), seed_of(smooth_picture(40, 40))
    assert relation.follow_up(seed, 3, np.random.default_rng(0)).params["change"] == pytest.approx(0.02 * 27)


@pytest.mark.parametrize("name", TYPES)
def test_wrong_settings_are_refused(name: str) -> None:
    model, defaults = parts("relations")[PREFIX + name].load().Settings, parts("relations")[PREFIX + name].defaults
    for wrong in (
        {"unknown": 1},
        {"form": "film"},
        {"variant": "mine"},
        {"mode": "published"},
        {"frames": 1},
        {"frames": 61},
        {"severities": [9]},
        {"severities": [1, 1]},
        {"levels": {}},
        {"levels": {1: defaults["levels"][2], 2: defaults["levels"][1]}, "severities": [1, 2]},
        {"sequence": {}},
        {"video": True},
    ):
        with pytest.raises(ValueError, match="validation error"):
            model(**{**defaults, **wrong})


@pytest.mark.parametrize("name", ["shear", "tilt"])
def test_angles_beyond_reason_are_refused_with_the_angle(name: str) -> None:
    with pytest.raises(ValueError, match="31 frames at difficulty 5 would have 135 degrees"):
        sequence_of(name, "imagenet_p")
    with pytest.raises(ValueError, match="75 is the most"):
        sequence_of(name, frames=30, severities=[3])


GOLDEN: dict[str, tuple[int, str]] = {
    "brightness": (1, "57eb563a5651dece"),
    "gaussian_blur": (1, "999c29f2228553cb"),
    "gaussian_noise": (1, "53252d9c326befe2"),
    "motion_blur": (2, "ed89c932987ebd8d"),
    "rotate": (1, "9271852e537bf0f3"),
    "scale": (1, "f824c15f9a43e081"),
    "shear": (1, "d667a3c427b37917"),
    "shot_noise": (1, "4fb57b826e9a4bc4"),
    "snow": (1, "6ab3aee45b4295bc"),
    "spatter": (1, "01b7a27efeb9194f"),
    "speckle_noise": (1, "229c3b28c69399ed"),
    "tilt": (1, "3fb9326249b8fd91"),
    "translate": (1, "28df438d93f78a55"),
    "zoom_blur": (2, "3d6406ecdc9f1c08"),
}


def fingerprint(name: str) -> tuple[int, str]:
    digest = hashlib.sha256()
    relations: list[Corruption] = [built(name), *(sequence_of(name, v, severities=[1]) for v in VARIANTS)]
    wide = smooth_picture(110, 140)
    for relation in relations:
        for seed in (synthetic_seed(1), seed_of(wide[7:103, 6:134], wide)):
            if relation.settings.form == "levels":
                follows = [level_of(relation, seed, severity) for severity in range(1, 6)]
            else:
                follows = [frame_of(relation, seed, frame, 1) for frame in (0, 1, 9)]
            for follow in follows:
                digest.update(image_sha256(follow.image).encode())
                digest.update(json.dumps(follow.params, sort_keys=True).encode())
    return relations[0].revision, digest.hexdigest()[:16]


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="bytes are promised per CPU architecture")
@pytest.mark.parametrize("name", TYPES)
def test_bytes_are_those_of_the_revision(name: str) -> None:
    assert fingerprint(name) == GOLDEN[name], f"{name} gives other bytes: raise its revision and mend the table"


def test_every_perturbation_is_guarded() -> None:
    assert sorted(GOLDEN) == TYPES
