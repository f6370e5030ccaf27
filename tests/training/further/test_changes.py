"""Random changes of a training pair: exact mirroring, larger views, bounded holes."""

from __future__ import annotations

import numpy as np
import pytest

from medtest.training.further.changes import change
from medtest.training.further.recipe import Augment

SIDE = 40


def pair(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    image = rng.integers(1, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    return image, np.asarray((rng.random((SIDE, SIDE)) < 0.3) * 255, np.uint8)


def changes(count: int, **settings: object) -> list[tuple[np.ndarray, np.ndarray]]:
    rng, (image, mask) = np.random.default_rng(3), pair()
    return [change(rng, image, mask, Augment(**settings)) for _ in range(count)]  # type: ignore[arg-type]


def test_without_changes_a_pair_stays() -> None:
    ((image, mask),) = changes(1)
    assert np.array_equal(image, pair()[0]) and np.array_equal(mask, pair()[1])


@pytest.mark.parametrize(("name", "axis"), [("flip", 1), ("flip_vertical", 0)])
def test_flips_mirror_image_and_mask_alike(name: str, axis: int) -> None:
    ((image, mask),) = changes(1, **{name: 1.0})
    assert np.array_equal(image, np.flip(pair()[0], axis)) and np.array_equal(mask, np.flip(pair()[1], axis))


def test_quarter_turns_are_one_to_three_of_both() -> None:
    turned = [[np.rot90(part, turns) for part in pair()] for turns in (1, 2, 3)]
    drawn_turns = set()
    for image, mask in changes(30, quarter_turns=1.0):
        (turns,) = (n for n, (own, _) in enumerate(turned) if np.array_equal(own, image))
        assert np.array_equal(turned[turns][1], mask)
        drawn_turns.add(turns)
    assert drawn_turns == {0, 1, 2}


def test_a_larger_view_shows_the_whole_pair_and_a_crop_no_border() -> None:
    white = np.full((SIDE, SIDE), 255, np.uint8)
    rng = np.random.default_rng(5)
    corners, shifts = [], []
    for _ in range(60):
        _, mask = change(rng, np.dstack([white] * 3), white, Augment(zoom=1.0, zoom_range=(2.0, 2.0)))
        assert np.count_nonzero(mask) == pytest.approx((SIDE / 2) ** 2, rel=0.12)  # all of it, a quarter of the area
        rows = np.flatnonzero(mask.any(axis=1))
        shifts.append((rows[0] + rows[-1]) / 2 - (SIDE - 1) / 2)
        image, _ = change(rng, np.dstack([white] * 3), white, Augment(zoom=1.0, zoom_range=(0.5, 0.5)))
        corners.append(image[1:-1, 1:-1].min())
    assert min(corners) == 255
    assert min(shifts) < -SIDE / 8 and max(shifts) > SIDE / 8


def test_holes_are_black_rectangles_of_the_image_alone_and_reach_its_border() -> None:
    changed_pairs = changes(200, dropout=1.0, holes=2, hole_side=4)
    for image, mask in changed_pairs:
        black = (image == 0).all(axis=2)
        assert 1 <= np.count_nonzero(black) <= 2 * 4 * 4 and np.array_equal(mask, pair()[1])
        assert np.array_equal(image[~black], pair()[0][~black])
    black = np.any([(image == 0).all(axis=2) for image, _ in changed_pairs], axis=0)
    assert black[0].any() and black[:, 0].any()
