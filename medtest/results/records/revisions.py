"""Check that only records judged by one revision of their oracle are combined or compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from medtest.core.errors import OutputProblem
from medtest.core.records import REVISION

if TYPE_CHECKING:
    from medtest.results.records.records_io import Records

FIX = "run its command again without limit= and only=, which judges stored answers again and reruns other cases"


class MixedRevisions(OutputProblem):
    """Records were judged by several revisions of an oracle."""


def check_revisions(folder: str, records: Mapping[int | None, int]) -> None:
    """Reject records of a folder that several revisions of the oracle judged.

    Args:
        folder: Name of the folder.
        records: Number of records that each revision judged; None for records without a revision.

    Raises:
        MixedRevisions: Several revisions judged them.
    """
    counts = {revision: count for revision, count in records.items() if revision is not None}
    if len(counts) > 1:
        listing = ", ".join(f"{count:,} judged by {named([revision])}" for revision, count in sorted(counts.items()))
        raise MixedRevisions(
            f"several revisions of the oracle judged {folder}, so no tables are made ({listing}): {FIX}"
        )


def named(revisions: Iterable[int]) -> str:
    """Return revisions as messages name them."""
    names = ["one that gave fewer scores" if number == 0 else f"revision {number}" for number in sorted(revisions)]
    return " and ".join(names)


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
