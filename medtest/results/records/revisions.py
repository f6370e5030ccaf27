"""Check that only records judged by one revision of their oracle are combined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from medtest.core.errors import OutputProblem

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
