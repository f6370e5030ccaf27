"""Table 5 of Xu et al. (Medical Image Analysis, 2021) from records: accuracy of networks with and without a defence.

A row for ``None`` (the undefended network on clean images), for ``Attack`` (the same under PGD, ε = 4/255, 4 steps) and
for each defence (under that attack, made on the defended network itself). Beside them what the paper leaves out: the
accuracy on clean images, under ``strongest``, and under attacks made on the undefended network (transfer), and of the
row's own images sensitivity, specificity and balanced accuracy. Accuracy is the share of right answers; of several
labels the share of right decisions, as in the paper.

Changes are paired by seed. Intervals of accuracies follow :mod:`medtest.results.cube.rates`; those of changes are 95 %
percentile bootstraps over clusters. A gain under PGD of which less than half is left under ``strongest`` is called
masked: the defence hides the gradient rather than the diagnosis.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from medtest.core.tasks.base import Task
from medtest.results.attacks.diagnosis import diagnosis_of, place_of, warnings_of
from medtest.results.columns import columns_in
from medtest.results.cube.intervals import percentile_ends
from medtest.results.cube.rates import rates
from medtest.results.published.published_attacks import defended
from medtest.results.published.published_labels import BENCHMARKED, flips
from medtest.results.records.records_io import Records

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = columns_in(__file__, "defences")
CLEAN, PGD, STRONGEST, TRANSFER = "clean", "pgd", "strongest", "transfer"
ROLES = (CLEAN, PGD, STRONGEST, TRANSFER)
EPSILON, STEPS = 4.0, 4
"""At which table 5 is judged: ε in levels of 255, and steps of PGD."""
NONE, ATTACK = "None", "Attack"
METHODS: Mapping[str, str] = {"standard": "Standard", "mpadvt": "MPAdvT", "maadvt": "MAAdvT"}
"""Defences as recipes call them, in the order and the words of the paper's table 5."""
KEPT = 0.5
"""Share of the gain under PGD that must be left under ``strongest``."""
_SEED = ["dataset", "seed_id", "item"]
_COUNTS = ("value", "answer", "expected", "positives", "found", "negatives", "cleared", "chance")
_WHERE: Mapping[str, str] = {CLEAN: "clean images", PGD: "attacked images", STRONGEST: "images under strongest"}
"""Images of which answers are warned of, in words."""


@dataclass(frozen=True, kw_only=True)
class DefendedWeights:
    """What is known of weights that were trained under attack.

    Attributes:
        name: ``standard``, ``mpadvt`` or ``maadvt``.
        variant: Of the defence: ``paper``, ``released``.
        undefended: SHA-256 of the weights that training began with.
    """

    name: str
    variant: str
    undefended: str


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightsRun:
    """One run of a suite on one set of weights.

    Attributes:
        suite: Name and version of the suite.
        family: The network's family.
        weights: SHA-256 of the weights.
        task: What its answers are.
        records: Its records.
        relations: By role (:data:`PGD`, :data:`STRONGEST`, :data:`TRANSFER`) the ids of the relations that play it,
            each with the steps that count, or None for any.
    """

    suite: str
    family: str
    weights: str
    task: Task
    records: Records
    relations: Mapping[str, Mapping[str, int | None]]

    @cached_property
    def cases(self) -> pd.DataFrame:
        """One row for each answered case of a role: seed, cluster, role, ``value`` in [0, 1], ``answer``."""
        return _cases(self)

    @property
    def judged(self) -> bool:
        """Whether it holds cases under PGD at table 5's setting."""
        return bool((self.cases["role"] == PGD).any())


def _cases(run: WeightsRun) -> pd.DataFrame:
    import pandas as pd

    found = [pd.DataFrame(columns=[*_SEED, "cluster", "role", *_COUNTS])]
    for role, frame in _frames(run):
        graded = run.task.decided(run.records, frame)
        if graded is None:
            continue
        made = frame[[*_SEED, "cluster"]].astype(object).where(frame[[*_SEED, "cluster"]].notna(), "").astype(str)
        known = graded["value"].notna().to_numpy(dtype=bool)
        found.append(pd.concat([made, graded], axis=1).assign(role=role).loc[known])
    return pd.concat([one for one in found if len(one)] or found, ignore_index=True)


