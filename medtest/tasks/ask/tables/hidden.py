"""What "original less average" hides: flips in opposite directions cancel out in a difference of accuracies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtest.tasks.ask.tables.rows import SOURCE, UNCHANGED

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 5
"""A question is named as an example where at least this many cases were judged both ways."""


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """The same cases, counted both ways; fractions.

    Attributes:
        item: The question; ``all`` for all together.
        cases: Cases that were judged by the truth, at the source too: those of ``flip_directions.csv``.
        judged: Those of them that were judged by the source's answer too.
        source: Accuracy on the sources of these cases.
        after: Accuracy on the follow-ups.
        flipped: Answers of the judged that flipped.
        lost: Answers that went from right to wrong, as ``flip_directions.csv`` counts them, and likewise the next two.
        won: Answers that went from wrong to right.
        sideways: Answers that went from one wrong answer to another.
        example: The question whose difference hides most; None for a question, or where there is none.
    """

    item: str
    cases: int
    judged: int
    source: float
    after: float
    flipped: int
    lost: int
    won: int
    sideways: int
    example: Hidden | None = None

    @property
    def flips(self) -> float:
        """Share of the judged answers that flipped."""
        return self.flipped / self.judged if self.judged else 0.0

    @property
    def difference(self) -> float:
        """What the slides report: accuracy on the sources less that on the follow-ups."""
        return self.source - self.after


def hidden_flips(rows: pd.DataFrame) -> Hidden | None:
    """Return both numbers over all relations but ``unchanged``; None where no truth is known.

    Args:
        rows: Rows of one system, as :func:`medtest.tasks.ask.tables.records.answer_rows` gives them.
    """
    chosen = ~rows["relation"].isin([SOURCE, UNCHANGED])
    cases = rows[chosen & rows["right"].notna() & rows["source_right"].notna()]
    if cases.empty:
        return None
    each = [_count(str(item), own) for item, own in cases.groupby("item", sort=False) if len(own) >= FEWEST]
    example = max(each, key=lambda one: one.flips - abs(one.difference), default=None)
    if example is not None and example.flips - abs(example.difference) <= 0:
        example = None
    return _count("all", cases, example)


def _count(item: str, cases: pd.DataFrame, example: Hidden | None = None) -> Hidden:
    before, after, flip = cases["source_right"] == 1, cases["right"] == 1, cases["flip"] == 1
    return Hidden(
        item=item,
        cases=len(cases),
        source=float(before.mean()),
        after=float(after.mean()),
        judged=int(cases["flip"].notna().sum()),
        flipped=int(flip.sum()),
        lost=int((before & ~after).sum()),
        won=int((~before & after).sum()),
        sideways=int((flip & ~before & ~after).sum()),
        example=example,
    )
