"""Error rates net of asking again: minus what the very same rule says of pairs of one prompt.

A picture drawn anew differs from the first without any cause, and a reader errs. Both show where the unchanged prompt
is asked anew: the floor of an operator is what its own metamorphic relation says of those pairs, for the same prompts.
With one pair of each a prompt the interval of the difference is Tango's for paired proportions; else clusters are
resampled, or where too few of them err, both intervals are joined as Newcombe joins his. ``p`` is McNemar's exact test
on each prompt's first pairs, clusters exchanged whole, and ``p_holm`` corrects it for the number of tests.

An error that is drawn anew at each asking is in both rates and cancels: ``truth_rate`` stands beside for it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import UNCHANGED
from medtest.results.columns import columns_in
from medtest.results.cube.axes import Floats, Integers
from medtest.results.cube.intervals import FEW_CLUSTERS, joined, paired_score, percentile_ends, wilson_of_rate
from medtest.results.cube.paired import clustered, holm
from medtest.results.cube.power import smallest_difference
from medtest.results.cube.rates import BOOTSTRAP
from medtest.tasks.depict.oracle import WHOLE
from medtest.tasks.depict.rules import ENTITIES, RELATIONS, RULES, STRICT
from medtest.tasks.depict.tables.cases import ALL_KINDS, DepictedCases

if TYPE_CHECKING:
    import pandas as pd

NET_COLUMNS = columns_in(__file__, "actesting_net")
PAIRED_SCORE, NEWCOMBE = "paired_score", "newcombe"


def net_table(cases: DepictedCases) -> pd.DataFrame:
    """Return net error rates of every operator, rule and kind, with exactly :data:`NET_COLUMNS`.

    ``smallest_net`` is the smallest difference that the run shows with a power of 80 % at 5 %, uncorrected.
    ``cannot_tell`` counts the operator's seen pairs whose change lies on what the reader cannot tell, as the table of
    error rates does.

    Args:
        cases: The cases of one system; the table is empty where no prompt was asked anew.
    """
    import pandas as pd

    again = np.flatnonzero(cases.of(UNCHANGED))
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(cases.relations) if again.size else ():
        own = np.flatnonzero((cases.relation == number) & cases.paired)
        if not cases.pooled[number] or not own.size:
            continue
        floor = again[np.isin(cases.seed[again], cases.seed[own])]
        shapes = _shapes(cases, own, floor)
        untold = int((~cases.told[own]).sum())
        share = {"cannot_tell": untold, "cannot_tell_rate": _round(untold / own.size)}
        for rule in RULES:
            floors = cases.floors(rule, shapes, floor)
            for kind in ALL_KINDS if rule == STRICT else (WHOLE, ENTITIES, RELATIONS):
                row = _row(cases, own, cases.pair[rule, kind][own], floor, floors[kind])
                truth = cases.truth[kind][own]
                known = ~np.isnan(truth)
                beside = np.average(truth[known], weights=cases.weight[own][known]) if known.any() else math.nan
                if row:
                    named = {"relation": name, "rule": rule, "kind": kind}
                    rows.append({**named, **row, "truth_rate": _round(beside), **share})
    made = pd.DataFrame(rows, columns=list(NET_COLUMNS))
    tested = np.flatnonzero(made["p"].notna().to_numpy())
    corrected = np.full(len(made), np.nan)
    corrected[tested] = holm([float(one) for one in made["p"].to_numpy(dtype=np.float64)[tested]])
    return made.assign(p_holm=corrected)


def _shapes(cases: DepictedCases, own: Integers, floor: Integers) -> Integers:
    """Return for each pair of one prompt the shape of the operator's change of that prompt."""
    shape = np.zeros(int(cases.seed.max()) + 1, np.int64)
    shape[cases.seed[own]] = cases.shape[own]
    return shape[cases.seed[floor]]