def _frames(run: WeightsRun) -> Iterator[tuple[str, pd.DataFrame]]:
    yield CLEAN, run.records.sources.reset_index(drop=True)
    followups = run.records.followups.reset_index(drop=True)
    if "params" not in followups.columns or followups.empty:
        return
    names = followups["relation"].astype(str).to_numpy()
    for role, relations in run.relations.items():
        asked = np.isin(names, list(relations))
        rows = [int(row) for row in np.flatnonzero(asked) if _at(followups["params"].iloc[row], relations[names[row]])]
        if rows:
            yield role, followups.iloc[rows].reset_index(drop=True)


def _at(params: object, steps: int | None) -> bool:
    """Say whether parameters are those that table 5 is judged at."""
    given = json.loads(params) if isinstance(params, str) and params else {}
    return given.get("epsilon") == EPSILON and (steps is None or given.get("steps") == steps)


def defence_table(runs: Sequence[WeightsRun], known: Mapping[str, DefendedWeights]) -> pd.DataFrame:
    """Return the table, with exactly :data:`COLUMNS`; rates are fractions, changes differences of such.

    Args:
        runs: Runs under attack, of undefended and defended networks, and runs with sequences of small perturbations,
            whose flip probability stands beside; of equal suites and weights the last counts.
        known: What is known of weights, by their SHA-256.
    """
    import pandas as pd

    newest = {(run.suite, run.weights): run for run in runs if run.judged}
    turned = {run.weights: found for run in runs if (found := run.task.flip_probability(run.records)) is not None}
    rows: list[dict[str, object]] = []
    for (suite, weights), run in newest.items():
        if weights in known:
            continue
        rows += _undefended_rows(run, turned.get(weights))
        sides = [(known[own], one) for (under, own), one in newest.items() if under == suite and own in known]
        for facts, one in sorted(sides, key=lambda side: (list(METHODS).index(side[0].name), side[0].variant)):
            if facts.undefended == weights:
                rows.append(_defended_row(run, one, facts, turned.get(one.weights)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _undefended_rows(run: WeightsRun, flips: float | None) -> Iterator[dict[str, object]]:
    found = _rates(run.cases)
    common = {**_common(run), **_beside(found, (CLEAN,))}
    yield {
        **common,
        **_headline(found, CLEAN),
        "defence": NONE,
        "published_percent": _published(run.family, NONE),
        **_told_apart(run.cases, CLEAN),
        "warnings": "; ".join(warnings_of(run.cases, {CLEAN: _WHERE[CLEAN]})),
        "flip_probability": flips,
        "published_flip_percent": _published_flips(run.family, after=False),
    }
    yield {
        **common,
        **_headline(found, PGD),
        **_beside(found, (STRONGEST,)),
        **_told_apart(run.cases, PGD),
        "defence": ATTACK,
        "published_percent": _published(run.family, ATTACK),
    }


def _defended_row(
    undefended: WeightsRun, run: WeightsRun, facts: DefendedWeights, flips: float | None
) -> dict[str, object]:
    found = _rates(run.cases)
    row = {
        **_common(run),
        **_headline(found, PGD),
        **_beside(found, (CLEAN, STRONGEST, TRANSFER)),
        "defence": METHODS[facts.name],
        "variant": facts.variant,
        "published_percent": _published(run.family, METHODS[facts.name]),
        **_told_apart(run.cases, PGD),
        "warnings": "; ".join(warnings_of(run.cases, _WHERE)),
        "flip_probability": flips,
        "published_flip_percent": _published_flips(run.family, after=True) if facts.name == "mpadvt" else None,
    }
    for name, role in (("gain", PGD), ("strongest_gain", STRONGEST), ("clean_change", CLEAN)):
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), _change(undefended.cases, run.cases, role), strict=True))
    gain, left = row["gain"], row["strongest_gain"]
    if isinstance(gain, float) and isinstance(left, float):
        row["masked"] = gain > 0 and left < KEPT * gain
    return row


