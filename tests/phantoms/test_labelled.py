"""Promises of all labelled phantoms: bytes for each address, truth that fits, balanced classes."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from functools import cache
from types import ModuleType
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.phantoms import capsule, chest, fundus, skin
from medtest.phantoms.classes import CAPSULE, CHEST, DERMOSCOPY, FUNDUS
from medtest.phantoms.labelled import LabelledPhantom, balanced, stream

KINDS: dict[str, ModuleType] = {"capsule": capsule, "skin": skin, "fundus": fundus, "chest": chest}
CLASSES = {"capsule": CAPSULE, "skin": DERMOSCOPY, "fundus": FUNDUS, "chest": CHEST}
SINGLE = ("capsule", "skin", "fundus")


def sha256(phantom: LabelledPhantom) -> str:
    """Return a hash of image and mask."""
    digest = hashlib.sha256(phantom.image.tobytes())
    if phantom.mask is not None:
        digest.update(phantom.mask.tobytes())
    return digest.hexdigest()


@cache
def batch(kind: str) -> tuple[LabelledPhantom, ...]:
    """Return 60 small phantoms."""
    return tuple(KINDS[kind].make(index, 5, size=128) for index in range(60))


# --- bytes -----------------------------------------------------------------------------------------------------------

GOLDEN = {
    ("capsule", 1): "71687ac13c120792",
    ("skin", 2): "4a953e80abb654d1",
    ("fundus", 1): "7ae25bdeb829f827",
    ("chest", 2): "3dbdf7180b52e267",
}
"""By kind and revision: the first 16 digits for the phantoms below of suite seed 20240 at the kind's size. When these
change the revision must: trained networks and old results know it."""
HASHED = dict.fromkeys(KINDS, (0, 1, 2, 3, 4)) | {"chest": (0, 1, 5, 6, 7, 10, 11, 24, 32, 47)}
"""Which phantoms: those of the chest hold each of the 14 findings."""


def golden(kind: str) -> str:
    phantoms = [KINDS[kind].make(index, 20240) for index in HASHED[kind]]
    parts = [m.image.tobytes() + (b"" if m.mask is None else m.mask.tobytes()) for m in phantoms]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def test_hashed_chests_hold_every_finding() -> None:
    held = {label for index in HASHED["chest"] for label in chest.make(index, 20240, size=128).labels}
    assert held == set(CHEST.names)


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_belong_to_the_revision(kind: str) -> None:
    assert golden(kind) == GOLDEN[kind, KINDS[kind].REVISION]


def test_stream_is_the_documented_one() -> None:
    key = b'[7,"labelled","chest",3,"ribs"]'
    state = int.from_bytes(hashlib.sha256(key).digest(), "big")
    expected = np.random.Generator(np.random.PCG64(state)).random(4)
    np.testing.assert_array_equal(stream(7, "chest", 3, "ribs").random(4), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_addresses_differ(kind: str) -> None:
    hashes = {sha256(KINDS[kind].make(index, seed, size=128)) for seed in (0, 1, 2**40) for index in (0, 1, 99_999)}
    assert len(hashes) == 9


@pytest.mark.parametrize("kind", KINDS)
def test_global_state_is_unchanged(kind: str) -> None:
    before = cv2.ipp.useIPP()
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - that nobody touches it is the point
    KINDS[kind].make(0, 1, size=128)
    assert cv2.ipp.useIPP() == before
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


# --- truth -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=20)
@given(
    kind=st.sampled_from(list(KINDS)),
    seed=st.integers(0, 2**31),
    index=st.integers(0, 99_999),
    size=st.integers(128, 420),
)
def test_truth_fits_any_request(kind: str, seed: int, index: int, size: int) -> None:
    module = KINDS[kind]
    phantom = module.make(index, seed, size=size)
    assert phantom.image.shape == (size, size, 3)
    assert phantom.image.dtype == np.uint8
    assert set(phantom.labels) <= set(module.NAMES)
    assert list(phantom.labels) == [name for name in module.NAMES if name in phantom.labels]
    json.dumps(phantom.facts, allow_nan=False)
    judged = module.judge(phantom.facts)
    assert phantom.labels == (judged if kind == "chest" else (judged,))
    if kind == "chest":
        assert phantom.mask is None
        assert np.ptp(phantom.image.astype(np.int16), axis=2).max() == 0
    else:
        assert phantom.mask is not None
        assert phantom.mask.shape == (size, size)
        assert phantom.mask.dtype == np.bool_
        assert phantom.labels == (balanced(seed, module.generator.WHAT, index, module.NAMES),)
        assert bool(phantom.mask.any()) == (phantom.labels[0] not in ("normal", "grade0"))
    assert sha256(phantom) == sha256(module.make(index, seed, size=size))


@pytest.mark.parametrize("kind", KINDS)
def test_facts_do_not_depend_on_the_size(kind: str) -> None:
    def without_area(phantom: LabelledPhantom) -> dict[str, Any]:
        return {key: value for key, value in phantom.facts.items() if key != "lesion_area"}

    for index in range(6):
        small, large = (KINDS[kind].make(index, 11, size=size) for size in (160, 288))
        assert small.labels == large.labels
        assert without_area(small) == without_area(large)


@pytest.mark.parametrize("kind", KINDS)
def test_picture_of_another_size_shows_the_same(kind: str) -> None:
    """Twice the size, scaled down, is nearly the smaller picture: only grain and rounding differ."""
    for index in range(3):
        small, large = (KINDS[kind].make(index, 3, size=size) for size in (192, 384))
        halved = cv2.resize(large.image, (192, 192), interpolation=cv2.INTER_AREA)
        first, second = (cv2.blur(image, (9, 9)).astype(np.float64) for image in (small.image, halved))
        assert np.abs(first - second).mean() < 6.0
        if small.mask is not None and small.mask.sum() > 400:
            again = cv2.resize(large.mask.astype(np.uint8), (192, 192), interpolation=cv2.INTER_AREA) > 0
            overlap = 2.0 * (small.mask & again).sum() / (small.mask.sum() + again.sum())
            assert overlap > 0.75


@pytest.mark.slow
@pytest.mark.parametrize("kind", SINGLE)
def test_mask_lies_in_the_field_and_area_is_stated(kind: str) -> None:
    for phantom in batch(kind):
        assert phantom.mask is not None
        black = cv2.erode((phantom.image.max(axis=2) < 6).astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
        outside = np.zeros_like(black)
        # Only the black corners: the lumen may be as dark.
        count, parts = cv2.connectedComponents(black.astype(np.uint8))
        for corner in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
            if count and black[corner]:
                outside |= parts == parts[corner]
        assert not (phantom.mask & outside).any()
        area = phantom.facts["lesion_area"]
        assert isinstance(area, float)
        assert phantom.mask.mean() - 1e-5 <= area <= 2.0 * phantom.mask.mean() + 1e-5


@pytest.mark.parametrize("kind", SINGLE)
def test_lesions_can_be_seen(kind: str) -> None:
    """Inside the mask the picture differs from its surroundings by more than chance, in most phantoms."""
    visible = []
    for phantom in batch(kind):
        assert phantom.mask is not None
        if phantom.mask.sum() < 12:
            continue
        mask = phantom.mask.astype(np.uint8)
        ring = (cv2.dilate(mask, np.ones((13, 13), np.uint8)) > 0) & ~(cv2.dilate(mask, np.ones((3, 3), np.uint8)) > 0)
        inside, around = phantom.image[phantom.mask].astype(np.float64), phantom.image[ring].astype(np.float64)
        # Shares of green and blue, which light and shade do not change.
        shift = np.abs(inside.mean(axis=0) - around.mean(axis=0)).max()
        visible.append(shift > 4.0)
    assert len(visible) >= 20
    assert np.mean(visible) > 0.85


# --- classes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_those_of_the_classes(kind: str) -> None:
    assert CLASSES[kind].names == KINDS[kind].NAMES


@pytest.mark.parametrize("kind", SINGLE)
def test_every_class_is_as_frequent(kind: str) -> None:
    names = KINDS[kind].NAMES
    counts = Counter(phantom.labels[0] for phantom in batch(kind))
    assert counts == {name: 60 // len(names) for name in names}


@given(seed=st.integers(0, 2**62), block=st.integers(0, 10_000), count=st.integers(1, 6))
def test_each_run_of_classes_holds_each_once(seed: int, block: int, count: int) -> None:
    names = tuple("abcdef"[:count])
    drawn = [balanced(seed, "x", block * count + place, names) for place in range(count)]
    assert sorted(drawn) == list(names)


def test_order_of_classes_is_shuffled() -> None:
    orders = {tuple(balanced(1, "x", 3 * block + place, "abc") for place in range(3)) for block in range(60)}
    assert len(orders) == 6


# --- requests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("index", "size"), [(-1, 128), (0, 127), (0, 1025)])
def test_wrong_requests_are_refused(kind: str, index: int, size: int) -> None:
    with pytest.raises(ValueError, match="index|size"):
        KINDS[kind].make(index, 1, size=size)


@pytest.mark.parametrize("kind", KINDS)
def test_largest_size_is_drawn(kind: str) -> None:
    phantom = KINDS[kind].make(1, 1, size=1024)
    assert phantom.image.shape == (1024, 1024, 3)
    assert phantom.image.std() > 10
