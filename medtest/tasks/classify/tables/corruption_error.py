"""Corruption error over levels of severity: ``tables/corruption_error.csv``.

D. Hendrycks and T. Dietterich (ICLR 2019, section 4.1): for a corruption c, CE_c = Σ_s E_s / Σ_s E_s of a reference
system, and mCE is the mean of CE_c over the types. Relative CE takes the error on the source images off both sums:
Σ_s (E_s - E) / Σ_s (E_s - E) of the reference. Nothing is divided by zero: such a value is empty. With several labels
an image E is the share of wrong decisions, else that of wrong labels.

Types are the relations with severities and without frames; ``overall`` is the mean of the types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.core.cases import UNCHANGED
from medtest.results.columns import columns_in
from medtest.results.cube.axes import OVERALL, Axes, axes
from medtest.results.published.retraining import ORIGINAL
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables import auroc
from medtest.tasks.classify.tables.cells import Cases, CellPool, cases_of
from medtest.tasks.classify.tables.decisions import Floats

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = columns_in(__file__, "corruption_error")
_NUMBERS = ("error", "error_low", "error_high", "source_error", "reference_error", "ce", "relative_ce")


def corruption_error_table(
    records: Records,
    place: Axes | None = None,
    cases: Cases | None = None,
    *,
    reference: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return mean errors over the severities of every type, with :data:`COLUMNS`; errors are fractions.

    Args:
        records: Records of one system.
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
        cases: What :func:`medtest.tasks.classify.tables.cells.cases_of` gave for both; None makes it.
        reference: This function's table of the reference system; None leaves ``ce`` and ``relative_ce`` empty.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    if not records.followups.empty:
        given = axes(records) if place is None else place
        types = _types(records, given)
        found = cases or cases_of(records, given)
        for dataset, errors in found.by_dataset(_Errors.of).items():
            rows += _rows(dataset, {name: errors[name] for name in types if name in errors}, errors.get(ORIGINAL))
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(_NUMBERS, "float64"))
    return with_reference(table, reference)


def _types(records: Records, place: Axes) -> list[str]:
    """Return the relations with levels: severities above 0, one frame each."""
    frames = records.followups["frame"].to_numpy()
    severity = records.followups["severity"].to_numpy()
    return [
        name
        for number, name in enumerate(place.relations)
        if name != UNCHANGED
        and (severity[place.relation == number] > 0).all()
        and not (frames[place.relation == number] > 0).any()
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Errors:
    """Errors of one relation: the mean over its levels with its draws, and at all levels together."""

    levels: tuple[str, ...]
    cases: int
    mean: float
    draws: Floats
    together: float
    clusters: int

    @classmethod
    def of(cls, pool: CellPool) -> _Errors:
        layout = pool.cases.layout
        with np.errstate(invalid="ignore", divide="ignore"):
            errors, draws = (
                1 - layout.get(one, "share") / layout.get(one, "cases") for one in (pool.totals, pool.draws)
            )
        cases = layout.get(pool.totals, "cases")
        there = np.flatnonzero(cases[:-1] > 0)
        return cls(
            levels=tuple(str(pool.cases.place.severities[level]) for level in there),
            cases=int(cases[-1]),
            mean=float(errors[there].mean()) if there.size else float("nan"),
            draws=draws[:, there].mean(1) if there.size else draws[:, -1],
            together=float(errors[-1]),
            clusters=pool.clusters,
        )


def _rows(dataset: str, types: Mapping[str, _Errors], original: _Errors | None) -> Iterator[dict[str, Any]]:
    known = {name: one for name, one in types.items() if one.levels}
    if not known:
        return
    clean = float("nan") if original is None else original.together
    every = [*known.values()]
    overall = _Errors(
        levels=tuple(dict.fromkeys(level for one in every for level in one.levels)),
        cases=sum(one.cases for one in every),
        mean=float(np.mean([one.mean for one in every])),
        draws=np.mean([one.draws for one in every], axis=0),
        together=float("nan"),
        clusters=every[0].clusters,
    )
    for relation, one in [*known.items(), (OVERALL, overall)]:
        low, high = auroc.ends(one.draws) if one.clusters > 1 else (None, None)
        yield {
            "dataset": dataset,
            "relation": relation,
            "severities": " ".join(one.levels),
            "cases": one.cases,
            "error": round(one.mean, 6),
            "error_low": low,
            "error_high": high,
            "source_error": round(clean, 6),
        }


def with_reference(table: pd.DataFrame, reference: pd.DataFrame | None) -> pd.DataFrame:
    """Return a table of errors relative to another's; types that the other lacks are in no mean.

    Args:
        table: What :func:`corruption_error_table` gave.
        reference: The reference system's table; None empties the columns.
    """
    import pandas as pd

    rows: list[dict[Any, Any]] = table.to_dict("records")
    other = [] if reference is None else reference.to_dict("records")
    beside = {(row["dataset"], row["relation"], row["severities"]): row for row in other}
    ratios: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        row |= {"reference_error": np.nan, "ce": np.nan, "relative_ce": np.nan}
        found = beside.get((row["dataset"], row["relation"], row["severities"]))
        if row["relation"] == OVERALL:
            both = np.array(ratios.get(row["dataset"], [])).reshape(-1, 2)
            row["ce"], row["relative_ce"] = (_mean(both[:, column]) for column in (0, 1))
        elif found is not None:
            row["reference_error"] = found["error"]
            row["ce"] = _ratio(row["error"], found["error"])
            row["relative_ce"] = _ratio(row["error"] - row["source_error"], found["error"] - found["source_error"])
            ratios.setdefault(row["dataset"], []).append((row["ce"], row["relative_ce"]))
    made = pd.DataFrame(rows, columns=list(COLUMNS))
    return made.astype(dict.fromkeys(_NUMBERS, "float64")).round({"ce": 6, "relative_ce": 6})


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _ratio(part: float, whole: float) -> float:
    return part / whole if abs(whole) > 1e-12 else float("nan")
