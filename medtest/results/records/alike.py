"""Check that compared records were judged by one revision of their oracle."""

from __future__ import annotations

from collections.abc import Sequence

from medtest.core.records import REVISION
from medtest.results.records.records_io import Records
from medtest.results.records.revisions import FIX, MixedRevisions, named


def check_alike(sides: Sequence[Records]) -> None:
    """Refuse to compare records of systems that different revisions of the oracle judged.

    Raises:
        MixedRevisions: They did.
    """
    judged_by = [(_system(side), revisions) for side in sides if (revisions := revisions_of(side))]
    first = judged_by[0] if judged_by else ("", frozenset())
    for name, revisions in judged_by[1:]:
        if revisions != first[1]:
            sides_text = " and ".join(
                f"{side or 'records'} by {named(judged)}" for side, judged in (first, (name, revisions))
            )
            raise MixedRevisions(f"different revisions of an oracle judged the records, {sides_text}: {FIX}")


def revisions_of(records: Records) -> frozenset[int]:
    """Return the revisions that judged records, those that state none left out."""
    revisions: set[int] = set()
    for frame in (records.followups, records.sources):
        if REVISION in frame.columns:
            revisions.update(int(value) for value in frame[REVISION].dropna().unique())
    return frozenset(revisions)


def _system(records: Records) -> str:
    frame = records.followups if len(records.followups) else records.sources
    return str(frame["system"].iloc[0]) if "system" in frame.columns and len(frame) else ""
