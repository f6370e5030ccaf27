"""Error rates net of repeats: minus the rate under the same rule on pairs of one prompt.

A repeated picture differs from the first without a cause, and a reader errs. Both are measured on repeats of the
unchanged prompt: the floor of an operator is the rate at which its own metamorphic relation fails on those pairs, for
the same prompts. With one pair of each per prompt the interval of the difference is Tango's for paired proportions;
otherwise clusters are resampled, or if too few of them err, both intervals are combined as Newcombe does. ``p`` is
McNemar's exact test on each prompt's first pairs, with whole clusters exchanged, and ``p_holm`` corrects it for the
number of tests.

An error that occurs at every repeat is in both rates and cancels; ``truth_rate`` is given to reveal it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.results.cube.axes import Floats, Integers
from medtest.results.cube.intervals import FEW_CLUSTERS, joined, paired_score, percentile_ends, wilson_of_rate
from medtest.results.cube.paired import clustered, holm
from medtest.results.cube.power import smallest_difference
from medtest.results.cube.rates import BOOTSTRAP
from medtest.tasks.depict.oracle import WHOLE
from medtest.tasks.depict.rules import ENTITIES, RELATIONS, RULES, STRICT
from medtest.tasks.depict.tables.cases import ALL_KINDS, DepictedCases

NET_COLUMNS = columns_in(__file__, "actesting_net")
PAIRED_SCORE, NEWCOMBE = "paired_score", "newcombe"
NOT_MEASURED = "not_measured"
"""``ci_method`` of a rate without a floor, and so without a net rate: no repeat of its prompts was judged."""


def net_table(cases: DepictedCases) -> pd.DataFrame:
    """Return net error rates of every operator, rule and kind, with exactly :data:`NET_COLUMNS`.

    ``smallest_net`` is the smallest difference that the run detects with a power of 80 % at 5 %, uncorrected.
    ``cannot_tell`` counts the operator's pairs whose change the reader cannot detect, as in the table of error rates.

    Args:
        cases: Cases of one system; if no repeat was judged, net rates are NaN and ``ci_method`` says so.
    """
    repeats = np.flatnonzero(cases.of(UNCHANGED))
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(cases.relations):
        members = np.flatnonzero((cases.relation == number) & cases.paired)
        if not cases.pooled[number] or not members.size:
            continue
        floor = repeats[np.isin(cases.seed[repeats], cases.seed[members]) & cases.paired[repeats]]
        shapes = _shapes(cases, members, floor)
        untold = int((~cases.detectable[members]).sum())
        share = {"cannot_tell": untold, "cannot_tell_rate": _round(untold / members.size)}
        for rule in RULES:
            floors = cases.floors(rule, shapes, floor)
            for kind in ALL_KINDS if rule == STRICT else (WHOLE, ENTITIES, RELATIONS):
                row = _row(cases, members, cases.pair[rule, kind][members], floor, floors[kind])
                truth = cases.truth[kind][members]
                valid = ~np.isnan(truth)
                beside = np.average(truth[valid], weights=cases.weight[members][valid]) if valid.any() else math.nan
                if row:
                    keys = {"relation": name, "rule": rule, "kind": kind}
                    rows.append({**keys, **row, "truth_rate": _round(beside), **share})
    frame = pd.DataFrame(rows, columns=list(NET_COLUMNS))
    tested = np.flatnonzero(frame["p"].notna().to_numpy())
    corrected = np.full(len(frame), np.nan)
    corrected[tested] = holm([float(p_value) for p_value in frame["p"].to_numpy(dtype=np.float64)[tested]])
    return frame.assign(p_holm=corrected)


def _shapes(cases: DepictedCases, members: Integers, floor: Integers) -> Integers:
    """Return for each pair of one prompt the shape of the operator's change of that prompt."""
    shape = np.zeros(int(cases.seed.max()) + 1, np.int64)
    shape[cases.seed[members]] = cases.shape[members]
    return shape[cases.seed[floor]]


