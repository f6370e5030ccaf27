"""Density of pools: levels, draws that favour levels, and that weights give the population's rate back."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from medtest.core.scenes import Entity, Pool, pool_of
from medtest.language.captions.density import LEVELS, draw_by_density, draw_uniform, level
from medtest.phantoms.prompts import make
from medtest.results.cube.axes import Places
from medtest.results.cube.rates import rates
from medtest.results.cube.resampling import Resampler

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
def test_entities_joined_by_one_relation_fewer_have_the_level_of_their_number(count: int) -> None:
    assert level(chain(count, count - 1)) == min(5, count)


def test_numbers_and_attributes_do_not_count() -> None:
    assert level(pool_of([Entity(name="dog", count=9, attributes=("red", "small"))])) == 1


levels_ = st.lists(st.sampled_from(LEVELS), min_size=1, max_size=80)


@given(levels=levels_, count=st.integers(1, 90), seed=st.integers(0, 99), shares=st.permutations([0.0, 1, 1, 2, 5]))
def test_draws_by_density(levels: list[int], count: int, seed: int, shares: list[float]) -> None:
    names, share_of_level = [f"s{at}" for at in range(len(levels))], dict(zip(LEVELS, shares, strict=True))
    drawn = draw_by_density(names, levels, count, seed, share_of_level)
    reachable = [level for level in levels if share_of_level[level] > 0]
    assert len(drawn.chosen) == min(count, len(reachable)) == len(set(drawn.chosen))
    drawn_of_level, reachable_of_level = Counter(levels[at] for at in drawn.chosen), Counter(reachable)
    assert all(drawn_of_level[level] <= reachable_of_level[level] for level in LEVELS)
    assert count < len(reachable_of_level) or all(
        drawn_of_level[level] for level in reachable_of_level
    )  # each level is represented
    for at, weight in zip(drawn.chosen, drawn.weights, strict=True):
        of_level = reachable_of_level[levels[at]] / len(reachable)
        assert weight == pytest.approx(of_level / (drawn_of_level[levels[at]] / len(drawn.chosen)))
    if count >= len(reachable_of_level):
        assert sum(drawn.weights) == pytest.approx(len(drawn.chosen))
    assert drawn == draw_by_density(names, levels, count, seed, share_of_level)


def test_shares_are_kept_where_levels_have_enough() -> None:
    levels = [level for level in LEVELS for _ in range(100)]
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


def interval(failed: np.ndarray, weights: tuple[float, ...], name: str) -> tuple[float, float]:
    """Return the ends of the interval that tables give weighted cases, one cluster for each case."""
    count, weight = len(failed), np.asarray(weights)
    alone = np.arange(count)
    place = Places(
        shape=(1, 1), dataset=0 * alone, cell=0 * alone, cluster=alone, resamplers=(Resampler(count, name, 400),)
    )
    result = rates(place, failed * weight, weight)
    return float(result.low[0, 0, 0]), float(result.high[0, 0, 0])


@pytest.mark.slow
def test_both_samplings_cover_the_implied_rate_where_errors_grow_with_clutter() -> None:
    # A service drops the last thing at 0.1 for each beyond the first; the population's rate follows by arithmetic.
    # Coverage may not be below 95 %: one-sided binomial tests, by Holm over the two.
    pools = [make(at, 3, most=6) for at in range(1200)]
    levels = [level(pool) for pool in pools]
    errs = np.array([0.1 * (len(pool.entities) - 1) for pool in pools])
    implied = float(errs.mean())
    names, shares = [str(at) for at in range(len(pools))], dict(zip(LEVELS, (1.0, 1.0, 2.0, 3.0, 6.0), strict=True))
    campaigns, count = 200, 200
    covered: Counter[str] = Counter()
    for campaign in range(campaigns):
        rng = np.random.default_rng([20, campaign])
        for sampling in ("uniform", "density"):
            if sampling == "uniform":
                drawn = draw_uniform(names, count, campaign)
            else:
                drawn = draw_by_density(names, levels, count, campaign, shares)
            failed = rng.random(count) < errs[list(drawn.chosen)]
            low, high = interval(failed, drawn.weights, f"campaign {campaign}")
            covered[sampling] += low <= implied <= high
        low, high = interval(failed, (1.0,) * count, f"campaign {campaign}")
        covered["density, plain"] += low <= implied <= high
    chances = sorted(float(binom.cdf(covered[sampling], campaigns, 0.95)) for sampling in ("uniform", "density"))
    assert chances[0] > 0.05 / 2 and chances[1] > 0.05, covered
    assert covered["density, plain"] < 0.5 * campaigns, covered  # the control: without weights it is another rate
