"""Density of a pool: five levels of how much a prompt says, and draws of seeds that favour levels.

ACTesting (section 3.1) guides its tests by an "adaptability density" d of an exercise, which it leaves open, and whose
direction it gives both ways: "the higher the adaptability density is, the better the evaluation performance is", and
in formulas, twice, that performance is lower where d is higher. Here d is of the prompt alone, known before anything
is asked, and follows the formulas and section 2.3 (realism goes down as entities and relationships go up)::

    d(μ) = min(5, max(1, ⌈(E + R) / 2⌉))        E entities, R triples of the pool

so that n things held together by n − 1 relations are of level n. How a system copes with a level is what is measured.
Numbers ("three dogs") and attributes are no part of the paper's pools and do not count.

Equation 2 draws a level by h and then an exercise by p among those of the level; h is the suite's to say. A seed that
was drawn so stands for as many of the population as :attr:`Draw.weights` says, and weighted rates estimate those of the
population, whichever h was.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medtest.core.scenes import Pool

LEVELS: tuple[int, ...] = (1, 2, 3, 4, 5)


def level(pool: Pool) -> int:
    """Return a pool's density, 1 (hardly anything is said) to 5."""
    return min(LEVELS[-1], max(LEVELS[0], math.ceil((len(pool.entities) + len(pool.triples)) / 2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Some of a population.

    Attributes:
        chosen: Positions in the population, ascending.
        weights: For each of them, its share of the population divided by its share of the sample, by level: 1 for all
            where every seed was as likely as any other, so that they sum to the number drawn.
    """

    chosen: tuple[int, ...]
    weights: tuple[float, ...]


def draw_uniform(names: Sequence[str], count: int, seed: int) -> Draw:
    """Draw without replacement, every seed as likely as any other.

    Args:
        names: A name of each seed of the population, distinct.
        count: How many; all of them where there are fewer.
        seed: The suite's seed.
    """
    chosen = tuple(sorted(_order(names, seed)[:count]))
    return Draw(chosen=chosen, weights=(1.0,) * len(chosen))


def draw_by_density(
    names: Sequence[str], levels: Sequence[int], count: int, seed: int, shares: Mapping[int, float]
) -> Draw:
    """Draw a level by its share h, then a seed of it, every one as likely as any other (equation 2), as strata.

    Each level gets its share of the draws, to within one, and no more than it has; what it lacks others get. Shares of
    levels that are empty go to the others.

    Args:
        names: A name of each seed of the population, distinct.
        levels: The density of each.
        count: How many; all of them where there are fewer.
        seed: The suite's seed.
        shares: h of each level, in any unit; a level of share 0 is never drawn and not represented.

    Returns:
        The draw; weights are over the levels that can be drawn.
    """
    there = Counter(one for one in levels if shares.get(one, 0.0) > 0)
    taken = _allotted({one: shares[one] for one in sorted(there)}, there, count)
    left = dict(taken)
    chosen = []
    for at in _order(names, seed):
        if left.get(levels[at], 0):
            left[levels[at]] -= 1
            chosen.append(at)
    population, drawn = sum(there[one] for one in there), sum(taken.values())
    weight = {one: (there[one] / population) / (taken[one] / drawn) for one in there if taken[one]}
    chosen.sort()
    return Draw(chosen=tuple(chosen), weights=tuple(weight[levels[at]] for at in chosen))


def _order(names: Sequence[str], seed: int) -> list[int]:
    """Return positions in an order that depends on seed and names alone; a larger sample holds a smaller one."""
    keys = [hashlib.sha256(f"{seed} {name}".encode()).digest() for name in names]
    return sorted(range(len(names)), key=keys.__getitem__)


def _allotted(shares: Mapping[int, float], there: Mapping[int, int], count: int) -> dict[int, int]:
    """Return how many are drawn of each level: by largest remainders, at least one of each where there are enough."""
    taken = dict.fromkeys(shares, 0)
    open_levels = set(shares)
    while open_levels and (left := count - sum(taken.values())) > 0:
        total = sum(shares[one] for one in open_levels)
        wanted = {one: left * shares[one] / total for one in open_levels}
        given = {one: int(wanted[one]) for one in open_levels}
        by_remainder = sorted(open_levels, key=lambda one: (given[one] - wanted[one], taken[one], one))
        for one in by_remainder[: left - sum(given.values())]:
            given[one] += 1
        for one in open_levels:
            taken[one] = min(there[one], taken[one] + given[one])
        open_levels = {one for one in open_levels if taken[one] < there[one]}
    for one in taken:  # a level that is there is represented, or its part of the population would be left out
        richest = max(taken, key=lambda other: taken[other])
        if taken[one] == 0 and taken[richest] > 1:
            taken[one], taken[richest] = 1, taken[richest] - 1
    return taken