def _row(cases: DepictedCases, own: Integers, wrong: Floats, floor: Integers, floors: Floats) -> dict[str, Any]:
    """Return the figures of an operator under a rule; nothing where either side has no case."""
    seeds = cases.seed[floor][~np.isnan(floors)]
    kept = ~np.isnan(wrong) & np.isin(cases.seed[own], seeds)
    own, wrong = own[kept], wrong[kept]
    same = ~np.isnan(floors) & np.isin(cases.seed[floor], cases.seed[own])
    floor, floors = floor[same], floors[same]
    if not own.size:
        return {}
    sums = [_sums(cases, rows, values) for rows, values in ((own, wrong), (floor, floors))]
    rate, rate0 = (float(one[:, 0].sum() / one[:, 1].sum()) for one in sums)
    net = _first(cases, own, wrong, floor, floors)
    alone = own.size == floor.size == len(np.unique(cases.cluster[own])) and not cases.weighted
    low, high, method = _interval(cases, sums, (rate, rate0), net if alone else None)
    return {
        "cases": int(own.size),
        "rate": _round(rate),
        "unchanged_cases": int(floor.size),
        "unchanged_rate": _round(rate0),
        "net": _round(rate - rate0),
        "ci_low": _round(low),
        "ci_high": _round(high),
        "ci_method": method,
        "p": clustered(net),
        "smallest_net": _round(smallest_difference(len(net), float(np.mean(net != 0)))),
    }


def _sums(cases: DepictedCases, rows: Integers, wrong: Floats) -> Floats:
    """Return weighted errors and cases by cluster, clusters × 2."""
    weight = cases.weight[rows]
    columns = [np.bincount(cases.cluster[rows], one, cases.clusters) for one in (wrong * weight, weight)]
    return np.stack(columns, axis=1)


def _first(cases: DepictedCases, own: Integers, wrong: Floats, floor: Integers, floors: Floats) -> NDArray[np.int64]:
    """Return by cluster how many prompts err under the operator alone less those that err asked anew alone."""
    size = int(cases.seed.max()) + 1
    sides = []
    for rows, values in ((own, wrong), (floor, floors)):
        first = np.full(size, np.nan)
        first[cases.seed[rows][::-1]] = values[::-1]  # the first of each prompt is written last
        sides.append(first)
    difference = sides[0] - sides[1]
    there = ~np.isnan(difference)
    cluster = np.zeros(size, np.int64)
    cluster[cases.seed[own]] = cases.cluster[own]
    total = np.bincount(cluster[there], difference[there], cases.clusters)
    return np.asarray(np.rint(total[np.unique(cluster[there])]), dtype=np.int64)


def _interval(
    cases: DepictedCases, sums: list[Floats], both: tuple[float, float], pairs: NDArray[np.int64] | None
) -> tuple[float, float, str]:
    if pairs is not None:
        return *paired_score(int((pairs > 0).sum()), int((pairs < 0).sum()), len(pairs)), PAIRED_SCORE
    if not any(_few(one) for one in sums):
        drawn = cases.resampler.drawn(np.concatenate(sums, axis=1))
        with np.errstate(invalid="ignore", divide="ignore"):
            ends = percentile_ends(drawn[:, 0] / drawn[:, 1] - drawn[:, 2] / drawn[:, 3])
        return *ends, BOOTSTRAP
    ends, ends0 = (
        wilson_of_rate(rate, _effective(one[one[:, 1] > 0, 1])) for rate, one in zip(both, sums, strict=True)
    )
    return *joined(both[0], ends, both[1], ends0), NEWCOMBE


def _effective(weights: Floats) -> float:
    """Return how many equal clusters these weights are worth (L. Kish, Survey Sampling, 1965)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def _few(sums: Floats) -> bool:
    hit, missed = int((sums[:, 0] > 0).sum()), int((sums[:, 0] < sums[:, 1]).sum())
    return min(hit, missed) < FEW_CLUSTERS


def _round(value: float) -> float:
    return round(float(value), 6)
