"""Drawn instruments: they enter at the working channel, nest, keep off the lesion, and follow from their parameters."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import cv2
import numpy as np
import pytest

from medtest.core.cases import Address, FollowUp, PreparedSeed
from medtest.core.errors import NotApplicable, UserMistakes
from medtest.relations.base import Relation
from medtest.relations.objects.scene import scene_of
from medtest.relations.objects.tools.shapes import MODELS, SHAFTS, TOOLS
from medtest.testing import SUITE_SEED, load_relation, synthetic_seed

KINDS = ("tool", "shaft")


@cache
def seed_of(number: int) -> PreparedSeed:
    return synthetic_seed(number, height=288, width=320)


def make_follow_up(relation: Relation, seed: PreparedSeed, severity: int, repeat: int = 0) -> FollowUp | None:
    address = Address(dataset="d", seed_id=seed.ref.seed_id, relation="instrument", severity=severity, repeat=repeat)
    try:
        return relation.follow_up(seed, severity, relation.generator(address, SUITE_SEED))
    except NotApplicable:
        return None


def ladder_of(kind: str, seed: PreparedSeed, repeat: int = 0) -> list[FollowUp | None]:
    relation = load_relation("instrument", kind=kind)
    return [make_follow_up(relation, seed, severity, repeat) for severity in relation.severities()]


def plain(number: int = 0, side: int = 320) -> PreparedSeed:
    """Return a round field of one colour, without lesion."""
    rows, columns = np.indices((side, side)) - (side - 1) / 2
    frame = np.hypot(rows, columns) > 0.48 * side
    image = np.full((side, side, 3), (150, 80, 62), np.uint8)
    image[frame] = 0
    seed = synthetic_seed(number, height=side, width=side)
    empty = np.zeros((side, side), np.bool_)
    return replace(seed, image=image, frame=frame, mask=empty, original_mask=empty, _memo={})


def solid_of(seed: PreparedSeed, follow_up: FollowUp) -> Any:
    return np.abs(follow_up.image.astype(int) - seed.image).max(axis=2) > 25


@pytest.mark.parametrize("kind", KINDS)
def test_a_severity_pushes_the_same_instrument_further_in(kind: str) -> None:
    count = 0
    for number in range(5):
        seed = seed_of(number)
        ladder = ladder_of(kind, seed)
        assert [item is None for item in ladder] == sorted(item is None for item in ladder)
        results = [item for item in ladder if item is not None]
        count += len(results)
        poses = {
            json.dumps({k: v for k, v in item.params.items() if k not in ("area", "scale_applied")}) for item in results
        }
        assert len(poses) <= 1
        changes = [np.abs(item.image.astype(int) - seed.image).max(axis=2) for item in results]
        means = [0.0, *(float(np.abs(item.image.astype(int) - seed.image).mean()) for item in results)]
        assert all(low < high for low, high in zip(means, means[1:], strict=False)), means
        for low, high in zip(changes, changes[1:], strict=False):
            assert np.count_nonzero((low > 20) & (high <= 4)) <= 0.1 * np.count_nonzero(low > 20)
    assert count >= 10


@pytest.mark.slow
def test_every_step_changes_more_on_nearly_every_phantom() -> None:
    grows = []
    for number in range(100):
        seed = synthetic_seed(number, height=256, width=256)
        images = [item.image for item in ladder_of("tool", seed) if item is not None]
        means = [0.0, *(float(np.abs(image.astype(int) - seed.image).mean()) for image in images)]
        grows.append(all(low < high for low, high in zip(means, means[1:], strict=False)))
    assert np.mean(grows) >= 0.99


def test_tools_enter_at_the_working_channel_and_have_the_measured_size() -> None:
    """Hour, width and place of the tip are measured in the picture, on a round field without a lesion."""
    seed = plain()
    radius, middle = 0.48 * seed.height, (seed.height - 1) / 2
    hours, tips, widths = [], [], []
    relation = load_relation("instrument")
    for repeat, severity in product(range(10), relation.severities()):
        follow_up = make_follow_up(relation, seed, severity, repeat)
        assert follow_up is not None
        rows, columns = np.nonzero(solid_of(seed, follow_up))
        x, y = columns - middle, rows - middle
        away = np.hypot(x, y)
        rim = away > radius - 4
        hours.append(math.degrees(math.atan2(x[rim].mean(), -y[rim].mean())) % 360 / 30)
        assert 4.2 < hours[-1] < 5.8
        aim = math.radians(30 * float(str(follow_up.params["clock"])) + 180 + float(str(follow_up.params["aim"])))
        along, across = x * math.sin(aim) - y * math.cos(aim), x * math.cos(aim) + y * math.sin(aim)
        front = along > along.max() - 3
        tips.append(math.hypot(x[front].mean(), y[front].mean()) / radius)
        if follow_up.params["tool"] in ("tube", "probe", "blue_probe"):
            half_way = np.abs(along - np.quantile(along, 0.4)) < 2
            widths.append(np.ptp(across[half_way]) / (2 * radius))
    assert np.median(hours) == pytest.approx(5.0, abs=0.15)
    assert np.mean(tips) == pytest.approx(0.39, abs=0.08)
    assert np.median(widths) == pytest.approx(0.16, abs=0.02)


def test_the_endoscopes_own_shaft_is_wide_dark_and_darkens_the_mucosa_at_its_side() -> None:
    seed = plain()
    relation = load_relation("instrument", kind="shaft", levels={5: {"area": 12.0}})
    hours, ratios = set(), []
    for repeat in range(12):
        follow_up = make_follow_up(relation, seed, 5, repeat)
        assert follow_up is not None
        hours.add(int(float(str(follow_up.params["clock"])) // 3))
        assert 0.25 <= float(str(follow_up.params["width"])) <= 0.33
        dark = follow_up.image.max(axis=2) < 75
        dark = cv2.morphologyEx((dark & ~seed.frame).view(np.uint8), cv2.MORPH_OPEN, np.ones((5, 5), np.uint8)) > 0
        assert dark.sum() > 0.06 * np.count_nonzero(~seed.frame)
        away = cv2.distanceTransform((~dark).view(np.uint8), cv2.DIST_L2, 5)
        inner = cv2.distanceTransform(np.pad(~seed.frame, 1).view(np.uint8), cv2.DIST_L2, 5)[1:-1, 1:-1] > 12
        light = follow_up.image.astype(float).mean(axis=2)
        scale = seed.height / 512
        near, far = ((away > low * scale) & (away < high * scale) & inner for low, high in ((4, 12), (30, 55)))
        ratios.append(light[near].mean() / light[far].mean())
    assert len(hours) == 4
    assert np.median(ratios) == pytest.approx(0.77, abs=0.06)


@pytest.mark.parametrize("kind", KINDS)
def test_lesion_rim_ring_and_frame_stay(kind: str) -> None:
    for number in range(5):
        seed = seed_of(number)
        assert seed.mask is not None
        width = max(1, round(0.05 * 2 * np.sqrt(np.count_nonzero(seed.mask) / np.pi)))
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * width + 1, 2 * width + 1))
        ring = cv2.dilate(seed.mask.view(np.uint8), disc).astype(bool) & ~seed.mask & ~seed.frame
        for follow_up in ladder_of(kind, seed):
            if follow_up is not None:
                changed = (follow_up.image != seed.image).any(axis=2)
                assert not changed[seed.mask | seed.frame].any()
                assert changed[ring].mean() <= 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_alone_make_the_same_bytes(kind: str) -> None:
    relation = load_relation("instrument", kind=kind)
    first = [item for item in ladder_of(kind, seed_of(1)) if item is not None]
    fresh = synthetic_seed(1, height=288, width=320)
    for follow_up in reversed(first):
        params = json.loads(json.dumps(follow_up.params, allow_nan=False))
        assert np.array_equal(relation.apply(fresh, params).image, follow_up.image)


def test_a_lesion_on_the_way_stops_the_instrument_and_is_never_bypassed() -> None:
    """A lesion that grows from the centre: the clock position stays, the area shrinks, then levels are skipped."""
    seed = plain()
    rows, columns = np.indices(seed.frame.shape) - (seed.height - 1) / 2
    skips, clocks, shortened = [], set(), 0
    for share in (0.1, 0.5, 0.6, 0.7, 0.8, 0.9):
        part = replace(seed, mask=np.hypot(rows, columns) < share * 0.48 * seed.height, _memo={})
        ladder = ladder_of("tool", part)
        skips.append(sum(item is None for item in ladder))
        assert [item is None for item in ladder] == sorted(item is None for item in ladder)
        for item in ladder:
            if item is not None:
                clocks.add(item.params["clock"])
                if "scale_applied" in item.params:
                    shortened += 1
                    assert float(str(item.params["scale_applied"])) < item.scale
                    assert item.scale == item.params["area"]
    assert len(clocks) == 1
    assert skips == sorted(skips)
    assert skips[0] < 5
    assert skips[-1] == 5
    assert shortened >= 1


def test_sheaths_are_flat_across_and_near_clipping() -> None:
    seed = plain()
    shares, flat = [], []
    relation = load_relation("instrument")
    for repeat in range(40):
        follow_up = make_follow_up(relation, seed, 3, repeat)
        assert follow_up is not None
        solid = solid_of(seed, follow_up)
        shares.append((follow_up.image[solid].max(axis=1) >= 250).mean())
        if follow_up.params["tool"] == "tube":
            light = follow_up.image.astype(float).mean(axis=2)
            inside = cv2.distanceTransform(solid.view(np.uint8), cv2.DIST_L2, 5)
            flat.append(light[(inside > 5) & (inside < 9)].mean() / light[inside >= 12].mean())
    low, middle, high = np.quantile(shares, (0.25, 0.5, 0.75))
    assert low <= 0.17
    assert 0.03 <= middle <= 0.41
    assert high >= 0.17
    assert min(flat) > 0.88


def test_the_mucosa_beside_a_tool_stays() -> None:
    """Tools cast no shadow: beyond the rim's width nothing changes."""
    seed = plain()
    for repeat in range(4):
        follow_up = make_follow_up(load_relation("instrument"), seed, 3, repeat)
        assert follow_up is not None
        away = cv2.distanceTransform((~solid_of(seed, follow_up)).view(np.uint8), cv2.DIST_L2, 5)
        assert np.array_equal(follow_up.image[away > 8], seed.image[away > 8])