def _told_apart(cases: pd.DataFrame, role: str) -> dict[str, object]:
    """Return sensitivity, specificity and balanced accuracy of a role, and the balanced accuracy under strongest."""
    found, worst = (diagnosis_of(cases.loc[cases["role"] == name]) for name in (role, STRONGEST))
    columns: dict[str, object] = {} if found is None else dict(found.columns())
    if role == PGD and worst is not None:
        columns |= worst.balanced.columns("strongest_balanced")
    return columns


def _common(run: WeightsRun) -> dict[str, object]:
    return {"suite": run.suite, "network": run.family, "weights": run.weights}


def _headline(found: Mapping[str, _Rate], role: str) -> dict[str, object]:
    one = found.get(role)
    if one is None:
        return {"cases": 0}
    return {
        "cases": one.cases,
        "clusters": one.clusters,
        "accuracy": one.rate,
        "ci_low": one.low,
        "ci_high": one.high,
    }


def _beside(found: Mapping[str, _Rate], roles: Sequence[str]) -> dict[str, object]:
    there = [(role, found[role]) for role in roles if role in found]
    return {
        name: value
        for role, one in there
        for name, value in ((role, one.rate), (f"{role}_low", one.low), (f"{role}_high", one.high))
    }


@dataclass(frozen=True, kw_only=True)
class _Rate:
    cases: int
    clusters: int
    rate: float
    low: float
    high: float


def _rates(cases: pd.DataFrame) -> dict[str, _Rate]:
    """Return the accuracy of each role that has cases."""
    if cases.empty:
        return {}
    place = place_of(cases, ROLES)
    value, whole = cases["value"].to_numpy(np.float64), np.ones(len(cases))
    found = rates(place, value, whole, independent=bool(np.isin(value, (0.0, 1.0)).all()))
    counted = [(number, role, int((cases["role"] == role).sum())) for number, role in enumerate(ROLES)]
    return {
        role: _Rate(
            cases=count,
            clusters=int(found.clusters[-1, number, 0]),
            rate=round(float(found.rate[-1, number, 0]), 6),
            low=round(float(found.low[-1, number, 0]), 6),
            high=round(float(found.high[-1, number, 0]), 6),
        )
        for number, role, count in counted
        if count
    }


def _change(before: pd.DataFrame, after: pd.DataFrame, role: str) -> tuple[float | None, float | None, float | None]:
    """Return by how much a role's accuracy changed over the seeds that both have, and its interval."""
    sides = [side.loc[side["role"] == role] for side in (before, after)]
    means = [side.groupby([*_SEED, "cluster", "role"], sort=False)["value"].mean().reset_index() for side in sides]
    both = means[0].merge(means[1], on=[*_SEED, "cluster", "role"], suffixes=("_before", "_after"))
    if both.empty:
        return None, None, None
    difference = (both["value_after"] - both["value_before"]).to_numpy(np.float64)
    place = place_of(both, (role,))
    draws = np.sum(place.drawn(place.sums(difference, np.ones(len(both)))), axis=0)[..., 0, 0]
    if len(np.unique(both["dataset"] + "/" + both["cluster"])) < 2:
        return round(float(difference.mean()), 6), None, None
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = percentile_ends(draws[:, 0] / draws[:, 1])
    return round(float(difference.mean()), 6), round(low, 6), round(high, 6)


def _published(family: str, defence: str) -> float | None:
    row = next((one for one in defended() if one.defence == defence), None)
    return None if row is None else row.accuracy_percent.get(BENCHMARKED.get(family, ""))


def _published_flips(family: str, *, after: bool) -> float | None:
    found = next((one for one in flips() if one.model == BENCHMARKED.get(family, "")), None)
    return None if found is None else found.defended_percent if after else found.percent
