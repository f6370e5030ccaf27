"""EFR tables as heat maps: a number, its counts and its interval in every cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.core.oracles.criteria import threshold_of
from medtest.report.charts.figures import shade
from medtest.report.pages.intervals import MARKS, legend
from medtest.results.attacks.checking.checks import Warn
from medtest.results.attacks.checking.found import TITLES
from medtest.results.rates import efr

WARN = "\N{WARNING SIGN}"
"""Shown beside every rate of an attack that fails a check."""
NOT_MEASURED = "not measured"
"""Shown instead of a floor if no repeat of an unchanged input was judged."""
SUMS = (efr.OVERALL, efr.OVERALL_CELLS)


class EfrRows:
    """Rows of the EFR table, indexed by their keys.

    Args:
        table: Table from :func:`medtest.results.rates.efr.efr_table`.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self.relations: list[str] = list(dict.fromkeys(str(name) for name in table["relation"]))
        self.datasets: list[str] = list(dict.fromkeys(str(name) for name in table["dataset"]))
        self.severities: list[str] = sorted({str(level) for level in table["severity"]} - {efr.ALL}, key=int)
        self.groups: dict[str, str] = dict(zip(table["relation"].astype(str), table["group"].astype(str), strict=True))
        keys = ["dataset", "relation", "severity", "score", "against"]
        self._rows = {(*(record[key] for key in keys), limit_of(record)): record for record in table.to_dict("records")}

    def get(
        self,
        *,
        relation: str,
        score: str,
        threshold: float,
        against: str,
        dataset: str = efr.ALL,
        severity: str = efr.ALL,
    ) -> Mapping[str, Any] | None:
        """Return one row, or None."""
        record = self._rows.get((dataset, relation, severity, score, against, threshold_of(score, threshold)))
        return {str(key): value for key, value in record.items()} if record is not None else None

    def weakest(
        self, criterion: Mapping[str, Any], eligible: Callable[[str], bool] = lambda relation: True, least: int = 0
    ) -> tuple[str, Mapping[str, Any]] | None:
        """Return the relation with the highest rate under a criterion, and its row; None if nothing was violated.

        Args:
            criterion: Keys of a criterion.
            eligible: Returns False for a relation that may not be named.
            least: Smallest number of judged cases.
        """
        rows = [
            (name, row)
            for name in self.changing
            if (row := self.get(relation=name, **criterion)) is not None
            and int(row["violations"])
            and int(row["cases"]) >= least
            and eligible(name)
        ]
        return max(rows, key=lambda pair: float(pair[1]["efr_percent"]), default=None)

    @property
    def changing(self) -> list[str]:
        """The suite's relations by group, without ``unchanged``."""
        return [name for name in self.relations if name not in SUMS and name != UNCHANGED]

    @property
    def plain_relations(self) -> list[str]:
        """The suite's relations by group, ``unchanged`` last."""
        return [*self.changing, *(name for name in self.relations if name == UNCHANGED)]


def rows_of(table: pd.DataFrame, **keys: object) -> list[dict[Any, Any]]:
    """Return the rows of a table whose columns have the given values, in order."""
    rows: list[dict[Any, Any]] = table.to_dict("records")
    return [row for row in rows if all(row[name] == value for name, value in keys.items())]


def limit_of(row: Mapping[Any, Any]) -> float:
    """Return the threshold of a row of rates; 0 for a rule without one."""
    return threshold_of(str(row["score"]), float(row["threshold"]))


def percent(value: Any) -> str:
    """Format a percentage with two significant digits, and at most one decimal above 10."""
    if value is None or value != value:
        return ""
    number = float(value)
    size = abs(number)
    return f"{number:.0f} %" if size >= 99.95 else f"{number:.1f} %" if size >= 10 else f"{number:.2g} %"


def interval(row: Mapping[str, Any]) -> str:
    """Return the ends of a row's interval, in percent."""
    low, high = row["ci_low"], row["ci_high"]
    if low != low or high != high:
        return ""
    return f"{float(low):.1f}\N{EN DASH}{float(high):.1f}"


def filled(share: float, lines: Sequence[str], *, value: str = "", title: str = "", method: str = "") -> dict[str, Any]:
    """Return a cell with a number.

    Args:
        share: Percentage that sets the shade.
        lines: Lines below the number.
        value: Displayed number; "" for the percentage.
        title: Tooltip.
        method: Method of the interval in the last line; "" for none.
    """
    background, colour = shade(share)
    shown = {"background": background, "colour": colour, "value": value or percent(share), "lines": list(lines)}
    return {**shown, "title": title, "method": method, "empty": ""}


def blank(empty: str = "", title: str = "", background: str = "#ffffff") -> dict[str, Any]:
    """Return a cell without a number, with the reason."""
    return {"background": background, "colour": "#5c6370", "value": "", "empty": empty, "lines": [], "title": title}


def unjudged(relation: str) -> str:
    """Return the words shown instead of a relation's rate if none of its cases was judged."""
    return NOT_MEASURED if relation == UNCHANGED else "no case"


