"""Table 5 of Xu et al. (Medical Image Analysis, 2021) from records: accuracy of networks with and without a defence.

A row for ``None`` (the undefended network on clean images), for ``Attack`` (the same under PGD, ε = 4/255, 4 steps) and
for each defence (under that attack, crafted on the defended network itself). Added to the paper's columns: the accuracy
on clean images, under ``strongest`` and under attacks crafted on the undefended network (transfer), and sensitivity,
specificity and balanced accuracy on the row's images. Accuracy is the share of right answers; for multi-label tasks the
share of right decisions, as in the paper.

Changes are paired by seed. Intervals of accuracies follow :mod:`medtest.results.cube.rates`; those of changes are 95 %
percentile bootstraps over clusters. A gain under PGD of which less than half remains under ``strongest`` is called
masked: the defence hides the gradient but does not protect the diagnosis.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from medtest.core.deferred import pd
from medtest.core.tasks.base import Task
from medtest.results.attacks.diagnosis import diagnosis_of, place_of, warnings_of
from medtest.results.columns import columns_in
from medtest.results.cube.intervals import percentile_ends, with_ends
from medtest.results.cube.rates import rates
from medtest.results.published.published_attacks import defended
from medtest.results.published.published_labels import BENCHMARKED, flips
from medtest.results.records.records_io import Records

COLUMNS = columns_in(__file__, "defences")
CLEAN, PGD, STRONGEST, TRANSFER = "clean", "pgd", "strongest", "transfer"
ROLES = (CLEAN, PGD, STRONGEST, TRANSFER)
EPSILON, STEPS = 4.0, 4
"""Setting of table 5: ε in levels of 255, and steps of PGD."""
NONE, ATTACK = "None", "Attack"
METHODS: Mapping[str, str] = {"standard": "Standard", "mpadvt": "MPAdvT", "maadvt": "MAAdvT"}
"""Names of defences in recipes, with their names in table 5 of the paper, in its order."""
KEPT = 0.5
"""Share of the gain under PGD that must remain under ``strongest``."""
_SEED = ["dataset", "seed_id", "item"]
_COUNTS = ("value", "answer", "expected", "positives", "found", "negatives", "cleared", "chance")
_WHERE: Mapping[str, str] = {CLEAN: "clean images", PGD: "attacked images", STRONGEST: "images under strongest"}
"""Names of the image sets in warnings."""


@dataclass(frozen=True, kw_only=True)
class DefendedWeights:
    """Facts about weights from adversarial training.

    Attributes:
        name: ``standard``, ``mpadvt`` or ``maadvt``.
        variant: Variant of the defence: ``paper``, ``released``.
        undefended: SHA-256 of the initial weights of the training.
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
        task: Task of the run.
        records: Its records.
        relations: By role (:data:`PGD`, :data:`STRONGEST`, :data:`TRANSFER`) the ids of its
            relations, each with the number of steps that counts, or None for any.
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
        """True if the run has cases under PGD at the setting of table 5."""
        return bool((self.cases["role"] == PGD).any())


def _cases(run: WeightsRun) -> pd.DataFrame:
    tables = [pd.DataFrame(columns=[*_SEED, "cluster", "role", *_COUNTS])]
    for role, frame in _frames(run):
        graded = run.task.scoring.decided(run.records, frame)
        if graded is None:
            continue
        keys = frame[[*_SEED, "cluster"]].astype(object).where(frame[[*_SEED, "cluster"]].notna(), "").astype(str)
        valid = graded["value"].notna().to_numpy(dtype=bool)
        tables.append(pd.concat([keys, graded], axis=1).assign(role=role).loc[valid])
    return pd.concat([table for table in tables if len(table)] or tables, ignore_index=True)


def _frames(run: WeightsRun) -> Iterator[tuple[str, pd.DataFrame]]:
    yield CLEAN, run.records.sources.reset_index(drop=True)
    followups = run.records.followups.reset_index(drop=True)
    if "params" not in followups.columns or followups.empty:
        return
    names = followups["relation"].astype(str).to_numpy()
    for role, relations in run.relations.items():
        matches = np.isin(names, list(relations))
        rows = [
            int(row) for row in np.flatnonzero(matches) if _at(followups["params"].iloc[row], relations[names[row]])
        ]
        if rows:
            yield role, followups.iloc[rows].reset_index(drop=True)


def _at(params: object, steps: int | None) -> bool:
    """Return True if parameters match the setting of table 5."""
    values = json.loads(params) if isinstance(params, str) and params else {}
    return values.get("epsilon") == EPSILON and (steps is None or values.get("steps") == steps)


