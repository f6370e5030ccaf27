"""The engine of rates and intervals: properties for any cases, and figures against SciPy and statsmodels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from medtest.results.cube.axes import Places, with_all
from medtest.results.cube.intervals import FEW_CLUSTERS
from medtest.results.cube.paired import holm
from medtest.results.cube.rates import (
    BOOTSTRAP,
    CASES,
    CELLS,
    MEAN,
    WILSON,
    WILSON_CLUSTERS,
    Rates,
    decimals,
    margins,
    rates,
    table,
)
from medtest.results.cube.resampling import Resampler

POOLS = (CASES, CELLS, MEAN)


@st.composite
def some_cases(draw: st.DrawFn) -> tuple[Places, np.ndarray]:
    """Draw places of up to 300 cases on one to three data sets, and which of them are hits."""
    sets, shape = draw(st.integers(1, 3)), (draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    clusters, cases = draw(st.integers(1, 40)), draw(st.integers(1, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    place = Places(
        shape=shape,
        dataset=rng.integers(sets, size=cases),
        cell=rng.integers(shape[0] * shape[1], size=cases),
        cluster=rng.integers(clusters, size=cases),
        resamplers=tuple(Resampler(clusters, f"set {number}", 200) for number in range(sets)),
    )
    return place, rng.random(cases) < draw(st.sampled_from([0.0, 0.05, 0.4, 1.0]))


def are_equal(rates_: Rates, other: Rates) -> bool:
    return all(
        np.array_equal(getattr(rates_, name), getattr(other, name), equal_nan=name != "method")
        for name in ("part", "whole", "clusters", "rate", "low", "high", "method")
    )


@given(some_cases())
def test_cells_add_up_to_what_is_pooled(cases):
    place, hit = cases
    result = rates(place, hit, np.ones(len(hit)), pools=POOLS)
    relations, levels = place.shape
    for counts, total in ((result.whole, len(hit)), (result.part, hit.sum())):
        cells = counts[:-1, :relations, :levels]
        assert cells.sum() == total
        assert (counts[-1] == counts[:-1].sum(0)).all()
        assert (counts[:, :relations, -1] == counts[:, :relations, :levels].sum(-1)).all()
        assert (counts[:, relations:] == counts[:, :relations].sum(1, keepdims=True)).all()
    assert result.rate[-1, relations, -1] == pytest.approx(hit.mean())
    per_cell = result.rate[:-1, :relations, -1]
    assert result.rate[-1, relations + 1, -1] == pytest.approx(np.nanmean(per_cell))
    assert result.rate[-1, relations + 2, -1] == pytest.approx(np.nanmean(result.rate[-1, :relations, -1]))


@given(some_cases(), st.booleans())
def test_an_interval_holds_its_rate_where_there_is_one(cases, independent):
    place, hit = cases
    result = rates(place, hit, np.ones(len(hit)), pools=POOLS, independent=independent)
    defined = ~np.isnan(result.rate)
    assert (np.isnan(result.low) == ~defined).all()
    few = defined & (result.method != BOOTSTRAP)  # a percentile interval of resamples need not hold it
    assert (result.low[few] <= result.rate[few] + 1e-12).all()
    assert (result.rate[few] <= result.high[few] + 1e-12).all()
    assert (result.low[defined] >= 0).all()
    assert (result.high[defined] <= 1).all()
    assert ((result.low <= result.high) | ~defined).all()


@given(some_cases(), st.randoms(use_true_random=False))
def test_the_order_of_cases_does_not_matter(cases, random):
    place, hit = cases
    order = np.array(random.sample(range(len(hit)), len(hit)))
    result = rates(place, hit, np.ones(len(hit)), pools=POOLS)
    assert are_equal(result, rates(place.take(order), hit[order], np.ones(len(hit)), pools=POOLS))


@given(some_cases())
def test_with_a_cluster_a_case_rates_have_wilsons_interval_as_scipy_gives_it(cases_):
    place, hit = cases_
    number = np.zeros(len(hit), np.int64)
    for dataset in range(len(place.resamplers)):
        in_dataset = place.dataset == dataset
        number[in_dataset] = np.arange(in_dataset.sum())
    own = replace(
        place,
        cluster=number,
        resamplers=tuple(Resampler(int((place.dataset == n).sum()), str(n), 50) for n in range(len(place.resamplers))),
    )
    result = rates(own, hit, np.ones(len(hit)), pools=(CASES,), independent=True)
    assert (result.clusters == result.whole).all()
    assert (result.method[result.whole > 0] == WILSON).all()
    for at in zip(*np.nonzero(result.whole > 0), strict=True):
        expected = binomtest(int(result.part[at]), int(result.whole[at])).proportion_ci(method="wilson")
        assert (result.low[at], result.high[at]) == pytest.approx((expected.low, expected.high), abs=1e-9)
        assert result.low[at] <= result.rate[at] <= result.high[at]


@given(some_cases(), st.integers(2, 5))
def test_equal_cases_of_a_cluster_count_as_one(cases, times):
    place, hit = cases
    once = rates(place, hit, np.ones(len(hit)))
    rows = np.repeat(np.arange(len(hit)), times)
    again = rates(place.take(rows), hit[rows], np.ones(len(rows)))
    for name in ("rate", "low", "high", "clusters"):
        assert getattr(again, name) == pytest.approx(getattr(once, name), nan_ok=True, abs=1e-6)


@given(some_cases())
def test_a_scale_multiplies_rates_and_their_ends(cases):
    place, hit = cases
    size = place.shape[0]
    plain = rates(place, hit, np.ones(len(hit)), pools=(MEAN,))
    scaled = rates(place, hit, np.ones(len(hit)), pools=(MEAN,), scale=np.full(size, 4.0))
    for name in ("rate", "low", "high"):
        assert getattr(scaled, name) == pytest.approx(4 * getattr(plain, name), nan_ok=True)


def test_which_interval_a_rate_has() -> None:
    cases = 120
    place = Places(
        shape=(1, 1),
        dataset=np.zeros(cases, np.int64),
        cell=np.zeros(cases, np.int64),
        cluster=np.arange(cases) // 2,
        resamplers=(Resampler(60, "d"),),
    )
    hit = np.arange(cases) < FEW_CLUSTERS * 2
    assert rates(place, hit, np.ones(cases)).method[0, 0, 0] == BOOTSTRAP
    assert rates(place, hit[::-1], np.ones(cases)).method[0, 0, 0] == BOOTSTRAP
    assert rates(place, np.arange(cases) < FEW_CLUSTERS * 2 - 2, np.ones(cases)).method[0, 0, 0] == WILSON_CLUSTERS
    assert rates(place, ~hit, np.ones(cases), independent=True).method[0, 0, 0] == BOOTSTRAP
    few_misses = rates(place, np.arange(cases) >= FEW_CLUSTERS * 2 - 2, np.ones(cases))  # all of 51 of 60 clusters
    assert few_misses.method[0, 0, 0] == WILSON_CLUSTERS
    expected = binomtest(51, 60).proportion_ci(method="wilson")
    assert (few_misses.low[0, 0, 0], few_misses.high[0, 0, 0]) == pytest.approx((expected.low, expected.high))


def test_bootstrap_ends_match_clusters_drawn_by_hand() -> None:
    rng = np.random.default_rng(3)
    cases, clusters = 400, 50
    place = Places(
        shape=(1, 1),
        dataset=np.zeros(cases, np.int64),
        cell=np.zeros(cases, np.int64),
        cluster=rng.integers(clusters, size=cases),
        resamplers=(Resampler(clusters, "d"),),
    )
    hit = rng.random(cases) < 0.4
    result = rates(place, hit, np.ones(cases))
    weights = Resampler(clusters, "d").weights(2000)[:, place.cluster]
    ends = np.quantile((weights * hit).sum(1) / weights.sum(1), (0.025, 0.975))
    assert (result.low[0, 0, 0], result.high[0, 0, 0]) == pytest.approx(tuple(ends), abs=1e-6)


@settings(max_examples=12)
@given(st.lists(st.floats(0, 1), min_size=0, max_size=12))
def test_holm_by_its_definition(values):
    """S. Holm, 1979: the smallest p times their number, the next times one less, none below those before it."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    expected = [0.0] * len(values)
    for rank, place in enumerate(order):
        before = [expected[index] for index in order[:rank]]
        expected[place] = max([min(1.0, (len(values) - rank) * values[place]), *before])
    assert holm(values) == pytest.approx(expected)
    assert not values or holm(values[:3]) == pytest.approx(multipletests(values[:3], method="holm")[1])


