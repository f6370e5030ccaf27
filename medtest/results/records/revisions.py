"""Records of one revision of their oracle make a table together, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from medtest.core.errors import OutputProblem

FIX = "type the command of the run again: it judges stored answers again, and runs the cases that have none"


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
        raise MixedRevisions(f"no table is made of {folder}, whose records are {_said(counts)}: {FIX}")


def _said(counts: Mapping[int, int]) -> str:
    return ", ".join(f"{count:,} judged by {named([revision])}" for revision, count in sorted(counts.items()))


def named(revisions: Iterable[int]) -> str:
    """Return revisions as messages name them."""
    names = ["one that gave fewer scores" if number == 0 else f"revision {number}" for number in sorted(revisions)]
    return " and ".join(names)
