"""Table and section of false positives on frames without lesion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from medtest.core.deferred import pd
from medtest.core.tasks.base import RunRecords, Section
from medtest.results.columns import columns_in

TABLE = "false_positives"
FILE = f"{TABLE}.csv"
COLUMNS = columns_in(__file__, TABLE)
_SCORES = ["clear", "false_area", "false_regions"]


def false_positive_rows(records: RunRecords) -> list[dict[str, Any]]:
    """Return rows of the table, each relation by severity; none without cases of the oracle ``lesion_free``."""
    if not set(_SCORES) <= set(records.followups.columns):
        return []
    judged = [frame.dropna(subset=_SCORES) for frame in (records.sources, records.followups)]
    return [{**head, **_row(part)} for frame in judged for head, part in by_relation(frame)]


def false_positive_section(table: pd.DataFrame) -> Section:
    """Return the section of the report: a row for each relation and severity."""
    return Section(
        name="false-positives",
        title="False positives on frames without lesion",
        words=(
            "A frame is not clear if the answer has a region of at least 0.05 % of the image or marks over "
            "0.5 % of the field. Area: marked share of the field. Sources are the images as they are."
        ),
        columns=("Data set", "Relation", "Severity", "Frames", "Not clear", "Mean area", "Largest", "Regions"),
        rows=[_words(row) for row in table.to_dict("records")],
    )


def by_relation(frame: pd.DataFrame) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Yield the first columns and the cases of each row: a relation by severity, then at all severities."""
    texts = frame.assign(**{name: frame[name].astype(str) for name in ("dataset", "relation")})
    for (dataset, relation), cases in texts.groupby(["dataset", "relation"], sort=False):
        parts = [(str(severity), part) for severity, part in cases.groupby("severity", sort=True)]
        for severity, part in [*parts, *([("all", cases)] if len(parts) > 1 else [])]:
            yield {"dataset": str(dataset), "relation": str(relation), "severity": severity}, part


def _row(cases: pd.DataFrame) -> dict[str, Any]:
    clear, area, regions = (cases[name].to_numpy(dtype=float) for name in _SCORES)
    return {
        "cases": len(cases),
        "not_clear": int((clear < 1).sum()),
        "not_clear_percent": round(100 * float((clear < 1).mean()), 4),
        "area_percent": round(100 * float(area.mean()), 4),
        "largest_area_percent": round(100 * float(area.max()), 4),
        "regions": round(float(regions.mean()), 4),
    }


def _words(row: Mapping[Any, Any]) -> tuple[str, ...]:
    return (
        str(row["dataset"]),
        str(row["relation"]).replace("_", " "),
        str(row["severity"]),
        f"{row['cases']:,}",
        f"{row['not_clear']:,} ({row['not_clear_percent']:.1f} %)",
        f"{row['area_percent']:.2f} %",
        f"{row['largest_area_percent']:.2f} %",
        f"{row['regions']:.2f}",
    )
