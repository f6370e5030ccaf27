"""Records judged anew by an oracle under other settings than they were made with: for views, from records alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtest.oracles.base import Oracle
from medtest.results.records_io import Records

if TYPE_CHECKING:
    import pandas as pd


def rejudged_records(records: Records, oracle: Oracle) -> Records:
    """Return records as an oracle judges them; those of an oracle whose scores depend on no setting as they are.

    Args:
        records: Records with the oracle's scores and texts.
        oracle: The oracle, under the settings that are wanted.
    """
    texts_there = set(oracle.texts) <= set(records.followups.columns)
    if not oracle.judging() or not texts_there:
        return records
    return Records(
        followups=_frame(records.followups, oracle),
        sources=_frame(records.sources, oracle),
        classes=records.classes,
    )


def _frame(frame: pd.DataFrame, oracle: Oracle) -> pd.DataFrame:
    if frame.empty:
        return frame
    scores = [*oracle.scores, *(f"self_{s}" for s in oracle.self_scores), *(f"source_{s}" for s in oracle.scores)]
    names = [
        name for name in (*scores, *oracle.texts, "relation", "item", "verdict", "reason") if name in frame.columns
    ]
    plain = frame[names].astype(object)
    rows = plain.where(plain.notna(), None).to_dict("records")
    made = [{**row, **oracle.judged_again({str(key): value for key, value in row.items()})} for row in rows]
    new = frame.copy()
    for name in names:
        if name in scores:
            new[name] = [float("nan") if row[name] is None else float(row[name]) for row in made]
        elif name not in ("relation", "item"):
            new[name] = [row[name] for row in made]
    return new
