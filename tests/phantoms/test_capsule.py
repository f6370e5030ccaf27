"""Capsule phantoms: classes follow from the kinds of lesion, and lesions have the colours of their kinds."""

from __future__ import annotations

from functools import cache
from typing import Any

import cv2
import numpy as np
import pytest

from medtest.phantoms.capsule import findings, judge, make
from medtest.phantoms.classes import CAPSULE_FINDINGS
from medtest.phantoms.labelled import LabelledPhantom


@cache
def batch() -> tuple[LabelledPhantom, ...]:
    return tuple(make(index, 6, size=192) for index in range(150))


def kinds(phantom: LabelledPhantom) -> set[str]:
    lesions: Any = phantom.facts["lesions"]
    return {lesion["kind"] for lesion in lesions}


@pytest.mark.parametrize(
    ("drawn_kinds", "expected"),
    [
        ([], "normal"),
        (["bleeding"], "vascular"),
        (["angiectasia", "angiectasia"], "vascular"),
        (["ulcer"], "inflammatory"),
        (["erosions", "erosions"], "inflammatory"),
        (["erythema"], "inflammatory"),
    ],
)
def test_class_follows_from_the_kinds(drawn_kinds: list[str], expected: str) -> None:
    assert judge({"lesions": [{"kind": kind} for kind in drawn_kinds]}) == expected


@pytest.mark.slow
def test_every_kind_of_lesion_and_of_content_is_drawn() -> None:
    assert set().union(*(kinds(phantom) for phantom in batch())) == {
        "bleeding", "angiectasia", "ulcer", "erosions", "erythema",
    }  # fmt: skip
    for key in ("view", "hue", "frame"):
        assert len({str(phantom.facts[key]) for phantom in batch()}) >= 2
    contents: list[Any] = [phantom.facts["contents"] for phantom in batch()]
    assert {c["bile"] for c in contents} == {None, "yellow", "green", "brown"}
    assert any(c["bubbles"] for c in contents)
    assert any(c["debris"] for c in contents)


def test_contents_do_not_reveal_the_class() -> None:
    """Contents that imitate lesions are as frequent without them."""
    for key in ("bile", "debris", "patches"):
        share = {
            label: np.mean([bool(m.facts["contents"][key]) for m in batch() if m.labels == (label,)])  # type: ignore[index, call-overload]
            for label in ("normal", "vascular", "inflammatory")
        }
        assert max(share.values()) - min(share.values()) < 0.3


def green_over_red(phantom: LabelledPhantom) -> tuple[float, float]:
    """Return green / red inside the lesion and around it."""
    assert phantom.mask is not None
    mask = phantom.mask.astype(np.uint8)
    ring = (cv2.dilate(mask, np.ones((15, 15), np.uint8)) > 0) & (cv2.dilate(mask, np.ones((5, 5), np.uint8)) == 0)
    inside, around = phantom.image[phantom.mask].mean(axis=0), phantom.image[ring].mean(axis=0)
    return float(inside[1] / inside[0]), float(around[1] / around[0])


@pytest.mark.parametrize("kind", ["bleeding", "angiectasia", "erythema"])
def test_red_lesions_are_redder(kind: str) -> None:
    pairs = [green_over_red(phantom) for phantom in batch() if kinds(phantom) == {kind} and phantom.mask is not None]
    pairs = [(inside, around) for inside, around in pairs if np.isfinite(inside + around)]
    assert len(pairs) >= 8
    assert np.mean([inside < around for inside, around in pairs]) > 0.9


def test_ulcers_are_paler_than_their_rim() -> None:
    """The middle of the lesion is lighter in blue and green than its edge."""
    paler = []
    for phantom in batch():
        if kinds(phantom) != {"ulcer"}:
            continue
        assert phantom.mask is not None
        depth = cv2.distanceTransform(phantom.mask.astype(np.uint8), cv2.DIST_L2, 5)
        core, rim = depth > 0.6 * depth.max(), phantom.mask & (depth < 0.25 * depth.max())
        ratio = phantom.image[..., 1].astype(np.float64) / np.maximum(1.0, phantom.image[..., 0])
        paler.append(ratio[core].mean() > ratio[rim].mean())
    assert len(paler) >= 8
    assert np.mean(paler) > 0.85


def test_field_is_round_or_octagonal() -> None:
    for phantom in batch()[:30]:
        corners = phantom.image[[0, 0, -1, -1], [0, -1, 0, -1]]
        assert corners.max() < 8
        # Of the square, a circle of radius 0.985 covers 0.985² π / 4; an octagon without corners of 0.335 half sides
        # all but 4 · 0.335² / 2 of 4.
        expected = 0.762 if phantom.facts["frame"] == "round" else 0.944
        points = cv2.findNonZero((phantom.image.max(axis=2) > 12).astype(np.uint8))
        assert cv2.contourArea(cv2.convexHull(points)) / 192**2 == pytest.approx(expected, abs=0.04)


def test_frames_for_readers_show_the_findings_of_their_labels_and_no_others() -> None:
    frames = [findings.make(index, 5, size=128) for index in range(40)]
    for frame in frames:
        names = {kind.replace("erosions", "erosion") for kind in kinds(frame)}
        assert list(frame.labels) == [name for name in CAPSULE_FINDINGS.names if name in names]
    assert {len(frame.labels) for frame in frames} == {0, 1, 2, 3}
    assert {name for frame in frames for name in frame.labels} == set(CAPSULE_FINDINGS.names)
