"""Fundus phantoms: Messidor's grades, and the counted number of lesions in the picture."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.phantoms.fundus import judge, make
from medtest.phantoms.fundus.grades import draw_counts, grade


@pytest.mark.parametrize(
    ("dots", "blots", "new", "expected"),
    [
        # The corners of the definition in Decencière et al. 2014.
        (0, 0, False, 0),
        (1, 0, False, 1),
        (5, 0, False, 1),
        (6, 0, False, 2),
        (14, 0, False, 2),
        (15, 0, False, 3),
        (0, 1, False, 2),
        (5, 4, False, 2),
        (14, 4, False, 2),
        (0, 5, False, 3),
        (0, 0, True, 3),
        (3, 1, True, 3),
    ],
)
def test_grade_is_the_published_one(dots: int, blots: int, new: bool, expected: int) -> None:
    assert grade(dots, blots, new) == expected
    facts = {"microaneurysms": dots, "haemorrhages": blots, "neovascularisation": new}
    assert judge(facts) == f"grade{expected}"


@given(seed=st.integers(0, 2**40), target=st.integers(0, 3))
def test_drawn_counts_belong_to_the_grade(seed: int, target: int) -> None:
    counts = draw_counts(np.random.default_rng(seed), target)
    assert grade(counts["microaneurysms"], counts["haemorrhages"], bool(counts["neovascularisation"])) == target
    assert 0 <= counts["exudates"] <= 25
    assert target > 0 or counts["exudates"] == 0


@pytest.mark.slow
def test_every_counted_lesion_is_in_the_mask() -> None:
    """Without exudates (which touch) and new vessels, the mask has one part for each lesion."""
    checked = 0
    for index in range(40):
        phantom = make(index, 8, size=512)
        facts = phantom.facts
        if facts["exudates"] or facts["neovascularisation"] or phantom.labels == ("grade0",):
            continue
        assert phantom.mask is not None
        parts = cv2.connectedComponents(phantom.mask.astype(np.uint8))[0] - 1
        assert parts == int(str(facts["microaneurysms"])) + int(str(facts["haemorrhages"]))
        checked += 1
    assert checked >= 8


def test_red_lesions_are_darker_in_green() -> None:
    darker = []
    for index in range(40):
        phantom = make(index, 9, size=256)
        if phantom.facts["exudates"] or phantom.labels == ("grade0",):
            continue
        assert phantom.mask is not None
        mask = phantom.mask.astype(np.uint8)
        ring = (cv2.dilate(mask, np.ones((9, 9), np.uint8)) > 0) & ~phantom.mask
        darker.append(float(phantom.image[ring][:, 1].mean()) - float(phantom.image[phantom.mask][:, 1].mean()))
    assert len(darker) >= 8
    assert np.mean(darker) > 8
    assert np.mean(np.array(darker) > 2) > 0.85


def test_disc_is_the_brightest_place() -> None:
    right = 0
    for index in range(20):
        phantom = make(index, 10, size=192)
        disc = phantom.facts["disc"]
        assert isinstance(disc, list)
        column, row = ((float(str(v)) + 1.0) * 96.0 for v in disc)
        smooth = cv2.blur(phantom.image[..., 1], (13, 13))
        top, left = divmod(int(smooth.argmax()), 192)
        right += (top - row) ** 2 + (left - column) ** 2 < 20**2
    assert right >= 17
