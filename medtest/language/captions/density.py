"""Density of a pool, in five levels of content, and draws of seeds by level.

ACTesting (section 3.1) guides its tests by an "adaptability density" d of an exercise, which it does not define, and
whose direction it gives both ways: "the higher the adaptability density is, the better the evaluation performance is",
and in formulas, twice, that performance decreases with d. Here d depends on the prompt only, is known before any system
is called, and follows the formulas and section 2.3 (realism decreases with the number of entities and relationships)::

    d(μ) = min(5, max(1, ⌈(E + R) / 2⌉))        E entities, R triples of the pool

so that n entities connected by n − 1 relations have level n. Numbers ("three dogs") and attributes are not part of the
paper's pools and do not count.

Equation 2 draws a level by h and then an exercise by p within the level; the suite sets h. A seed drawn this way has a
weight in the population (:attr:`Draw.weights`), and weighted rates estimate those of the population for any h.
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
    """Return a pool's density, 1 (hardly any content) to 5."""
    return min(LEVELS[-1], max(LEVELS[0], math.ceil((len(pool.entities) + len(pool.triples)) / 2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Sample of a population.

    Attributes:
        chosen: Indices into the population, ascending.
        weights: Weight of each, its level's share of the population divided by that of the sample: 1 for all if every
            seed
            was equally likely, so that they sum to the number drawn.
    """

    chosen: tuple[int, ...]
    weights: tuple[float, ...]


def draw_uniform(names: Sequence[str], count: int, seed: int) -> Draw:
    """Draw without replacement, every seed equally likely.

    Args:
        names: A distinct name for each seed of the population.
        count: Number of seeds; all if there are fewer.
        seed: Seed of the suite.
    """
    chosen = tuple(sorted(_order(names, seed)[:count]))
    return Draw(chosen=chosen, weights=(1.0,) * len(chosen))


def draw_by_density(
    names: Sequence[str], levels: Sequence[int], count: int, seed: int, shares: Mapping[int, float]
) -> Draw:
    """Draw a level by its share h, then a seed of it with equal probability (equation 2), as strata.

    Each level gets its share of the draws, to within one, and at most as many as it has; the remainder is distributed
    among the others, as are the shares of empty levels.

    Args:
        names: A distinct name for each seed of the population.
        levels: Density of each.
        count: Number of seeds; all if there are fewer.
        seed: Seed of the suite.
        shares: h of each level, in any unit; a level with share 0 is never drawn and not represented.

    Returns:
        The draw; weights are over the levels that can be drawn.
    """
    available = Counter(value for value in levels if shares.get(value, 0.0) > 0)
    quotas = _allotted({value: shares[value] for value in sorted(available)}, available, count)
    remaining = dict(quotas)
    chosen = []
    for at in _order(names, seed):
        if remaining.get(levels[at], 0):
            remaining[levels[at]] -= 1
            chosen.append(at)
    population, drawn = sum(available[value] for value in available), sum(quotas.values())
    weight = {value: (available[value] / population) / (quotas[value] / drawn) for value in available if quotas[value]}
    chosen.sort()
    return Draw(chosen=tuple(chosen), weights=tuple(weight[levels[at]] for at in chosen))


def _order(names: Sequence[str], seed: int) -> list[int]:
    """Return indices in an order that depends only on seed and names; a larger sample contains a smaller one."""
    keys = [hashlib.sha256(f"{seed} {name}".encode()).digest() for name in names]
    return sorted(range(len(names)), key=keys.__getitem__)


def _allotted(shares: Mapping[int, float], available: Mapping[int, int], count: int) -> dict[int, int]:
    """Return the number drawn from each level: by largest remainders, at least one of each if possible."""
    quotas = dict.fromkeys(shares, 0)
    open_levels = set(shares)
    while open_levels and (remaining := count - sum(quotas.values())) > 0:
        total = sum(shares[value] for value in open_levels)
        ideal = {value: remaining * shares[value] / total for value in open_levels}
        extra = {value: int(ideal[value]) for value in open_levels}
        by_remainder = sorted(open_levels, key=lambda value: (extra[value] - ideal[value], quotas[value], value))
        for number in by_remainder[: remaining - sum(extra.values())]:
            extra[number] += 1
        for number in open_levels:
            quotas[number] = min(available[number], quotas[number] + extra[number])
        open_levels = {value for value in open_levels if quotas[value] < available[value]}
    for number in quotas:  # every available level is represented, or its part of the population would be missing
        richest = max(quotas, key=lambda other: quotas[other])
        if quotas[number] == 0 and quotas[richest] > 1:
            quotas[number], quotas[richest] = 1, quotas[richest] - 1
    return quotas