def cell(row: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the cell of a row of rates."""
    if row is None:
        return blank()
    if int(row["cases"]) == 0:
        return blank(unjudged(str(row["relation"])), beside(row), "#f5f7fa")
    lines = [f"{row['violations']:,} of {row['cases']:,}", interval(row)]
    return filled(float(row["efr_percent"]), lines, title=beside(row), method=str(row["ci_method"]))


def warned(shown: dict[str, Any], failed: Sequence[str]) -> dict[str, Any]:
    """Return a cell with a warning sign if checks failed; its tooltip names them."""
    if not failed or not shown["value"]:
        return shown
    title = f"{shown['title']}; fails: {', '.join(TITLES[name] for name in failed)}"
    return {**shown, "value": f"{shown['value']} {WARN}", "title": title.removeprefix("; ")}


def beside(row: Mapping[str, Any]) -> str:
    """Return the counts left out of a row's denominator, and the rate over all generated cases."""
    parts = [
        f"{int(row[name]):,} {words}"
        for name, words in (("errors", "errors"), ("skipped", "skipped"), ("source_failed", "with a failed source"))
        if int(row[name])
    ]
    if not parts:
        return "all judged"
    not_judged = f"not judged: {', '.join(parts)}"
    if row["relation"] == UNCHANGED and not int(row["cases"]):
        return not_judged  # a floor that is not measured is no rate of 0
    return f"{not_judged} (EFR over all {int(row['generated']):,} cases: {percent(row['efr_generated_percent'])})"


def heat(
    rates: EfrRows,
    *,
    title: str,
    columns: Sequence[tuple[str, Mapping[str, Any]]],
    side: Mapping[str, Any] | None = None,
    lead: str = "",
    relations: Iterable[str] | None = None,
    clusters: str = "source cases",
    warn: Warn | None = None,
) -> dict[str, Any]:
    """Return a heat map with relations as rows and ``columns`` across.

    Args:
        rates: The rates.
        title: Heading.
        columns: Name and keys (data set, severity, score …) of each column.
        side: Keys of the column whose left-out cases are listed at the right; None for no such column.
        lead: One line below the heading.
        relations: Relations to show; None for all, followed by the pooled rows.
        clusters: Name of the unit that intervals resample.
        warn: Returns the checks that a relation fails at a severity, which are marked beside its rates.
    """

    def shown(relation: str, keys: Mapping[str, Any]) -> dict[str, Any]:
        plain_cell = cell(rates.get(relation=relation, **keys))
        failed = () if warn is None else warn(relation, str(keys.get("severity", efr.ALL)))
        return warned(plain_cell, failed)

    names = (
        [*rates.plain_relations, *(s for s in SUMS if s in rates.relations)] if relations is None else list(relations)
    )
    return heat_map(
        names,
        rates.groups,
        title=title,
        lead=lead,
        columns=[name for name, _ in columns],
        cells=lambda relation: [shown(relation, keys) for _, keys in columns],
        side=None if side is None else lambda relation: cell(rates.get(relation=relation, **side))["title"],
        clusters=clusters,
    )


def heat_map(
    names: Sequence[str],
    groups: Mapping[str, str],
    *,
    columns: Sequence[str],
    cells: Callable[[str], list[dict[str, Any]]],
    title: str = "",
    lead: str = "",
    shown: Callable[[str], str] = str,
    words: Mapping[str, str] | None = None,
    sums: Sequence[str] = (),
    side: Callable[[str], str] | None = None,
    clusters: str = "source cases",
) -> dict[str, Any]:
    """Return a heat map for the template ``heat.html.j2``; lines separate groups of rows.

    If intervals are of several kinds, each carries a letter, explained in a line below.

    Args:
        names: Row names.
        groups: Group of each row.
        columns: Column heads.
        cells: Returns the cells of a row, made by :func:`filled`, :func:`blank` or :func:`cell`.
        title: Heading.
        lead: One line below the heading.
        shown: Returns the displayed name of a row.
        words: Tooltips of row names.
        sums: Rows that start their own group.
        side: Returns the text at the right of a row; None for no such column.
        clusters: Name of the unit that intervals resample.
    """
    rows: list[dict[str, Any]] = []
    before = ""
    for name in names:
        group = "pooled" if name in SUMS else groups.get(name, "")
        rows.append(
            {
                "name": shown(name),
                "words": (words or {}).get(name, ""),
                "group": group.replace("_", " "),
                "first": group != before or name in sums,
                "cells": cells(name),
                "side": side(name) if side is not None else "",
            }
        )
        before = group
    return {
        "title": title,
        "lead": lead,
        "intervals": legend(_marked(rows), clusters),
        "columns": list(columns),
        "rows": rows,
        "side": "not judged" if side is not None else "",
    }


def _marked(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the kinds of intervals in a heat map; if there are several, append its letter to every interval."""
    cells = [cell for row in rows for cell in row["cells"] if cell.get("method")]
    methods = {cell["method"] for cell in cells}
    for cell in cells if len(methods) > 1 else ():
        cell["lines"][-1] += f" {MARKS.get(cell['method'], cell['method'])}"
    return methods
