"""Records of one revision of their oracle make a table together, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from medtest.core.errors import OutputProblem
from medtest.core.records import REVISION

if TYPE_CHECKING:
    from medtest.results.records.records_io import Records

_FIX = "type the command of the run again: it judges stored answers again, and runs the cases that have none"


class MixedRevisions(OutputProblem):
    """Records that several revisions of an oracle judged."""


def check_revisions(folder: str, records: Mapping[int | None, int]) -> None:
    """Refuse records of a folder that several revisions of the oracle judged.

    Args:
        folder: Its name.
        records: How many each revision judged; None stands for records that state none.

    Raises:
        MixedRevisions: They did.
    """
    counts = {revision: count for revision, count in records.items() if revision is not None}
    if len(counts) > 1:
        raise MixedRevisions(f"no table is made of {folder}, whose records are {_said(counts)}: {_FIX}")


def check_alike(sides: Sequence[Records]) -> None:
    """Refuse to compare records of systems that different revisions of the oracle judged.

    Raises:
        MixedRevisions: They did.
    """
    known = [(_system(side), found) for side in sides if (found := revisions_of(side))]
    first = known[0] if known else ("", frozenset())
    for name, found in known[1:]:
        if found != first[1]:
            said = " and ".join(f"{who or 'records'} by {_named(which)}" for who, which in (first, (name, found)))
            raise MixedRevisions(
                f"records are not compared that different revisions of an oracle judged, {said}: {_FIX}"
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


def _said(counts: Mapping[int, int]) -> str:
    return ", ".join(f"{count:,} judged by {_named([revision])}" for revision, count in sorted(counts.items()))


def _named(revisions: Iterable[int]) -> str:
    names = ["one that gave fewer scores" if number == 0 else f"revision {number}" for number in sorted(revisions)]
    return " and ".join(names)
