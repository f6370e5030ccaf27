"""Table and section of what can still be seen of lesions: floors, weakened and skipped levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from medtest.core.cases import UNCHANGED, ReasonCode
from medtest.core.deferred import pd
from medtest.core.tasks.base import Section
from medtest.preparation.visibility import ABSOLUTE_FLOOR, is_below_floors
from medtest.results.columns import columns_in
from medtest.tasks.segment.false_positives import by_relation

TABLE = "visibility"
FILE = f"{TABLE}.csv"
COLUMNS = columns_in(__file__, TABLE)


def visibility_rows(followups: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows of the table, each relation by severity and at all severities; none without visibility in records.

    Args:
        followups: Records of follow-ups.
    """
    if "visibility" not in followups or followups["visibility"].isna().all():
        return []
    cases = followups[followups["relation"].astype(str) != UNCHANGED]
    return [{**head, **_row(part)} for head, part in by_relation(cases)]


def visibility_section(table: pd.DataFrame) -> Section:
    """Return the section of the report: a row for each relation and severity."""
    return Section(
        name="visibility",
        title="What can be seen of the lesion",
        words=(
            "Visibility is the colour step across the lesion's outline in units of the source's noise; medians of "
            "follow-ups and of their sources. Weakened: a weaker setting than the severity's own was applied, so that "
            "the lesion stays visible. Skipped: no setting of the severity leaves it visible. Below: the lesion is "
            "hardly visible, so that the expected mask may be wrong. Faint: visibility of the source below "
            f"{ABSOLUTE_FLOOR}."
        ),
        columns=(
            "Data set",
            "Relation",
            "Severity",
            "Cases",
            "Visibility",
            "Source",
            "Weakened",
            "Skipped",
            "Below",
            "Faint",
        ),
        rows=[_words(row) for row in table.to_dict("records")],
    )


def _row(cases: pd.DataFrame) -> dict[str, Any]:
    measured = cases.dropna(subset=["visibility", "source_visibility"])
    after, before = (measured[name].to_numpy(dtype=float) for name in ("visibility", "source_visibility"))
    return {
        "cases": len(measured),
        "median": round(float(np.median(after)), 4) if len(measured) else None,
        "source_median": round(float(np.median(before)), 4) if len(measured) else None,
        "weakened": int(cases["scale_applied"].notna().sum()),
        "skipped": int((cases["reason_code"].astype(str) == ReasonCode.LESION_INVISIBLE).sum()),
        "below_floors": sum(map(is_below_floors, before, after)),
        "faint_source": int((before < ABSOLUTE_FLOOR).sum()),
    }


def _words(row: Mapping[Any, Any]) -> tuple[str, ...]:
    medians = ("–" if np.isnan(row[name]) else f"{row[name]:.2f}" for name in ("median", "source_median"))
    counts = (f"{row[name]:,}" for name in ("weakened", "skipped", "below_floors", "faint_source"))
    return (
        str(row["dataset"]),
        str(row["relation"]).replace("_", " "),
        str(row["severity"]),
        f"{row['cases']:,}",
        *medians,
        *counts,
    )
