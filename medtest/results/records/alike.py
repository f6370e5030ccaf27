"""Comparisons take records that one revision of their oracle judged."""

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
    known = [(_system(side), found) for side in sides if (found := revisions_of(side))]
    first = known[0] if known else ("", frozenset())
    for name, found in known[1:]:
        if found != first[1]:
            said = " and ".join(f"{who or 'records'} by {named(which)}" for who, which in (first, (name, found)))
            raise MixedRevisions(
                f"records are not compared that different revisions of an oracle judged, {said}: {FIX}"
            )


def revisions_of(records: Records) -> frozenset[int]:
    """Return the revisions that judged records, those that state none left out."""
    found: set[int] = set()
    for frame in (records.followups, records.sources):
        if REVISION in frame.columns:
            found.update(int(value) for value in frame[REVISION].dropna().unique())
    return frozenset(found)


def _system(records: Records) -> str:
    frame = records.followups if len(records.followups) else records.sources
    return str(frame["system"].iloc[0]) if "system" in frame.columns and len(frame) else ""
