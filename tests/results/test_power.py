"""Power of paired cases, against published numbers, SciPy, statsmodels and simulated runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from records_maker import make_records
from scipy import stats

from medtest.results.cube.intervals import paired_score
from medtest.results.cube.power import (
    PairedShares,
    agreeing_clusters,
    clustering_of,
    clusters_for_margin,
    pairs_for_margin,
    smallest_difference,
    smallest_shown,
    worth,
)
from medtest.results.cube.resampling import Resampler
from medtest.results.rates.differences import difference_of
from medtest.results.rates.expected import expected_of_one, expected_of_two
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion

PRIMARY = Criterion()


@pytest.mark.parametrize(
    ("more", "less", "pairs"),
    [
        (0.45, 0.05, 22.01),  # test_that("Produces validated results") of R's MESS rounds it to 22
        (0.30, 0.15, 154.6),  # a published calculator of Connor's formula gives 155
    ],
)
def test_published_numbers_of_pairs(more: float, less: float, pairs: float) -> None:
    difference = smallest_difference(pairs, more + less)
    assert difference == pytest.approx(more - less, rel=1e-3)
    assert (
        smallest_difference(math.ceil(pairs), more + less)
        < more - less
        < smallest_difference(math.floor(pairs) - 1, more + less)
    )


def test_the_smallest_difference_has_the_promised_power() -> None:
    difference = smallest_difference(200, 0.1)
    psi = max(0.1, difference)
    rng = np.random.default_rng(0)
    b, c, _ = rng.multinomial(200, [(psi + difference) / 2, (psi - difference) / 2, 1 - psi], 4000).T
    z = np.abs(b - c) / np.sqrt(np.maximum(b + c, 1))
    assert np.mean(z > stats.norm.ppf(0.975)) == pytest.approx(0.8, abs=0.04)
    assert math.isnan(smallest_difference(0, 0.0)) and math.isnan(smallest_difference(2, 0.5))


def _draw_net_differences(
    delta: float, psi: float, rho: float, clusters: int, size: int, runs: int
) -> NDArray[np.float64]:
    """Return net differences of clusters, runs × clusters; shares are Dirichlet's, whose ICC is 1 / (1 + a)."""
    rng = np.random.default_rng(11)
    mean = np.array([(psi + delta) / 2, (psi - delta) / 2, 1 - psi])
    shares = rng.dirichlet(mean * (1 / rho - 1), (runs, clusters))
    draws = rng.multinomial(size, shares)
    return np.asarray(draws[..., 0] - draws[..., 1], dtype=np.float64)


@pytest.mark.parametrize("rho", [0.05, 0.3])
def test_clusters_have_the_promised_power(rho: float) -> None:
    clusters, size, psi = 80, 12, 0.3
    delta = smallest_difference(worth(clusters * size, clusters, rho), psi)
    net = _draw_net_differences(delta, psi, rho, clusters, size, 3000)
    assert np.mean(stats.ttest_1samp(net, 0.0, axis=1).pvalue < 0.05) == pytest.approx(0.8, abs=0.035)


@pytest.mark.parametrize("rho", [0.05, 0.3])
def test_a_margin_holds_in_four_of_five_runs_that_do_not_differ(rho: float) -> None:
    size, psi, margin = 12, 0.2, 0.05
    clusters = clusters_for_margin(margin, PairedShares(discordant=psi, clustering=rho), size * 10, 10)
    net = _draw_net_differences(0.0, psi, rho, clusters, size, 3000)
    high = stats.ttest_1samp(net, 0.0, axis=1).confidence_interval(0.95).high / size
    assert np.mean(high < margin) == pytest.approx(0.8, abs=0.035)


def test_promised_power_agrees_with_the_tables() -> None:
    size, psi, rho, margin = 10, 0.08, 0.1, 0.05
    rng = np.random.default_rng(4)

    def drawn(delta: float, clusters: int) -> NDArray[np.float64]:
        share = max(psi, delta)
        mean = np.array([(share + delta) / 2, max((share - delta) / 2, 1e-9), 1 - share])
        shares = rng.dirichlet(mean * (1 / rho - 1), clusters)
        more, less, _ = rng.multinomial(size, shares).T
        return np.stack([np.full(clusters, size), more, less, more, less], axis=1).astype(np.float64)

    sample = drawn(0.0, 20_000)
    touched = float((sample[:, 1] != sample[:, 2]).mean())
    expected = PairedShares(discordant=psi, clustering=rho, touched=touched)
    clusters = clusters_for_margin(margin, expected, size * 10, 10)
    smallest = smallest_shown(expected, size * clusters, clusters)
    resampler = Resampler(clusters, "simulated")
    alike, apart = (
        [difference_of(counts, resampler.drawn(counts)) for counts in (drawn(delta, clusters) for _ in range(200))]
        for delta in (0.0, smallest)
    )
    assert np.mean([row["ci_high"] < 100 * margin for row in alike]) == pytest.approx(0.8, abs=0.1)
    assert np.mean([row["p"] < 0.05 for row in apart]) == pytest.approx(0.8, abs=0.1)


def test_few_clusters_that_differ_count_once_each() -> None:
    rare = PairedShares(discordant=0.02, clustering=0.0, touched=0.1)
    assert smallest_shown(rare, 1000, 50) == smallest_difference(50, 0.02)
    assert smallest_shown(rare, 2000, 100) == smallest_difference(2000, 0.02)
    assert clusters_for_margin(0.02, rare, 2000, 100) == 125  # 12.5 of them differ
    never = PairedShares(discordant=0.0001, clustering=0.0, touched=0.0001)
    clusters = clusters_for_margin(0.02, never, 2000, 100)
    ends = [paired_score(0, 0, number)[1] for number in (clusters, clusters - 2)]
    assert ends[0] < 0.02 < ends[1]


