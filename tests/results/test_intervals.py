"""Intervals against statsmodels, SciPy and simulation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.results.cube import intervals, resampling


@given(cases=st.integers(1, 5000), data=st.data())
def test_wilson_equals_statsmodels(cases, data):
    from statsmodels.stats.proportion import proportion_confint

    successes = data.draw(st.integers(0, cases))
    expected = proportion_confint(successes, cases, alpha=0.05, method="wilson")
    low, high = intervals.wilson(successes, cases)
    assert (float(low), float(high)) == pytest.approx(expected, abs=1e-12)


def test_wilson_by_hand_without_a_violation_and_without_a_case():
    # the upper end at k = 0 is z² / (n + z²)
    z2 = 1.959963984540054**2
    assert float(intervals.wilson(0, 24)[1]) == pytest.approx(z2 / (24 + z2))
    assert intervals.smallest_upper_bound(24) == pytest.approx(100 * z2 / (24 + z2))
    assert np.isnan(intervals.wilson(0, 0)).all()


def test_ends_of_one_count_of_one_rate_and_of_one_row_of_draws_match_the_arrays():
    low, high = intervals.wilson([7], [24])
    assert intervals.wilson_ends(7, 24) == (low[0], high[0]) == intervals.wilson_of_rate(7 / 24, 24)
    assert intervals.wilson_of_rate(float("nan"), 24) == intervals.wilson_ends(0, 24)
    assert np.isnan(intervals.wilson_of_rate(float("nan"), 0)).all()
    draws = np.linspace(0, 1, 41)
    assert intervals.percentile_ends(draws) == pytest.approx((0.025, 0.975))


def test_resampled_sums_match_drawn_clusters():
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 9, (17, 4)).astype(np.float32)
    drawn = resampling.Resampler(17, "d", 300).sums(rows)
    assert drawn.shape == (300, 4)
    sums_of_ones = resampling.Resampler(17, "d", 300).sums(np.ones((17, 1), np.float32))
    assert (sums_of_ones == 17).all()  # as many clusters are drawn as there are
    again = resampling.Resampler(17, "d", 300).sums(rows)
    assert (drawn == again).all()
    assert (resampling.Resampler(17, "other", 300).sums(rows) != drawn).any()


def test_cached_and_fresh_weights_agree(monkeypatch):
    rows = np.arange(40, dtype=np.float32).reshape(20, 2)
    cached = resampling.Resampler(20, "d", 500)
    first, second = cached.sums(rows), cached.sums(rows)
    monkeypatch.setattr(resampling, "_CACHED_WEIGHTS", 0)
    fresh = resampling.Resampler(20, "d", 500)
    assert (first == second).all()
    assert (fresh.sums(rows) == first).all()
    assert fresh._kept is None


def test_bootstrap_standard_error_equals_theory():
    """The spread of a resampled mean is the plug-in standard deviation over √n (Davison and Hinkley, section 2.2)."""
    values = np.random.default_rng(1).gamma(1.0, 1.0, (200, 1)).astype(np.float32)
    means = resampling.Resampler(200, "d", 4000).sums(values) / 200
    assert means.std() == pytest.approx(values.std() / np.sqrt(200), rel=0.05)


def test_percentile_interval_leaves_empty_resamples_out():
    draws = np.array([[0.0, np.nan, 1.0], [1.0, np.nan, np.nan], [2.0, np.nan, 3.0]])
    low, high = intervals.percentile_interval(draws)
    assert low[[0, 2]] == pytest.approx([0.05, 1.05])
    assert high[[0, 2]] == pytest.approx([1.95, 2.95])
    assert np.isnan(low[1])
    assert np.isnan(high[1])


@given(rows=st.integers(1, 40), columns=st.integers(1, 4), seed=st.integers(0, 99))
def test_percentile_interval_is_numpys_quantile(rows, columns, seed):
    draws = np.random.default_rng(seed).normal(size=(rows, columns))
    low, high = intervals.percentile_interval(draws)
    expected = np.quantile(draws, (0.025, 0.975), axis=0)
    assert np.stack([low, high]) == pytest.approx(expected, abs=1e-12)


def test_resampled_sums_are_exact_so_that_no_processor_rounds_them_otherwise() -> None:
    rng = np.random.default_rng(5)
    clusters, scores = 37, rng.random((37, 3)).astype(np.float32)
    resampler = resampling.Resampler(clusters, "exact", 200)
    weights = resampler.weights(200)
    expected = [
        [float(sum(int(n) * Fraction(float(x)) for n, x in zip(row, column, strict=True))) for column in scores.T]
        for row in weights
    ]
    sums = resampler.sums(scores)
    assert sums.dtype == np.float32
    assert np.array_equal(sums, np.array(expected).astype(np.float32))
    counts = rng.integers(0, 50, (clusters, 3)).astype(np.float32)
    assert np.array_equal(resampler.sums(counts), weights.astype(np.int64) @ counts.astype(np.int64))


@pytest.mark.parametrize(
    ("share", "cases", "sensitivity", "specificity", "ends"),
    [
        (4060 / 11284, 11284, (178, 179), (358, 359), (0.349, 0.372)),
        (51 / 2971, 2971, (32, 33), (20, 20), (0.0, 0.053)),
        (0.06, 11862, (8, 10), (12, 12), (0.0, 0.147)),
        (259 / 509, 509, (84, 127), (96, 109), (0.58, 0.87)),
        (51 / 509, 509, (23, 41), (187, 195), (0.037, 0.195)),
    ],
)
def test_corrected_shares_have_the_published_intervals(
    share: float, cases: int, sensitivity: tuple[int, int], specificity: tuple[int, int], ends: tuple[float, float]
) -> None:
    """Examples 1 to 4 of Lang and Reiczigel (2014), as the R package asht lists them with prevSeSp."""
    (detected, positives), (rejected, negatives) = sensitivity, specificity
    measured = {"sensitivity": detected / positives, "specificity": rejected / negatives}
    estimate, low, high = intervals.corrected_share(share, cases, positives=positives, negatives=negatives, **measured)
    places = 2 if ends == (0.58, 0.87) else 3
    assert (round(low, places), round(high, places)) == ends
    expected = (share + measured["specificity"] - 1) / (measured["sensitivity"] + measured["specificity"] - 1)
    assert estimate == pytest.approx(expected)


def test_a_test_no_better_than_chance_corrects_nothing() -> None:
    values = intervals.corrected_share(0.5, 100, sensitivity=0.4, positives=50, specificity=0.6, negatives=50)
    assert all(math.isnan(value) for value in values)


def test_effective_cases_are_the_cases_of_a_wald_interval_and_fewer_for_a_wider_one() -> None:
    half = intervals.Z95 * math.sqrt(0.3 * 0.7 / 200)
    assert intervals.effective_cases(0.3, 0.3 - half, 0.3 + half, 1000) == pytest.approx(200)
    assert intervals.effective_cases(0.3, 0.3 - half, 0.3 + half, 150) == 150
