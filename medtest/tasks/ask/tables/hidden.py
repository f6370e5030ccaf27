"""Flips hidden by "original less average": opposite flips cancel out in a difference of accuracies."""

from __future__ import annotations

from dataclasses import dataclass

from medtest.core.deferred import pd
from medtest.tasks.ask.tables.rows import SOURCE, UNCHANGED

FEWEST = 5
"""Smallest number of cases judged both ways for a question to serve as an example."""


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """Flips and accuracies on the same cases; rates are fractions.

    Attributes:
        item: The question; ``all`` for all together.
        cases: Cases judged by the truth, including their source: those of ``flip_directions.csv``.
        judged: Those that were also judged by the source's answer.
        source: Accuracy on the sources of these cases.
        after: Accuracy on the follow-ups.
        flipped: Number of judged answers that flipped.
        lost: Answers that went from right to wrong, counted as in ``flip_directions.csv``, as are the next two.
        won: Answers that went from wrong to right.
        sideways: Answers that went from one wrong answer to another.
        example: Question whose difference hides most; None for a question, or without one.
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
        """Difference reported in the slides: accuracy on the sources minus that on the follow-ups."""
        return self.source - self.after


def hidden_flips(rows: pd.DataFrame) -> Hidden | None:
    """Return both numbers over all relations but ``unchanged``; None without any truth.

    Args:
        rows: Rows of one system, from :func:`medtest.tasks.ask.tables.records.answer_rows`.
    """
    perturbed = ~rows["relation"].isin([SOURCE, UNCHANGED])
    cases = rows[perturbed & rows["right"].notna() & rows["source_right"].notna()]
    if cases.empty:
        return None
    candidates = [
        _count(str(item), item_cases)
        for item, item_cases in cases.groupby("item", sort=False)
        if len(item_cases) >= FEWEST
    ]
    example = max(candidates, key=lambda candidate: candidate.flips - abs(candidate.difference), default=None)
    if example is not None and example.flips - abs(example.difference) <= 0:
        example = None
    return _count("all", cases, example)


def _count(item: str, cases: pd.DataFrame, example: Hidden | None = None) -> Hidden:
    was_right, is_right, flip = cases["source_right"] == 1, cases["right"] == 1, cases["flip"] == 1
    return Hidden(
        item=item,
        cases=len(cases),
        source=float(was_right.mean()),
        after=float(is_right.mean()),
        judged=int(cases["flip"].notna().sum()),
        flipped=int(flip.sum()),
        lost=int((was_right & ~is_right).sum()),
        won=int((~was_right & is_right).sum()),
        sideways=int((flip & ~was_right & ~is_right).sum()),
        example=example,
    )