def test_rims_are_as_wide_as_the_scenes() -> None:
    """From 10 to 50 % of the step at the side of a white tube, which then curves away from the light."""
    seed = plain(side=512)
    seed = replace(seed, image=seed.image // 3, _memo={})
    small = replace(seed, original_mask=np.zeros((256, 256), np.bool_), _memo={})
    relation = load_relation("instrument")
    for part in (seed, small):
        params = {"tool": "tube", "clock": 4.5, "width": 0.16, "bend": 0.0, "gain": 0.8, "aim": 0, "area": 7.0}
        image = relation.apply(part, params).image.astype(float)[..., 0]
        middle, radius = 255.5, 0.48 * 512
        turn = math.radians(135)
        steps = np.arange(-60, 60.1, 0.25)
        x = middle + 0.75 * radius * math.sin(turn) + steps * math.cos(turn)
        y = middle - 0.75 * radius * math.cos(turn) + steps * math.sin(turn)
        profile = cv2.remap(image.astype(np.float32), x[None].astype(np.float32), y[None].astype(np.float32), 1)[0]
        half = profile[: len(profile) // 2 + 1]
        share = (half - half[0]) / (np.median(half[-80:]) - half[0])
        width = 0.25 * np.count_nonzero((share > 0.1) & (share < 0.5))
        assert width == pytest.approx(0.52 * scene_of(part).blur, rel=0.35)


def test_every_model_can_be_drawn_and_follows_the_light() -> None:
    seed = plain()
    darker = replace(seed, image=(seed.image * 0.6).astype(np.uint8), _memo={})
    relation = load_relation("instrument")
    for name in MODELS:
        width = 0.29 if name in SHAFTS else 0.16
        params = {"tool": name, "clock": 5.0, "width": width, "bend": 0.02, "gain": 1.0, "aim": 5, "area": 7.0}
        bright, dark = relation.apply(seed, params), relation.apply(darker, params)
        assert bright.effect.data["what"] == "instrument"
        assert bright.effect.data.get("names", []) == list(TOOLS[name].called if name in TOOLS else ())
        assert 0.02 < bright.facts["object_area"] < 0.09
        solid = solid_of(seed, bright)
        assert dark.image[solid].mean() < 0.95 * bright.image[solid].mean()


@pytest.mark.parametrize("name", ["instrument", "feces"])
def test_workers_receive_a_relation_with_its_library(name: str) -> None:
    relation: Any = load_relation(name)
    received = pickle.loads(pickle.dumps(relation))  # noqa: S301 - our own bytes
    assert received.library.digest == relation.library.digest
    assert received.infos == relation.infos


def test_mistakes_about_libraries_and_tools(tmp_path: Any) -> None:
    with pytest.raises(UserMistakes, match="cutout"):
        load_relation("instrument", library_folder=_library(tmp_path))
    assert load_relation("instrument", library_folder=_library(tmp_path), kind="cutout").fingerprint()
    params = {"tool": "forcepz", "clock": 5.0, "width": 0.16, "bend": 0.0, "gain": 1.0, "aim": 0, "area": 7.0}
    with pytest.raises(UserMistakes, match="forceps"):
        load_relation("instrument").apply(plain(), params)


def _library(folder: Any) -> str:
    import shutil

    from medtest.core.files.paths import package_folder

    shutil.copytree(
        package_folder() / "relations" / "objects" / "bundled" / "instrument", folder / "lib" / "instrument",
        dirs_exist_ok=True,
    )  # fmt: skip
    return str(folder / "lib")