def test_clustering_equals_statsmodels_and_the_rate_that_was_set() -> None:
    from statsmodels.regression.linear_model import OLS  # takes a second to import

    rng = np.random.default_rng(3)
    sizes = rng.integers(2, 30, 60)
    cluster = np.repeat(np.arange(60), sizes)
    value = (rng.random(len(cluster)) < np.repeat(rng.beta(1, 4, 60), sizes)).astype(float)
    fitted = OLS(value, np.ones(len(value)))
    robust = fitted.fit(cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}).bse[0] ** 2
    wider = 60 / 59 * robust / (value.var() / len(value))
    assert clustering_of(value, cluster) == pytest.approx((wider - 1) / ((sizes**2).sum() / sizes.sum() - 1))
    net = _draw_net_differences(0.0, 0.4, 0.25, 4000, 8, 1)[0]
    single = np.concatenate(
        [np.r_[np.full(int(abs(value_)), np.sign(value_)), np.zeros(8 - int(abs(value_)))] for value_ in net]
    )
    shares = np.random.default_rng(5).dirichlet(np.array([0.2, 0.2, 0.6]) * 3, 4000)
    cases = np.array(
        [np.random.default_rng(k).choice([1, -1, 0], 8, p=share) for k, share in enumerate(shares)]
    ).ravel()
    assert clustering_of(cases, np.repeat(np.arange(4000), 8)) == pytest.approx(0.25, abs=0.03)
    assert clustering_of(single, np.repeat(np.arange(4000), 8)) > 0.25  # what cancels within a cluster is gone there


@given(st.integers(1, 10_000), st.integers(1, 500), st.floats(0, 1), st.floats(0.001, 1))
def test_more_clustering_and_more_discordance_show_less(cases: int, clusters: int, rho: float, psi: float) -> None:
    cases = max(cases, clusters)
    assert clusters - 1e-9 <= worth(cases, clusters, rho) <= cases + 1e-9
    assert worth(cases, clusters, 1.0) == pytest.approx(clusters)
    assert pairs_for_margin(0.02, psi) <= pairs_for_margin(0.02, 1.0)
    less, more = (smallest_difference(cases, discordant) for discordant in (psi / 2, psi))
    assert math.isnan(more) or less <= more + 1e-9


def _is_violation(run: Records) -> NDArray[np.bool_]:
    frame = run.followups
    return ((frame.source_dice - frame.dice) / frame.source_dice > 0.25).to_numpy()


def test_a_finished_run_gives_its_rate_its_discordance_and_its_clusters() -> None:
    run = Records.of(make_records(seeds=60, random=2, errors=0.0, skips=0.0))
    expected = expected_of_one(run, PRIMARY)
    frame = run.followups.assign(violated=_is_violation(run))
    judged = frame[(frame.relation != "unchanged") & (frame.source_dice > 0)]
    rate = judged.violated.mean()
    assert expected is not None and expected.percent == (pytest.approx(100 * rate),)
    assert (expected.cases, expected.clusters) == (len(judged), judged.seed_id.nunique())
    assert expected.overall.discordant == pytest.approx(2 * rate * (1 - rate))
    own = judged[judged.relation == "blur"].violated.mean()
    assert expected.of("blur").discordant == pytest.approx(2 * own * (1 - own))
    assert expected.of("never run") == expected.overall
    seeds = judged.groupby("seed_id").ngroup().to_numpy()
    assert expected.overall.clustering == pytest.approx(clustering_of(judged.violated, seeds))


def test_two_finished_runs_give_the_discordance_that_was_counted() -> None:
    first, second = (Records.of(make_records(seeds=40, random=random, errors=0.0, skips=0.0)) for random in (1, 1))
    second.followups["dice"] = np.where(second.followups.relation == "blur", 0.01, second.followups["dice"])
    expected = expected_of_two(first, second, PRIMARY)
    frame = first.followups
    judged = ((frame.relation != "unchanged") & (frame.source_dice > 0)).to_numpy()
    apart = (_is_violation(first) != _is_violation(second))[judged]
    assert expected is not None and expected.measured
    assert expected.overall.discordant == pytest.approx(apart.mean())
    blur = (frame.relation == "blur").to_numpy()[judged]
    assert expected.of("blur").discordant == pytest.approx(apart[blur].mean())
    # without any difference: the largest discordance that 40 seeds allow; its clustering is unknown
    seeds = frame[judged].seed_id.nunique()
    assert expected.of("text").discordant == pytest.approx(1.9599639845**2 / (seeds + 1.9599639845**2))
    assert expected.of("text").clustering == 1.0
    assert expected_of_two(first, Records.of(make_records(seeds={"others": 3})), PRIMARY) is None


@pytest.mark.parametrize(("margin", "clusters"), [(0.02, 189), (0.05, 73), (0.25, 12), (0.9, 2)])
def test_clusters_for_a_margin_are_the_fewest_whose_interval_ends_below_it(margin: float, clusters: int) -> None:
    assert agreeing_clusters(margin) == clusters
    assert paired_score(0, 0, clusters)[1] < margin
    assert clusters == 2 or paired_score(0, 0, clusters - 1)[1] >= margin
