"""Density of pools: levels, draws that favour levels, and that weights give the population's rate back."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from medtest.captions.density import LEVELS, draw_by_density, draw_uniform, level
from medtest.phantoms.prompts import make
from medtest.results.cube.intervals import wilson_ends
from medtest.results.cube.weighted import weighted_rate
from medtest.scenes import Entity, Pool, pool_of

EQUAL = dict.fromkeys(LEVELS, 1.0)


def chain(count: int, relations: int) -> Pool:
    entities = [Entity(name=f"thing{at}") for at in range(count)]
    return pool_of(entities, [(at % count, "near", (at + 1) % count) for at in range(relations)])


@pytest.mark.parametrize(
    ("entities", "relations", "expected"),
    [(0, 0, 1), (1, 0, 1), (2, 0, 1), (2, 1, 2), (3, 0, 2), (4, 0, 2), (3, 2, 3), (5, 0, 3), (4, 2, 3), (4, 3, 4)]
    + [(4, 4, 4), (5, 4, 5), (8, 7, 5), (2, 3, 3)],
)
def test_levels(entities: int, relations: int, expected: int) -> None:
    assert level(chain(entities, relations)) == expected


@given(count=st.integers(1, 12))
def test_things_held_together_by_one_relation_fewer_are_of_their_number(count: int) -> None:
    assert level(chain(count, count - 1)) == min(5, count)


def test_numbers_and_attributes_do_not_count() -> None:
    assert level(pool_of([Entity(name="dog", count=9, attributes=("red", "small"))])) == 1


levels_ = st.lists(st.sampled_from(LEVELS), min_size=1, max_size=80)


@given(levels=levels_, count=st.integers(1, 90), seed=st.integers(0, 99), shares=st.permutations([0.0, 1, 1, 2, 5]))
def test_draws_by_density(levels: list[int], count: int, seed: int, shares: list[float]) -> None:
    names, wanted = [f"s{at}" for at in range(len(levels))], dict(zip(LEVELS, shares, strict=True))
    drawn = draw_by_density(names, levels, count, seed, wanted)
    reachable = [one for one in levels if wanted[one] > 0]
    assert len(drawn.chosen) == min(count, len(reachable)) == len(set(drawn.chosen))
    taken, there = Counter(levels[at] for at in drawn.chosen), Counter(reachable)
    assert all(taken[one] <= there[one] for one in LEVELS)
    assert count < len(there) or all(taken[one] for one in there)  # each level is represented
    for at, weight in zip(drawn.chosen, drawn.weights, strict=True):
        of_level = there[levels[at]] / len(reachable)
        assert weight == pytest.approx(of_level / (taken[levels[at]] / len(drawn.chosen)))
    if count >= len(there):
        assert sum(drawn.weights) == pytest.approx(len(drawn.chosen))
    assert drawn == draw_by_density(names, levels, count, seed, wanted)


def test_shares_are_kept_where_levels_have_enough() -> None:
    levels = [one for one in LEVELS for _ in range(100)]
    drawn = draw_by_density(
        [str(at) for at in range(500)], levels, 40, 1, dict(zip(LEVELS, (4, 2, 1, 1, 0), strict=True))
    )
    assert Counter(levels[at] for at in drawn.chosen) == {1: 20, 2: 10, 3: 5, 4: 5}
    scarce = [1] * 3 + [2] * 97
    drawn = draw_by_density([str(at) for at in range(100)], scarce, 50, 1, EQUAL)
    assert Counter(scarce[at] for at in drawn.chosen) == {1: 3, 2: 47}


def test_a_larger_sample_holds_a_smaller_one() -> None:
    names = [f"s{at}" for at in range(200)]
    small, large = draw_uniform(names, 20, 7), draw_uniform(names, 50, 7)
    assert set(small.chosen) < set(large.chosen) and set(small.weights) == {1.0}
    assert draw_uniform(names, 20, 8).chosen != small.chosen
    assert draw_uniform(names, 999, 7).chosen == tuple(range(200))


def test_both_samplings_cover_the_implied_rate_where_errors_grow_with_clutter() -> None:
    # Errors of each level are drawn with its rate; the population's rate follows by arithmetic. Coverage may not be
    # below 95 %: one-sided binomial tests, by Holm over the two.
    rates = dict(zip(LEVELS, (0.02, 0.06, 0.15, 0.35, 0.7), strict=True))
    # many prompts say little: the sixth root of a uniform number is near its upper end
    sizes = [1 + int(5 * (1 - ((at + 0.5) / 1200) ** (1 / 3))) for at in range(1200)]
    levels = [level(make(at, 3, fewest=size, most=size)) for at, size in enumerate(sizes)]
    implied = float(np.mean([rates[one] for one in levels]))
    names, shares = [str(at) for at in range(len(levels))], {1: 1.0, 2: 1.0, 3: 2.0, 4: 2.0, 5: 3.0}
    campaigns, count = 300, 200
    covered, widths, plain = Counter(), Counter(), 0
    for campaign in range(campaigns):
        rng = np.random.default_rng([20, campaign])
        for sampling in ("uniform", "density"):
            drawn = (
                draw_uniform(names, count, campaign)
                if sampling == "uniform"
                else draw_by_density(names, levels, count, campaign, shares)
            )
            failed = rng.random(count) < [rates[levels[at]] for at in drawn.chosen]
            found = weighted_rate(failed, drawn.weights)
            covered[sampling] += found.low <= implied <= found.high
            widths[sampling] += found.high - found.low
        low, high = wilson_ends(int(failed.sum()), count)
        plain += low <= implied <= high
    chances = sorted(float(binom.cdf(covered[one], campaigns, 0.95)) for one in ("uniform", "density"))
    assert chances[0] > 0.05 / 2 and chances[1] > 0.05, covered
    assert plain < 0.5 * campaigns  # the control: without weights a sample by density does not tell the population's


def test_weights_of_one_are_wilsons_interval() -> None:
    found = weighted_rate([1] * 7 + [0] * 43, [1.0] * 50)
    assert (found.rate, found.low, found.high) == pytest.approx((0.14, *wilson_ends(7, 50)))


def test_two_strata_are_added_by_their_shares() -> None:
    # 90 % of the population by 10 cases, 10 % by 30: Cochran's estimate, and Newcombe's square-and-add by hand
    found = weighted_rate([1] + [0] * 9 + [1] * 20 + [0] * 10, [9.0] * 10 + [1 / 3] * 30)
    assert found.rate == pytest.approx(0.9 * 0.1 + 0.1 * 2 / 3)
    ends = [wilson_ends(1, 10), wilson_ends(20, 30)]
    low = found.rate - np.hypot(0.9 * (0.1 - ends[0][0]), 0.1 * (2 / 3 - ends[1][0]))
    high = found.rate + np.hypot(0.9 * (ends[0][1] - 0.1), 0.1 * (ends[1][1] - 2 / 3))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_clusters_widen_and_scale_of_weights_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    failed = np.repeat(rng.random(40) < 0.4, 5)
    weights = np.repeat(rng.choice([0.5, 2.0], 40), 5)
    clusters = np.repeat(np.arange(40), 5)
    alone, together = weighted_rate(failed, weights), weighted_rate(failed, weights, clusters)
    assert together.high - together.low > 1.8 * (alone.high - alone.low) and together.rate == alone.rate
    scaled = weighted_rate(failed, 7 * weights, clusters)
    assert (scaled.rate, scaled.low, scaled.high) == pytest.approx((together.rate, together.low, together.high))


def test_rates_at_the_ends() -> None:
    none = weighted_rate([0] * 30, [1.0] * 30)
    assert none.rate == 0 and none.low == 0 and none.high == pytest.approx(wilson_ends(0, 30)[1])
    assert weighted_rate([1, 1], [1.0, 3.0]).high == 1.0
    assert np.isnan(weighted_rate([], []).rate)
