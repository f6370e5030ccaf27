"""Further measures of robustness besides (α,σ): by hand, against other libraries, and by properties."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.results.cube.paired import holm
from medtest.results.series.alpha_sigma import alpha_sigma
from medtest.results.series.paired import paired_table
from medtest.results.series.robustness import agreement, measures, permutation_p, robustness_of, robustness_table
from medtest.results.series.series import SeriesSet, groups_of, make_series

qualities = st.lists(st.floats(0, 1, width=32), min_size=2, max_size=9)
scale_sets = st.lists(st.floats(0.125, 100, width=32), min_size=2, max_size=9, unique=True)


def test_measures_by_hand() -> None:
    robustness = robustness_of(make_series("A", [0, 1, 3], [1.0, 0.5, 0.8]))
    assert robustness.alpha == pytest.approx(0.5)
    assert robustness.sigma == 0
    assert robustness.mean_quality == pytest.approx(2.3 / 3)
    assert robustness.area == pytest.approx((0.75 * 1 + 0.65 * 2) / 3)
    assert robustness.sum_of_falls == pytest.approx(0.5)
    assert robustness.worst_loss == pytest.approx(0.5)
    assert robustness.intervals == {}


def test_area_is_numpys_trapezoid() -> None:
    rng = np.random.default_rng(0)
    scales, curves = np.sort(rng.uniform(0, 9, 7)), rng.uniform(0, 1, (4, 7))
    values, _ = measures(scales, curves)
    assert values["area"] == pytest.approx(np.trapezoid(curves, scales, axis=1) / np.ptp(scales))


def test_a_rise_throughout_is_noted_and_not_clipped() -> None:
    robustness = robustness_of(make_series("A", [1, 2, 3], [0.1, 0.2, 0.4]))
    assert robustness.alpha == pytest.approx(-0.1)
    assert robustness.worst_loss == pytest.approx(-0.1)
    assert robustness.sum_of_falls == 0
    assert "never falls" in robustness.note


def test_a_constant_answer_has_alpha_zero() -> None:
    robustness = robustness_of(make_series("constant", [5, 10, 15], [0.2, 0.2, 0.2]))
    assert robustness.alpha == 0
    assert robustness.mean_quality == pytest.approx(0.2)


@given(qualities, st.data())
def test_order_of_columns_changes_nothing(values: list[float], data: st.DataObject) -> None:
    scales = list(range(1, len(values) + 1))
    order = data.draw(st.permutations(range(len(values))))
    plain = robustness_of(make_series("A", scales, values))
    mixed = robustness_of(make_series("A", [scales[n] for n in order], [values[n] for n in order]))
    assert mixed == plain


@given(qualities, st.floats(-5, 5))
def test_shifting_quality_changes_no_loss(values: list[float], shift: float) -> None:
    scales = np.arange(1, len(values) + 1)
    plain = robustness_of(make_series("A", scales, values))
    moved = robustness_of(make_series("A", scales, np.array(values) + shift))
    for name in ("alpha", "sum_of_falls", "worst_loss"):
        assert getattr(moved, name) == pytest.approx(getattr(plain, name), abs=1e-6)
    assert moved.area == pytest.approx(plain.area + shift, abs=1e-6)


@given(scale_sets, st.data())
def test_alpha_bounds_every_step_and_is_reached(scales: list[float], data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(0, 1, width=32), min_size=len(scales), max_size=len(scales)))
    result = alpha_sigma(scales, values)
    order = np.argsort(scales)
    sigma, quality = np.array(scales, dtype=float)[order], np.array(values, dtype=float)[order]
    slopes = -np.diff(quality) / np.diff(sigma)
    assert (slopes <= result.alpha + 1e-9 * np.abs(slopes).max()).all()
    assert slopes[result.step] == pytest.approx(result.alpha, rel=1e-6, abs=1e-9 * np.abs(slopes).max())
    assert result.sigma == sigma[result.step]
    assert result.sigma < sigma[-1]


@given(qualities)
def test_the_worst_loss_is_between_the_steepest_step_and_the_sum_of_falls(values: list[float]) -> None:
    robustness = robustness_of(make_series("A", np.arange(1, len(values) + 1), values))
    assert robustness.worst_loss >= robustness.alpha - 1e-9
    assert max(robustness.worst_loss, 0) <= robustness.sum_of_falls + 1e-9


@given(qualities)
def test_errors_and_qualities_mirror_each_other(values: list[float]) -> None:
    scales = np.arange(1, len(values) + 1)
    good = robustness_of(make_series("A", scales, values))
    bad = robustness_of(make_series("A", scales, 1 - np.array(values)), lower_is_better=True)
    assert bad.alpha == pytest.approx(good.alpha, abs=1e-9)
    assert bad.mean_quality == pytest.approx(1 - good.mean_quality, abs=1e-9)


@given(st.lists(st.floats(0, 10, width=32), min_size=1, max_size=12), st.floats(0, 3))
def test_merged_scales_are_a_step_apart_and_keep_their_mean(scales: list[float], step: float) -> None:
    groups = groups_of(scales, step)
    assert sorted(int(n) for group in groups for n in group) == list(range(len(scales)))
    centres = [float(np.mean([scales[n] for n in group])) for group in groups]
    assert all(b - a >= step - 1e-9 for a, b in zip(centres, centres[1:], strict=False))
    assert len(groups_of(scales, 0.0)) == len(set(scales))


def test_merging_takes_the_nearest_first() -> None:
    assert [group.tolist() for group in groups_of([0, 0.3, 0.5, 2], 0.4)] == [[0], [1, 2], [3]]


def test_permutation_p_counts_every_permutation() -> None:
    scales, values = np.array([1.0, 2.0, 4.0, 5.0]), np.array([0.9, 0.8, 0.3, 0.7])
    observed = alpha_sigma(scales, values).alpha
    all_of_them = [alpha_sigma(scales, np.array(p)).alpha for p in permutations(values)]
    assert permutation_p(scales, values) == pytest.approx(np.mean(np.array(all_of_them) >= observed - 1e-12))


def test_permutation_p_is_uniform_without_any_effect() -> None:
    rng = np.random.default_rng(1)
    scales = np.sort(rng.uniform(0, 9, 12))
    p_values = [permutation_p(scales, rng.normal(size=12)) for _ in range(120)]
    assert 0.35 < np.mean(np.array(p_values) <= 0.5) < 0.65
    assert min(p_values) >= 1 / 10_000


def _images(rng: np.random.Generator, slope: float, count: int = 30) -> np.ndarray:
    scales = np.arange(1, 6)
    return 0.9 - slope * scales + 0.05 * rng.standard_normal((count, 1)) + 0.004 * rng.standard_normal((count, 5))


def test_intervals_cover_and_pairs_differ_where_they_do() -> None:
    rng = np.random.default_rng(5)
    scales, clusters = np.arange(1, 6), np.arange(30)
    curves = {"flat": _images(rng, 0.02), "steep": _images(rng, 0.06), "steep2": _images(rng, 0.06)}
    series = tuple(
        make_series(name, scales, images.mean(0), images=images, clusters=clusters) for name, images in curves.items()
    )
    series_set = SeriesSet(title="t", quality="q", scale="s", series=series)
    for item, slope in zip(series, (0.02, 0.06, 0.06), strict=True):
        low, high = robustness_of(item).intervals["area"]
        assert low < 0.9 - 3 * slope < high
    pairs = paired_table(series_set).set_index(["first", "second"])
    assert pairs.loc[("flat", "steep"), "p_holm"] < 0.01
    assert pairs.loc[("steep", "steep2"), "p"] > 0.05
    table = robustness_table(series_set)
    assert table["algorithm"].iloc[-1] == "flat"
    assert table["permutation_p"].isna().all()


def test_paired_p_matches_all_exchanges() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.uniform(size=(6, 3)), rng.uniform(size=(6, 3))
    scales, clusters = np.array([1.0, 2.0, 3.0]), np.arange(6)
    series = tuple(
        make_series(name, scales, images.mean(0), images=images, clusters=clusters)
        for name, images in (("a", first), ("b", second))
    )
    row = paired_table(SeriesSet(title="", quality="q", scale="s", series=series)).iloc[0]
    differences = []
    for signs in np.ndindex(*[2] * 6):
        swap = np.array(signs, bool)[:, None]
        a, b = np.where(swap, second, first).mean(0), np.where(swap, first, second).mean(0)
        differences.append(alpha_sigma(scales, a).alpha - alpha_sigma(scales, b).alpha)
    observed = alpha_sigma(scales, first.mean(0)).alpha - alpha_sigma(scales, second.mean(0)).alpha
    assert row["p"] == pytest.approx(np.mean(np.abs(differences) >= abs(observed) - 1e-12))


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_agreement_turns_every_measure_to_robust() -> None:
    rng = np.random.default_rng(0)
    falls = np.sort(rng.uniform(0.01, 0.2, 6))
    robustness = [
        robustness_of(make_series(f"a{n}", [1, 2, 3], [0.9, 0.9 - f, 0.9 - 2 * f])) for n, f in enumerate(falls)
    ]
    table = agreement(robustness).set_index("measure")
    for name in ("mean_quality", "area", "sum_of_falls", "worst_loss"):
        assert table.loc["alpha", name] == 1.0
    assert agreement(robustness[:2]).empty
