"""``compare.md``: a comparison of runs, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from medtest.core import __version__
from medtest.report.charts.heat import percent, rows_of
from medtest.report.ci.summary import SIGNS, condition_rows, escaped, table_lines
from medtest.report.compared.pairs import ComparedPair
from medtest.report.pages.conclusions import ends_words, points_words
from medtest.report.pages.words import counted, criterion_words
from medtest.results.gating.conditions import newly_lost
from medtest.results.rates.changed import KINDS
from medtest.results.rates.differences import RELATION, VIOLATIONS
from medtest.results.rates.efr import OVERALL

_LISTED = 10
_HEADS = ("difference, points", "95 % interval", "p (Holm)", "cases", "better")


def comparison_text(pairs: Sequence[ComparedPair]) -> str:
    """Return the Markdown summary of a comparison.

    Args:
        pairs: Each run compared with the first one.
    """
    lines: list[str] = []
    for pair in pairs:
        lines += [f"## {escaped(pair.names[1])} compared with {escaped(pair.names[0])}", ""]
        lines += [f"**{SIGNS[pair.verdict]} {escaped(pair.verdict_words)}**", ""]
        lines += [f"New losses: {escaped(newly_lost(pair.conditions))}.", ""]
        lines += [*table_lines(["verdict", "condition", "result"], condition_rows(pair.conditions)), ""]
        lines += [f"Violation: {escaped(criterion_words(pair.other))}.", ""]
        heads = ["relation", *map(escaped, pair.names), *_HEADS]
        rows = rows_of(pair.relations, measure=VIOLATIONS, by=RELATION)
        lines += (
            [*table_lines(heads, [_row(row) for row in rows]), ""] if rows else ["No case was judged in both runs.", ""]
        )
        lines += [*_changed(pair), ""]
    return "\n".join([*lines, f"<sub>medtest {escaped(__version__)}</sub>"]) + "\n"


def _row(row: dict[Any, Any]) -> list[str]:
    bold = "**" if row["name"] == OVERALL else ""
    return [
        f"{bold}{'all relations' if bold else escaped(row['name'])}{bold}",
        percent(row["second_percent"]),
        percent(row["first_percent"]),
        points_words(row["difference"]),
        ends_words(row),
        f"{row['p_holm']:.2g}",
        f"{row['cases']:,}",
        escaped(row["better"]) if row["better"] else "no difference shown",
    ]


def _changed(pair: ComparedPair) -> Iterator[str]:
    for kind in KINDS:
        rows = rows_of(pair.changed, change=kind)
        if not rows:
            continue
        yield f"- {kind}: {counted(len(rows), 'case')}"
        yield from (f"  - {escaped(row['address'])}" for row in rows[:_LISTED])
        if len(rows) > _LISTED:
            yield f"  - {len(rows) - _LISTED:,} more in compare_changed.csv"