def test_margins_and_rows_of_a_table() -> None:
    counts = np.arange(6.0).reshape(1, 2, 3)
    totals = margins(with_all(counts, 0), np.array([True, False]))
    assert totals.shape == (2, 3, 4)
    assert totals[0].tolist() == [[0, 1, 2, 3], [3, 4, 5, 12], [0, 1, 2, 3]]
    assert margins(counts, add=np.maximum)[0].tolist() == [[0, 1, 2, 2], [3, 4, 5, 5], [3, 4, 5, 5]]
    names = ({"dataset": ("d",)}, {"relation": ("a", "b"), "group": ("x", "y")}, {"severity": (1, 2, 3)})
    frame = table(names, {"cases": counts, "unit": "m"}, counts > 2)
    assert frame.to_dict("list") == {
        "dataset": ["d"] * 3,
        "relation": ["b"] * 3,
        "group": ["y"] * 3,
        "severity": [1, 2, 3],
        "cases": [3.0, 4.0, 5.0],
        "unit": ["m"] * 3,
    }


def test_decimals_match_the_exact_number() -> None:
    values = [0.0015625, 0.0078125, 2.675, float("nan")]
    assert decimals(values).tolist()[:3] == [round(value, 6) for value in values[:3]]
    assert np.isnan(decimals(values)[3])


@pytest.mark.parametrize("clusters", [0, 1, 37, 3000])
def test_sums_of_several_blocks_match_each_by_the_weights(clusters) -> None:
    rng = np.random.default_rng(clusters)
    counts = rng.integers(0, 3, (clusters, 5)).astype(np.float32)
    counts[:, 2] = 0
    scores = rng.random((clusters, 4)).astype(np.float32)
    blocks = (counts, scores, counts[:, :0], 1000 * scores[:, :1])
    block_sums = Resampler(clusters, "d", 50).sums_of_each(blocks)
    weights = Resampler(clusters, "d", 50).weights(50).astype(np.float64) if clusters else np.zeros((50, 0))
    for block, sums in zip(blocks, block_sums, strict=True):
        assert sums.dtype == np.float32
        np.testing.assert_allclose(sums, weights @ block.astype(np.float64), rtol=1e-6)
        np.testing.assert_array_equal(sums, Resampler(clusters, "d", 50).sums(block))
