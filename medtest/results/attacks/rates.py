"""Accuracy and fooling rate under attack: ``tables/attacks.csv``, one row for each setting.

``accuracy`` is the share of right answers (for several labels the share of right decisions, for masks the Dice score).
``clean`` is the same on the sources of those cases. ``fooling``, the fooling rate, is the share of answers (or
decisions) that differ from those to the source. Intervals follow :mod:`medtest.results.cube.rates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd
from medtest.core.tasks.results import Graded
from medtest.results.attacks.checking.checks import Warn
from medtest.results.attacks.settings import Setting
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, Axes
from medtest.results.cube.intervals import with_ends
from medtest.results.cube.rates import Rates, rates
from medtest.results.records.records_io import Records

COLUMNS = columns_in(__file__, "attacks")
_MEANS = ("linf", "l2", "ssim", "loss_before", "loss_after", "zero_gradient", "queries")
_AREAS = ("auroc", "auroc_low", "auroc_high")


def attacks_table(
    records: Records, place: Axes, settings: Sequence[Setting], graded: Graded, warn: Warn
) -> pd.DataFrame:
    """Return the table, with :data:`COLUMNS`; shares are fractions.

    Args:
        records: Records of one system, with follow-ups.
        place: Axes of the records.
        settings: Settings from :func:`medtest.results.attacks.settings.settings_of`.
        graded: Correctness of the answers.
        warn: Function from :func:`medtest.results.attacks.checking.checks.warner`.
    """
    right = rates(place, graded.right, graded.whole, independent=True)
    before = rates(place, graded.before, graded.whole, resampled=np.zeros(_shape(place), bool))
    fooled = rates(place, graded.changed, graded.compared, independent=True)
    averaged = {name: records.floats(name) for name in _MEANS}
    error = np.asarray(records.followups["verdict"].astype(str) == "ERROR", dtype=bool)
    areas = _areas(graded)
    rows = []
    for dataset, name in enumerate((*place.datasets, ALL)):
        for setting in settings:
            inside = setting.rows if name == ALL else setting.inside(place, dataset)
            if not inside.size:
                continue
            at = (dataset, place.relations.index(setting.relation), place.severities.index(setting.severity))
            judged = graded.whole[inside] > 0
            broken = int(error[inside].sum())
            row: dict[str, Any] = {
                "dataset": name,
                "relation": setting.relation,
                "severity": str(setting.severity),
                "role": setting.role,
                "part": setting.part,
                "crafted_on": setting.crafted_on,
                "epsilon": setting.epsilon,
                "norm": setting.norm,
                "steps": setting.steps,
                "cases": int(judged.sum()),
                "measure": graded.measure,
                "clean": round(float(before.rate[at]), 6),
                **_with_ends("accuracy", right, at),
                **_with_ends("fooling", fooled, at),
                **areas.get((name, setting.relation, str(setting.severity)), dict.fromkeys(_AREAS)),
                **{key: _mean(values[inside]) for key, values in averaged.items()},
                "checks_failed": " ".join(warn(setting.relation, str(setting.severity))),
                "errors": broken,
                "skipped": int((~judged).sum()) - broken,
            }
            rows.append(row)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = ("epsilon", "steps", *_AREAS, *_MEANS)
    return table.astype(dict.fromkeys(numbers, "float64"))


def _shape(place: Axes) -> tuple[int, int]:
    return len(place.relations), len(place.severities) + 1


def _with_ends(name: str, measured: Rates, at: tuple[int, int, int]) -> dict[str, float | None]:
    return with_ends(name, (measured.rate[at], measured.low[at], measured.high[at]))


def _mean(values: NDArray[np.float64]) -> float:
    valid = values[~np.isnan(values)]
    return round(float(valid.mean()), 6) if valid.size else float("nan")


def _areas(graded: Graded) -> dict[tuple[str, str, str], dict[str, Any]]:
    if graded.areas is None:
        return {}
    return {
        (str(row["dataset"]), str(row["relation"]), str(row["severity"])): {name: row[name] for name in _AREAS}
        for row in graded.areas.to_dict("records")
    }
