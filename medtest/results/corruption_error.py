"""Corruption error over levels of severity: ``tables/corruption_error.csv``.

D. Hendrycks and T. Dietterich (ICLR 2019, section 4.1): for a corruption c, CE_c = Σ_s E_s / Σ_s E_s of a reference
system, and mCE is the mean of CE_c over the types. Relative CE takes the error on the source images off both sums:
Σ_s (E_s - E) / Σ_s (E_s - E) of the reference. Nothing is divided by zero: such a value is empty. With several labels
an image E is the share of wrong decisions, else that of wrong labels.

Types are the relations with severities and without frames; ``overall`` is the mean of the types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.cases import UNCHANGED
from medtest.results import auroc, columns
from medtest.results.cube.axes import Axes, axes
from medtest.results.decisions import Floats
from medtest.results.efr import ALL, OVERALL
from medtest.results.label_cells import Cases, Chosen, cases_of
from medtest.results.label_sums import SumColumns
from medtest.results.records_io import Records
from medtest.results.retraining import ORIGINAL

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = columns.CORRUPTION_ERROR
_NUMBERS = ("error", "error_low", "error_high", "source_error", "reference_error", "ce", "relative_ce")


def corruption_error_table(
    records: Records, place: Axes | None = None, *, reference: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return mean errors over the severities of every type, with :data:`COLUMNS`; errors are fractions.

    Args:
        records: Records of one system.
        place: What :func:`medtest.results.cube.axes.axes` gave for these records; None makes it.
        reference: This function's table of the reference system; None leaves ``ce`` and ``relative_ce`` empty.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    if not records.followups.empty:
        found = cases_of(records, axes(records) if place is None else place)
        types = _types(records, found)
        sets = range(len(found.place.datasets))
        wanted = {**{found.place.datasets[number]: [number] for number in sets}, ALL: list(sets)}
        rows = [row for dataset, numbers in wanted.items() for row in _rows(found, types, dataset, numbers)]
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(_NUMBERS, "float64"))
    return with_reference(table, reference)


def _types(records: Records, found: Cases) -> list[str]:
    """Return the relations with levels: severities above 0, one frame each."""
    frames = records.followups["frame"].to_numpy()
    severity = records.followups["severity"].to_numpy()
    place = found.place
    return [
        name
        for number, name in enumerate(place.relations)
        if name != UNCHANGED
        and (severity[place.relation == number] > 0).all()
        and not (frames[place.relation == number] > 0).any()
    ]


def _rows(found: Cases, types: Sequence[str], dataset: str, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
    layout = SumColumns(classes=len(found.classes.names), multi=found.classes.multi)
    clean = _error([found.choose(ORIGINAL, number) for number in numbers], layout)[0][-1]
    made: list[tuple[dict[str, Any], float, Floats]] = []
    for relation in types:
        parts = [found.choose(relation, number) for number in numbers]
        errors, draws, cases = _error(parts, layout)
        there = np.flatnonzero(cases[:-1] > 0)
        if not there.size:
            continue
        levels = [found.place.severities[level] for level in there]
        mean, drawn = float(errors[there].mean()), draws[:, there].mean(1)
        head = {"dataset": dataset, "relation": relation, "severities": " ".join(str(level) for level in levels)}
        made.append(({**head, "cases": int(cases[-1]), "source_error": round(float(clean), 6)}, mean, drawn))
    clusters = sum(found.resamplers[number].clusters for number in numbers)
    for head, mean, drawn in made:
        yield {**head, "error": round(mean, 6), **_ends(drawn, clusters)}
    if made:
        mean = float(np.mean([one for _, one, _ in made]))
        yield {
            **made[0][0],
            "relation": OVERALL,
            "severities": " ".join(dict.fromkeys(level for head, _, _ in made for level in head["severities"].split())),
            "cases": sum(head["cases"] for head, _, _ in made),
            "error": round(mean, 6),
            **_ends(np.mean([drawn for _, _, drawn in made], axis=0), clusters),
        }


def _error(parts: Sequence[Chosen], layout: SumColumns) -> tuple[Floats, Floats, Floats]:
    """Return errors at every severity and all, their draws, and cases."""
    per_cluster = [part.per_cluster(layout) for part in parts]
    total = np.sum([sums.sum(0) for sums in per_cluster], axis=0)
    drawn = np.sum([part.draw(sums) for part, sums in zip(parts, per_cluster, strict=True)], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        errors, draws = (1 - layout.get(sums, "share") / layout.get(sums, "cases") for sums in (total, drawn))
    return errors, draws, layout.get(total, "cases")


def _ends(drawn: Floats, clusters: int) -> dict[str, Any]:
    low, high = auroc.ends(drawn) if clusters > 1 else (None, None)
    return {"error_low": low, "error_high": high}


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
