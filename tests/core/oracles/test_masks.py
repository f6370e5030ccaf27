"""The mask oracle against scikit-image, SciPy, plain loops and hand-made cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from medtest.core.cases import Effect, MaskOutput, PreparedSeed, SeedRef, Verdict
from medtest.core.oracles.moves import move_mask
from medtest.core.plugins import part
from medtest.suite.model import Criterion
from medtest.tasks.segment.oracle import HIT_FRACTION, REGION_FRACTION, Masks, mean_over_thresholds, overlap

masks = hnp.arrays(bool, st.tuples(st.integers(1, 24), st.integers(1, 24)))


def prepared(mask, original=None):
    shape = mask.shape if mask is not None else (64, 64)
    return PreparedSeed(
        ref=SeedRef(dataset="d", seed_id="a"),
        image=np.zeros((*shape, 3), np.uint8),
        mask=mask,
        original_mask=mask if original is None else original,
        frame=np.zeros(shape, bool),
        grey=np.ones(shape, np.float32),
    )


def oracle():
    info = part("oracles", "masks")
    cls = info.load()
    return cls(cls.Settings(**info.defaults), primary=Criterion())


def answer(mask, probability=None, native=None):
    return MaskOutput(
        mask=mask, probability=mask.astype(np.float32) if probability is None else probability, native=native
    )


@given(predicted=masks, data=st.data())
def test_overlap_is_equations_4_and_5(predicted, data):
    expected = data.draw(hnp.arrays(bool, predicted.shape))
    dice, iou = overlap(predicted, expected)
    true, false = int((predicted & expected).sum()), int((predicted & ~expected).sum())
    missed = int((~predicted & expected).sum())
    if true + false + missed == 0:
        assert (dice, iou) == (1.0, 1.0)
    else:
        assert dice == 2 * true / (2 * true + false + missed)
        assert iou == true / (true + false + missed)


@given(
    levels=hnp.arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 12))),
    data=st.data(),
)
def test_means_over_256_thresholds_are_those_of_a_plain_loop(levels, data):
    expected = data.draw(hnp.arrays(bool, levels.shape))
    low, high = int(levels.min()), int(levels.max())
    dices, ious = [], []
    for k in range(256):
        stretched = (levels.astype(int) - low) * 255 >= k * (high - low) if high > low else levels >= k
        dice, iou = overlap(stretched, expected)
        dices.append(dice)
        ious.append(iou)
    assert mean_over_thresholds(levels, expected) == pytest.approx((np.mean(dices), np.mean(ious)), abs=1e-12)


def test_a_binary_map_gives_255_times_its_dice_and_once_that_of_the_whole_image():
    # the relation that models.md states for SSFormer's script: (255 · Dice + Dice of all ones) / 256
    rng = np.random.default_rng(3)
    predicted, expected = rng.random((2, 40, 30)) > 0.6
    dice, _ = overlap(predicted, expected)
    whole, _ = overlap(np.ones_like(expected), expected)
    mean, _ = mean_over_thresholds(predicted.astype(np.uint8) * 255, expected)
    assert mean == pytest.approx((255 * dice + whole) / 256, abs=1e-12)


@given(field=hnp.arrays(bool, (48, 48)), seed=st.integers(0, 2**31))
def test_lesions_and_regions_are_those_of_scipy(field, seed):
    rng = np.random.default_rng(seed)
    smooth = ndimage.uniform_filter(rng.random((48, 48)), 5)
    predicted = (smooth > np.quantile(smooth, 0.8)) | (field & (rng.random((48, 48)) > 0.95))
    truth = ndimage.uniform_filter(rng.random((48, 48)), 7)
    expected = truth > np.quantile(truth, 0.85)
    row = oracle().score(answer=answer(predicted), source=None, seed=prepared(expected), effect=Effect())
    eight = np.ones((3, 3))
    lesions, count = ndimage.label(expected, eight)
    missed = sum(predicted[lesions == k].mean() < HIT_FRACTION for k in range(1, count + 1))
    regions, count = ndimage.label(predicted, eight)
    invented = sum(
        (regions == k).sum() >= REGION_FRACTION * predicted.size and not expected[regions == k].any()
        for k in range(1, count + 1)
    )
    assert row["missed_lesions"] == missed
    assert row["false_regions"] == invented


def test_without_truth_only_self_scores_exist():
    mask = np.zeros((64, 64), bool)
    mask[10:30, 10:30] = True
    half = mask.copy()
    half[20:] = False
    row = oracle().score(answer=answer(half), source=answer(mask), seed=prepared(None), effect=Effect())
    assert row["self_dice"] == pytest.approx(2 / 3)
    assert row["self_iou"] == pytest.approx(1 / 2)
    assert [row[name] for name in Masks.scores] == [None] * len(Masks.scores)


def test_source_case_agrees_with_itself_and_a_lost_source_leaves_self_empty():
    mask = np.zeros((32, 32), bool)
    mask[4:9, 4:9] = True
    output = answer(mask)
    row = oracle().score(answer=output, source=output, seed=prepared(mask), effect=Effect())
    assert (row["dice"], row["iou"], row["self_dice"]) == (1.0, 1.0, 1.0)
    assert row["mean_dice_256"] == pytest.approx((255 + 2 * 25 / (1024 + 25)) / 256)
    lost = oracle().score(answer=output, source=None, seed=prepared(mask), effect=Effect())
    assert lost["self_dice"] is None
    assert lost["dice"] == 1.0


def test_a_moved_answer_is_compared_with_the_moved_source_and_truth():
    mask = np.zeros((64, 64), bool)
    mask[10:20, 12:30] = True
    moved = np.roll(mask, (7, 5), (0, 1))
    effect = Effect(kind="move", data={"matrix": [[1.0, 0.0, 5.0], [0.0, 1.0, 7.0]]})
    row = oracle().score(answer=answer(moved), source=answer(mask), seed=prepared(mask), effect=effect)
    assert (row["dice"], row["self_dice"]) == (1.0, 1.0)


def test_a_move_at_another_size_lands_in_the_same_place():
    small = np.zeros((32, 32), bool)
    small[4:8, 6:12] = True
    large = small.repeat(3, 0).repeat(2, 1)
    quarter = [[0.0, -1.0, 31.0], [1.0, 0.0, 0.0]]  # a quarter turn of the 32 × 32 image
    expected = move_mask(small, quarter).repeat(3, 0).repeat(2, 1)
    assert (move_mask(small, quarter) == np.rot90(small, -1)).all()
    assert overlap(move_mask(large, quarter, prepared=(32, 32)), expected)[0] > 0.95


def test_native_map_is_used_at_the_original_size():
    original = np.zeros((40, 80), bool)
    original[10:20, 20:60] = True
    mask = np.zeros((32, 32), bool)
    mask[8:16, 8:24] = True
    output = answer(mask, native=original.astype(np.float32))
    row = oracle().score(answer=output, source=output, seed=prepared(mask, original), effect=Effect())
    assert row["mean_dice_256"] == pytest.approx((255 + 2 * 400 / 3600) / 256)


def test_verdict_is_that_of_the_primary_criterion():
    judge = oracle()
    assert judge.verdict({"dice": 0.6, "source_dice": 0.9})[0] is Verdict.FAIL
    assert judge.verdict({"dice": 0.6, "source_dice": 0.8})[0] is Verdict.PASS


@pytest.mark.parametrize("shape", [(7, 5), (128, 64), (129, 300), (400, 513)])
def test_levels_are_counted_as_one_by_one(shape: tuple[int, int]) -> None:
    from medtest.tasks.segment.oracle import _box, _histogram, _histogram_inside

    rng = np.random.default_rng(3)
    for density in (0.0, 0.001, 0.3, 1.0):
        levels = (rng.integers(0, 256, shape) * (rng.random(shape) < density)).astype(np.uint8)
        where = (rng.random(shape) < density).astype(np.uint8)
        assert _histogram(levels).tolist() == np.bincount(levels.ravel(), minlength=256).tolist()
        inside = np.bincount(levels[where > 0], minlength=256)
        assert _histogram_inside(levels, where, _box(where)).tolist() == inside.tolist()