def _row(cases: DepictedCases, members: Integers, wrong: Floats, floor: Integers, floors: Floats) -> dict[str, Any]:
    """Return the figures of an operator under a rule; empty if it has no case, without a net if no repeat has one."""
    if np.isnan(floors).all():
        return _without_floor(cases, members, wrong)
    seeds = cases.seed[floor][~np.isnan(floors)]
    usable = ~np.isnan(wrong) & np.isin(cases.seed[members], seeds)
    members, wrong = members[usable], wrong[usable]
    matching = ~np.isnan(floors) & np.isin(cases.seed[floor], cases.seed[members])
    floor, floors = floor[matching], floors[matching]
    if not members.size:
        return {}
    sums = [_sums(cases, rows, values) for rows, values in ((members, wrong), (floor, floors))]
    rate, rate0 = (float(side[:, 0].sum() / side[:, 1].sum()) for side in sums)
    net = _first(cases, members, wrong, floor, floors)
    alone = members.size == floor.size == len(np.unique(cases.cluster[members])) and not cases.weighted
    low, high, method = _interval(cases, sums, (rate, rate0), net if alone else None)
    return {
        "cases": int(members.size),
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


def _without_floor(cases: DepictedCases, members: Integers, wrong: Floats) -> dict[str, Any]:
    """Return the rate of an operator whose prompts have no judged repeat."""
    judged = ~np.isnan(wrong)
    if not judged.any():
        return {}
    rate = np.average(wrong[judged], weights=cases.weight[members][judged])
    unknown = dict.fromkeys(("unchanged_rate", "net", "ci_low", "ci_high", "p", "smallest_net"), math.nan)
    return {
        "cases": int(judged.sum()),
        "rate": _round(float(rate)),
        "unchanged_cases": 0,
        "ci_method": NOT_MEASURED,
        **unknown,
    }


def _sums(cases: DepictedCases, rows: Integers, wrong: Floats) -> Floats:
    """Return weighted errors and cases by cluster, clusters × 2."""
    weight = cases.weight[rows]
    columns = [np.bincount(cases.cluster[rows], values, cases.clusters) for values in (wrong * weight, weight)]
    return np.stack(columns, axis=1)


def _first(
    cases: DepictedCases, members: Integers, wrong: Floats, floor: Integers, floors: Floats
) -> NDArray[np.int64]:
    """Return by cluster the net number of prompts that err: only under the operator, minus only when repeated."""
    size = int(cases.seed.max()) + 1
    sides = []
    for rows, values in ((members, wrong), (floor, floors)):
        first = np.full(size, np.nan)
        first[cases.seed[rows][::-1]] = values[::-1]  # the first of each prompt is written last
        sides.append(first)
    difference = sides[0] - sides[1]
    valid = ~np.isnan(difference)
    cluster = np.zeros(size, np.int64)
    cluster[cases.seed[members]] = cases.cluster[members]
    total = np.bincount(cluster[valid], difference[valid], cases.clusters)
    return np.asarray(np.rint(total[np.unique(cluster[valid])]), dtype=np.int64)


def _interval(
    cases: DepictedCases, sums: list[Floats], pair_rates: tuple[float, float], pairs: NDArray[np.int64] | None
) -> tuple[float, float, str]:
    if pairs is not None:
        return *paired_score(int((pairs > 0).sum()), int((pairs < 0).sum()), len(pairs)), PAIRED_SCORE
    if not any(_few(side) for side in sums):
        drawn = cases.resampler.drawn(np.concatenate(sums, axis=1))
        with np.errstate(invalid="ignore", divide="ignore"):
            ends = percentile_ends(drawn[:, 0] / drawn[:, 1] - drawn[:, 2] / drawn[:, 3])
        return *ends, BOOTSTRAP
    ends, ends0 = (
        wilson_of_rate(rate, _effective(side[side[:, 1] > 0, 1])) for rate, side in zip(pair_rates, sums, strict=True)
    )
    return *joined(pair_rates[0], ends, pair_rates[1], ends0), NEWCOMBE


def _effective(weights: Floats) -> float:
    """Return the effective number of equal clusters for these weights (L. Kish, Survey Sampling, 1965)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def _few(sums: Floats) -> bool:
    hit, missed = int((sums[:, 0] > 0).sum()), int((sums[:, 0] < sums[:, 1]).sum())
    return min(hit, missed) < FEW_CLUSTERS


def _round(value: float) -> float:
    return round(float(value), 6)
