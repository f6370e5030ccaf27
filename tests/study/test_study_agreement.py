"""Kappa against hand computation and statsmodels; means and their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import fleiss_kappa

from medtest.study.results.agreement import Kappa, item_agreement, mean_interval, randolph
from medtest.study.results.ratings import agree_counts, level_counts

# three raters on three items: 5 5 5, 5 5 4, 1 3 5
BY_HAND = level_counts([[5, 5, 5], [5, 5, 4], [1, 3, 5]])


def test_counts() -> None:
    assert BY_HAND.tolist() == [[0, 0, 0, 0, 3], [0, 0, 0, 1, 2], [1, 0, 1, 0, 1]]
    assert agree_counts(BY_HAND).tolist() == [[0, 3], [0, 3], [2, 1]]
    assert level_counts([]).shape == (0, 5)


def test_kappa_by_hand() -> None:
    # five levels: P = 1, (1 + 4 - 3) / 6 = 1/3, 0; mean 4/9; (4/9 - 1/5) / (4/5) = 11/36
    assert item_agreement(BY_HAND).tolist() == pytest.approx([1, 1 / 3, 0])
    assert randolph(BY_HAND).value == pytest.approx(11 / 36)
    # agree or not: P = 1, 1, (4 + 1 - 3) / 6 = 1/3; mean 7/9; (7/9 - 1/2) / (1/2) = 5/9
    assert randolph(agree_counts(BY_HAND)).value == pytest.approx(5 / 9)


def test_empty_categories_count() -> None:
    """No rater chose 1 to 3: κ is free-marginal, so its chance level stays 1/5."""
    counts = level_counts([[5, 4], [5, 5], [4, 4], [5, 4]])
    assert randolph(counts).value == pytest.approx((0.5 - 0.2) / 0.8)


@given(
    st.integers(2, 6).flatmap(
        lambda raters: st.lists(st.lists(st.integers(1, 5), min_size=raters, max_size=raters), min_size=1, max_size=20)
    )
)
def test_kappa_equals_statsmodels_and_the_formula(levels: list[list[int]]) -> None:
    counts = level_counts(levels)
    kappa = randolph(counts)
    assert kappa.value == pytest.approx(fleiss_kappa(counts, method="randolph"))
    assert kappa.value == pytest.approx((item_agreement(counts).mean() - 0.2) / 0.8)
    assert kappa.low - 1e-6 <= kappa.value <= kappa.high + 1e-6 or len(levels) < 4
    assert -0.25 - 1e-9 <= kappa.value <= 1 + 1e-9


def test_items_without_all_raters_are_left_out_and_counted() -> None:
    kappa = randolph(level_counts([[5, 5, 5], [5, 5, 4], [1, 3, 5], [4, 4], [2]]))
    assert (kappa.items, kappa.left_out, kappa.raters) == (3, 2, 3)
    assert kappa.value == pytest.approx(11 / 36)


@pytest.mark.parametrize("levels", [[], [[5], [4]]])
def test_no_agreement_without_two_raters(levels: list[list[int]]) -> None:
    kappa = randolph(level_counts(levels))
    assert np.isnan(kappa.value)
    assert kappa.words == ""


def test_perfect_agreement() -> None:
    kappa = randolph(level_counts([[5] * 3] * 8))
    assert (kappa.value, kappa.words) == (1.0, "almost perfect")


@pytest.mark.parametrize(
    ("value", "word"),
    [(-0.01, "poor"), (0.0, "slight"), (0.2, "slight"), (0.21, "fair"), (0.6, "moderate"), (0.81, "almost perfect")],
)
def test_words_follow_landis_and_koch(value: float, word: str) -> None:
    assert Kappa(value=value, low=0, high=0, items=1, left_out=0, raters=2).words == word


def test_mean_and_interval() -> None:
    mean, low, high = mean_interval(BY_HAND, "x")
    assert mean == pytest.approx(38 / 9)
    assert 3.0 <= low < mean < high <= 5.0
    assert mean_interval(BY_HAND, "x") == (mean, low, high)


def test_follow_ups_of_one_seed_are_resampled_together() -> None:
    """Nine follow-ups of a seed with one level count as one: the interval is as wide as that of one."""
    rng = np.random.default_rng(2)
    levels = rng.choice([3, 4, 5], size=60)
    counts = level_counts([[int(v)] for v in np.repeat(levels, 9)])
    seeds = [f"d/{i}" for i in range(60) for _ in range(9)]
    single, alone, together = (
        np.diff(mean_interval(*arguments)[1:]).item()
        for arguments in ((level_counts([[int(v)] for v in levels]), "z"), (counts, "z"), (counts, "z", seeds))
    )
    assert together == pytest.approx(single, rel=0.05)
    assert together == pytest.approx(3 * alone, rel=0.15)
    pairs = np.repeat(level_counts([[5, 5] if v > 3 else [5, 1] for v in levels]), 9, axis=0)
    wide, narrow = randolph(pairs, "z", seeds), randolph(pairs, "z")
    assert wide.value == narrow.value
    assert wide.high - wide.low == pytest.approx(3 * (narrow.high - narrow.low), rel=0.15)


def test_interval_against_the_textbook() -> None:
    """Four hundred items of one rating: the bootstrap interval is the normal one within a few percent."""
    rng = np.random.default_rng(5)
    levels = rng.choice([3, 4, 5], size=400, p=[0.2, 0.3, 0.5])
    mean, low, high = mean_interval(level_counts([[int(v)] for v in levels]), "y")
    half = 1.96 * levels.std() / np.sqrt(len(levels))
    assert mean == pytest.approx(levels.mean())
    assert (high - low) / 2 == pytest.approx(half, rel=0.08)


def test_one_item_or_one_answer_has_no_interval() -> None:
    """Resampling one value gives that value: 5 to 5 would read as certainty."""
    one_item, all_alike = level_counts([[5, 4, 5]]), level_counts([[5, 5, 5]] * 12)
    for counts in (one_item, all_alike):
        mean, low, high = mean_interval(counts, "x")
        assert mean > 4 and np.isnan([low, high]).all()
        kappa = randolph(counts, "x")
        assert not np.isnan(kappa.value) and np.isnan([kappa.low, kappa.high]).all()
    several_of_one_seed = level_counts([[5], [2], [4]])
    assert np.isnan(mean_interval(several_of_one_seed, "x", ["s", "s", "s"])[1:]).all()
