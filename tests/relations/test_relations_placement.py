"""Free places compared with brute force, and kept-out regions with distances by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage, stats

from medtest.core.errors import NotApplicable
from medtest.relations.placement import (
    CENTRAL_FRACTION,
    FreePlaces,
    draw_place,
    field_box,
    free_places,
    grid_shares,
    keep_out,
    lesion_distance,
)
from medtest.testing import synthetic_seed


@given(seed=st.integers(0, 10**6), height=st.integers(1, 12), width=st.integers(1, 12), step=st.integers(1, 4))
def test_free_boxes_equal_brute_force(seed: int, height: int, width: int, step: int) -> None:
    rng = np.random.default_rng(seed)
    blocked = rng.random((int(rng.integers(1, 24)), int(rng.integers(1, 24)))) < rng.choice([0.0, 0.03, 0.3, 1.0])
    free = FreePlaces(blocked).of_box(height, width, step=step)
    rows = range(0, blocked.shape[0] - height + 1, step)
    columns = range(0, blocked.shape[1] - width + 1, step)
    expected = [[not blocked[i : i + height, j : j + width].any() for j in columns] for i in rows]
    if len(rows) == 0 or len(columns) == 0:
        assert free.size == 0
    else:
        assert free.tolist() == expected


@given(seed=st.integers(0, 10**6), step=st.integers(1, 3), bands=st.integers(1, 20))
def test_free_shapes_never_touch_what_is_blocked(seed: int, step: int, bands: int) -> None:
    rng = np.random.default_rng(seed)
    blocked = rng.random((30, 34)) < 0.02
    shape = rng.random((int(rng.integers(1, 12)), int(rng.integers(1, 12)))) < 0.5
    shape.flat[int(rng.integers(shape.size))] = True
    free = FreePlaces(blocked).of_shape(shape, step=step, bands=bands)
    box = FreePlaces(blocked).of_box(*shape.shape, step=step)
    assert np.all(free | ~box), "a free box is free for any shape in it"
    for i, j in zip(*np.nonzero(free), strict=True):
        part = blocked[i * step : i * step + shape.shape[0], j * step : j * step + shape.shape[1]]
        assert not (part & shape).any()


def test_a_bar_shape_is_exact_with_one_band_a_row() -> None:
    blocked = np.zeros((20, 20), bool)
    blocked[5, 5] = True
    shape = np.zeros((6, 6), bool)
    shape[:, 2] = True
    shape[3] = True
    free = FreePlaces(blocked).of_shape(shape, bands=6)
    exact = [[not (blocked[i : i + 6, j : j + 6] & shape).any() for j in range(15)] for i in range(15)]
    assert free.tolist() == exact


def test_no_room_is_a_reason() -> None:
    with pytest.raises(NotApplicable, match="no room for a barge"):
        draw_place(FreePlaces(np.ones((9, 9), bool)).of_box(2, 2), np.random.default_rng(0), label="a barge")
    with pytest.raises(NotApplicable, match="no room for a barge"):
        draw_place(FreePlaces(np.zeros((9, 9), bool)).of_box(20, 2), np.random.default_rng(0), label="a barge")


def test_uniform_draws_are_uniform() -> None:
    free = np.zeros((6, 7), bool)
    free[1, 2] = free[3, 6] = free[5, 0] = free[0, 0] = True
    rng = np.random.default_rng(5)
    drawn = [draw_place(free, rng, label="x", step=3) for _ in range(2000)]
    counts = [drawn.count((3 * i, 3 * j)) for i, j in ((1, 2), (3, 6), (5, 0), (0, 0))]
    assert sum(counts) == 2000
    assert stats.chisquare(counts).pvalue > 0.001


def test_near_draws_follow_a_gaussian_over_the_free_places() -> None:
    free = np.ones((1, 101), bool)
    free[0, 60:] = False
    rng = np.random.default_rng(6)
    drawn = np.array([draw_place(free, rng, label="x", near=(0.0, 50.0), spread=8.0)[1] for _ in range(4000)])
    weights = np.exp(-((np.arange(60) - 50.0) ** 2) / (2 * 8.0**2))
    expected_mean = float((np.arange(60) * weights).sum() / weights.sum())
    assert drawn.max() < 60
    assert drawn.mean() == pytest.approx(expected_mean, abs=0.5)
    far = draw_place(free, rng, label="x", near=(0.0, 5000.0), spread=1.0)
    assert far == (0, 59), "far from everything the nearest free place wins"


def test_keep_out_is_the_lesion_grown_by_the_margin() -> None:
    seed = synthetic_seed(1)
    assert seed.mask is not None
    distance = ndimage.distance_transform_edt(~seed.mask)
    for margin in (0, 3, 10):
        mask = keep_out(seed, margin=margin)
        assert np.array_equal(
            mask[np.abs(distance - margin) > 1e-3], (distance <= margin)[np.abs(distance - margin) > 1e-3]
        )
        assert mask is keep_out(seed, margin=margin), "once per seed"
    distances = lesion_distance(seed)
    assert distances is not None
    assert np.allclose(distances, distance, atol=1e-3)


def test_a_rough_mask_is_kept_out_with_and_without_truth() -> None:
    for labelled in (True, False):
        seed = synthetic_seed(1, labelled=labelled, avoid=True)
        assert seed.avoid is not None
        mask = keep_out(seed, margin=2)
        assert mask[seed.avoid].all()
        if seed.mask is not None:
            assert mask[seed.mask].all()


def test_without_any_mask_the_middle_of_the_field_is_kept_out() -> None:
    seed = synthetic_seed(1, labelled=False)
    mask = keep_out(seed, margin=4)
    top, left, bottom, right = field_box(seed)
    rows, columns = np.flatnonzero((~seed.frame).any(axis=1)), np.flatnonzero((~seed.frame).any(axis=0))
    assert (top, left, bottom, right) == (rows[0], columns[0], rows[-1] + 1, columns[-1] + 1)
    assert mask[(top + bottom) // 2, (left + right) // 2]
    expected = np.pi / 4 * (CENTRAL_FRACTION * (bottom - top)) * (CENTRAL_FRACTION * (right - left))
    assert mask.sum() == pytest.approx(expected, rel=0.03)
    assert lesion_distance(seed) is None


def test_free_places_are_off_lesion_and_frame() -> None:
    seed = synthetic_seed(2)
    assert seed.mask is not None
    free = free_places(seed, margin=5).of_box(7, 9)
    assert free.any()
    for i, j in zip(*np.nonzero(free), strict=True):
        assert not (seed.mask | seed.frame)[i : i + 7, j : j + 9].any()


def test_the_grid_says_where_something_was_put() -> None:
    touched = np.zeros((100, 131), np.uint8)
    touched[:10, :40] = 1
    touched[90:, 120:] = 255
    assert grid_shares(touched) == [0.7843, 0, 0, 0, 0, 0, 0, 0, 0.2157]  # 400 and 110 pixels
    assert grid_shares(np.zeros((7, 8), np.uint8)) == [0] * 9
    assert sum(grid_shares(np.ones((100, 131), np.uint8))) == pytest.approx(1, abs=1e-3)
