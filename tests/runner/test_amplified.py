"""The change of an attack, amplified between source and follow-up."""

from __future__ import annotations

import numpy as np
import pytest

from medtest.core.address import Address
from medtest.core.cases import Classes, FollowUp, LabelOutput, PreparedSeed, SeedRef
from medtest.runner.pictures.strips import PANEL, amplified, draw_strip
from medtest.runner.units.made_case import MadeCase, SystemAnswer

CLASSES = Classes(names=("benign", "melanoma"))


def drawn(change: int, **more) -> np.ndarray:
    """Return the strip of a follow-up whose left half is darker and right half brighter by some levels."""
    image = np.full((PANEL, PANEL, 3), 90, np.uint8)
    follow = image.copy()
    follow[:, : PANEL // 2] -= change
    follow[:, PANEL // 2 :] += change
    seed = PreparedSeed(
        ref=SeedRef(dataset="d", seed_id="s"),
        image=image,
        mask=None,
        original_mask=None,
        frame=np.zeros((PANEL, PANEL), np.bool_),
        grey=np.ones((PANEL, PANEL), np.float32),
        classes=CLASSES,
        labels=("benign",),
        kind="label",
    )
    address = Address(dataset="d", seed_id="s", relation="pgd", severity=1, frame=0, repeat=0)
    case = MadeCase(address=address, follow=FollowUp(image=follow, scale=4.0, params={}), kind="label")
    before, after = (SystemAnswer(output=LabelOutput(labels=(name,), classes=CLASSES)) for name in CLASSES.names)
    return draw_strip(seed, case, before, after, title="", detail="", **more)


def panels(strip: np.ndarray) -> list[np.ndarray]:
    """Return the pictures of a strip from left to right."""
    count = (strip.shape[1] - 6) // (PANEL + 6)
    return [strip[50 : 50 + PANEL, 6 + n * (PANEL + 6) :][:, :PANEL] for n in range(count)]


def test_a_small_change_is_amplified_between_both():
    source, change, follow = panels(drawn(4, amplify=True))
    assert (source == 90).all() and set(np.unique(follow)) == {86, 94}
    assert set(np.unique(change)) == {128 - 31 * 4, 128 + 31 * 4}
    assert change[0, 0, 0] < 128 < change[0, -1, 0]


@pytest.mark.parametrize(("levels", "amplify"), [(0, True), (40, True), (4, False)])
def test_visible_changes_and_missing_ones_are_not_amplified(levels, amplify):
    assert len(panels(drawn(levels, amplify=amplify))) == 2


def test_no_level_leaves_the_range():
    source = np.zeros((8, 8, 3), np.uint8)
    for largest in range(1, 33):
        follow = source.copy()
        follow[0, 0] = largest
        image = amplified(source, follow).image
        assert image.min() == 128 and image.max() == 128 + (127 // largest) * largest <= 255
    assert amplified(source, np.zeros((9, 8, 3), np.uint8)) is None