def defence_table(runs: Sequence[WeightsRun], defended_weights: Mapping[str, DefendedWeights]) -> pd.DataFrame:
    """Return the table, with exactly :data:`COLUMNS`; rates are fractions, changes are differences of fractions.

    Args:
        runs: Runs under attack, of undefended and defended networks, and runs with sequences of small perturbations,
            which give the flip probability; of runs with equal suite and weights the last counts.
        defended_weights: Facts about defended weights, by their SHA-256.
    """
    newest = {(run.suite, run.weights): run for run in runs if run.judged}
    turned = {
        run.weights: probability
        for run in runs
        if (probability := run.task.scoring.flip_probability(run.records)) is not None
    }
    rows: list[dict[str, object]] = []
    for (suite, weights), run in newest.items():
        if weights in defended_weights:
            continue
        rows += _undefended_rows(run, turned.get(weights))
        sides = [
            (defended_weights[digest], other)
            for (under, digest), other in newest.items()
            if under == suite and digest in defended_weights
        ]
        for facts, defended_run in sorted(sides, key=lambda side: (list(METHODS).index(side[0].name), side[0].variant)):
            if facts.undefended == weights:
                rows.append(_defended_row(run, defended_run, facts, turned.get(defended_run.weights)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _undefended_rows(run: WeightsRun, flips: float | None) -> Iterator[dict[str, object]]:
    measured = _rates(run.cases)
    common = {**_common(run), **_beside(measured, (CLEAN,))}
    yield {
        **common,
        **_headline(measured, CLEAN),
        "defence": NONE,
        "published_percent": _published(run.family, NONE),
        **_told_apart(run.cases, CLEAN),
        "warnings": "; ".join(warnings_of(run.cases, {CLEAN: _WHERE[CLEAN]})),
        "flip_probability": flips,
        "published_flip_percent": _published_flips(run.family, after=False),
    }
    yield {
        **common,
        **_headline(measured, PGD),
        **_beside(measured, (STRONGEST,)),
        **_told_apart(run.cases, PGD),
        "defence": ATTACK,
        "published_percent": _published(run.family, ATTACK),
    }


def _defended_row(
    undefended: WeightsRun, run: WeightsRun, facts: DefendedWeights, flips: float | None
) -> dict[str, object]:
    measured = _rates(run.cases)
    row = {
        **_common(run),
        **_headline(measured, PGD),
        **_beside(measured, (CLEAN, STRONGEST, TRANSFER)),
        "defence": METHODS[facts.name],
        "variant": facts.variant,
        "published_percent": _published(run.family, METHODS[facts.name]),
        **_told_apart(run.cases, PGD),
        "warnings": "; ".join(warnings_of(run.cases, _WHERE)),
        "flip_probability": flips,
        "published_flip_percent": _published_flips(run.family, after=True) if facts.name == "mpadvt" else None,
    }
    for name, role in (("gain", PGD), ("strongest_gain", STRONGEST), ("clean_change", CLEAN)):
        row |= with_ends(name, _change(undefended.cases, run.cases, role))
    gain, remaining = row["gain"], row["strongest_gain"]
    if isinstance(gain, float) and isinstance(remaining, float):
        row["masked"] = gain > 0 and remaining < KEPT * gain
    return row


def _told_apart(cases: pd.DataFrame, role: str) -> dict[str, object]:
    """Return sensitivity, specificity and balanced accuracy of a role, and balanced accuracy under strongest."""
    diagnosis, worst = (diagnosis_of(cases.loc[cases["role"] == name]) for name in (role, STRONGEST))
    columns: dict[str, object] = {} if diagnosis is None else dict(diagnosis.columns())
    if role == PGD and worst is not None:
        columns |= with_ends("strongest_balanced", worst.balanced)
    return columns


def _common(run: WeightsRun) -> dict[str, object]:
    return {"suite": run.suite, "network": run.family, "weights": run.weights}


def _headline(measured: Mapping[str, Mapping[str, object]], role: str) -> Mapping[str, object]:
    return measured.get(role, {"cases": 0})


def _beside(measured: Mapping[str, Mapping[str, object]], roles: Sequence[str]) -> dict[str, object]:
    ends = {"": "accuracy", "_low": "ci_low", "_high": "ci_high"}
    return {
        f"{role}{end}": measured[role][column] for role in roles if role in measured for end, column in ends.items()
    }


def _rates(cases: pd.DataFrame) -> dict[str, dict[str, object]]:
    """Return the accuracy of each role with cases, as columns of the table."""
    if cases.empty:
        return {}
    place = place_of(cases, ROLES)
    value, whole = cases["value"].to_numpy(np.float64), np.ones(len(cases))
    accuracy = rates(place, value, whole, independent=bool(np.isin(value, (0.0, 1.0)).all()))
    counts = [(number, role, int((cases["role"] == role).sum())) for number, role in enumerate(ROLES)]
    return {
        role: {
            "cases": count,
            "clusters": int(accuracy.clusters[-1, number, 0]),
            "accuracy": round(float(accuracy.rate[-1, number, 0]), 6),
            "ci_low": round(float(accuracy.low[-1, number, 0]), 6),
            "ci_high": round(float(accuracy.high[-1, number, 0]), 6),
        }
        for number, role, count in counts
        if count
    }


def _change(before: pd.DataFrame, after: pd.DataFrame, role: str) -> tuple[float | None, float | None, float | None]:
    """Return the change in a role's accuracy over the seeds that both have, and its interval."""
    sides = [side.loc[side["role"] == role] for side in (before, after)]
    means = [side.groupby([*_SEED, "cluster", "role"], sort=False)["value"].mean().reset_index() for side in sides]
    shared = means[0].merge(means[1], on=[*_SEED, "cluster", "role"], suffixes=("_before", "_after"))
    if shared.empty:
        return None, None, None
    difference = (shared["value_after"] - shared["value_before"]).to_numpy(np.float64)
    place = place_of(shared, (role,))
    draws = np.sum(place.drawn(place.sums(difference, np.ones(len(shared)))), axis=0)[..., 0, 0]
    if len(np.unique(shared["dataset"] + "/" + shared["cluster"])) < 2:
        return float(difference.mean()), None, None
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = percentile_ends(draws[:, 0] / draws[:, 1])
    return float(difference.mean()), low, high


def _published(family: str, defence: str) -> float | None:
    return defended().get(defence, {}).get(BENCHMARKED.get(family, ""))


def _published_flips(family: str, *, after: bool) -> float | None:
    published = next((entry for entry in flips() if entry.model == BENCHMARKED.get(family, "")), None)
    return None if published is None else published.defended_percent if after else published.percent
