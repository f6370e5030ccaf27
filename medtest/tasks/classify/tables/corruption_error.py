"""Corruption error over severity levels: ``tables/corruption_error.csv``.

D. Hendrycks and T. Dietterich (ICLR 2019, section 4.1): for a corruption c, CE_c = Σ_s E_s / Σ_s E_s of a reference
system, and mCE is the mean of CE_c over the types. Relative CE subtracts the error on the source images from both sums:
Σ_s (E_s - E) / Σ_s (E_s - E) of the reference. Values with a zero denominator are empty. E is the share of wrong
labels, with several labels that of wrong decisions.

Types are the relations with severities and without frames; ``overall`` is the mean of the types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.results.columns import columns_in
from medtest.results.cube.axes import OVERALL, Axes, axes
from medtest.results.published.retraining import ORIGINAL
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables import auroc
from medtest.tasks.classify.tables.cells import Cases, CellPool, cases_of
from medtest.tasks.classify.tables.decisions import Floats

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
        place: Axes of these records from :func:`medtest.results.cube.axes.axes`; None computes them.
        cases: Cases from :func:`medtest.tasks.classify.tables.cells.cases_of`; None computes them.
        reference: This function's table for the reference system; None leaves ``ce`` and ``relative_ce`` empty.
    """
    rows: list[dict[str, Any]] = []
    if not records.followups.empty:
        cells = axes(records) if place is None else place
        types = _types(records, cells)
        selected = cases or cases_of(records, cells)
        for dataset, errors in selected.by_dataset(_Errors.of).items():
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
    """Errors of one relation: the mean over its levels with its draws, and the error at all levels together."""

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
                1 - layout.get(sums, "share") / layout.get(sums, "cases") for sums in (pool.totals, pool.draws)
            )
        cases = layout.get(pool.totals, "cases")
        nonempty = np.flatnonzero(cases[:-1] > 0)
        return cls(
            levels=tuple(str(pool.cases.place.severities[level]) for level in nonempty),
            cases=int(cases[-1]),
            mean=float(errors[nonempty].mean()) if nonempty.size else float("nan"),
            draws=draws[:, nonempty].mean(1) if nonempty.size else draws[:, -1],
            together=float(errors[-1]),
            clusters=pool.clusters,
        )


def _rows(dataset: str, types: Mapping[str, _Errors], original: _Errors | None) -> Iterator[dict[str, Any]]:
    measured = {name: errors for name, errors in types.items() if errors.levels}
    if not measured:
        return
    clean = float("nan") if original is None else original.together
    every = [*measured.values()]
    overall = _Errors(
        levels=tuple(dict.fromkeys(level for errors in every for level in errors.levels)),
        cases=sum(errors.cases for errors in every),
        mean=float(np.mean([errors.mean for errors in every])),
        draws=np.mean([errors.draws for errors in every], axis=0),
        together=float("nan"),
        clusters=every[0].clusters,
    )
    for relation, errors in [*measured.items(), (OVERALL, overall)]:
        low, high = auroc.ends(errors.draws) if errors.clusters > 1 else (None, None)
        yield {
            "dataset": dataset,
            "relation": relation,
            "severities": " ".join(errors.levels),
            "cases": errors.cases,
            "error": round(errors.mean, 6),
            "error_low": low,
            "error_high": high,
            "source_error": round(clean, 6),
        }


def with_reference(table: pd.DataFrame, reference: pd.DataFrame | None) -> pd.DataFrame:
    """Return a table of errors relative to another's; types missing from the other are in no mean.

    Args:
        table: Table from :func:`corruption_error_table`.
        reference: Table of the reference system; None empties the columns.
    """
    rows: list[dict[Any, Any]] = table.to_dict("records")
    reference_rows = [] if reference is None else reference.to_dict("records")
    beside = {(row["dataset"], row["relation"], row["severities"]): row for row in reference_rows}
    ratios: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        row |= {"reference_error": np.nan, "ce": np.nan, "relative_ce": np.nan}
        reference_row = beside.get((row["dataset"], row["relation"], row["severities"]))
        if row["relation"] == OVERALL:
            pairs = np.array(ratios.get(row["dataset"], [])).reshape(-1, 2)
            row["ce"], row["relative_ce"] = (_mean(pairs[:, column]) for column in (0, 1))
        elif reference_row is not None:
            row["reference_error"] = reference_row["error"]
            row["ce"] = _ratio(row["error"], reference_row["error"])
            row["relative_ce"] = _ratio(
                row["error"] - row["source_error"], reference_row["error"] - reference_row["source_error"]
            )
            ratios.setdefault(row["dataset"], []).append((row["ce"], row["relative_ce"]))
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(_NUMBERS, "float64")).round({"ce": 6, "relative_ce": 6})


def _mean(values: Floats) -> float:
    valid = values[~np.isnan(values)]
    return float(valid.mean()) if valid.size else float("nan")


def _ratio(part: float, whole: float) -> float:
    return part / whole if abs(whole) > 1e-12 else float("nan")
