"""Outcomes of the queries of a search, from cases just judged or from records on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from medtest.core.cases import ReasonCode, Verdict
from medtest.core.oracles.base import Oracle
from medtest.core.oracles.criteria import compared_columns, components

AGAIN = (ReasonCode.SOURCE_FAILED, ReasonCode.SEARCH_WAITS)
"""Reasons of a SKIP that a later run may lift."""


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """Outcome of one follow-up.

    Attributes:
        verdict: Its verdict; FAIL if any question about it fails.
        score: Score under the primary criterion, smaller for a worse answer; None without one.
        open: True if a later run may judge it: the system, or the source, broke.
    """

    verdict: Verdict
    score: float | None = None
    open: bool = False

    @property
    def fails(self) -> bool | None:
        """Whether it fails; None without a verdict."""
        return {Verdict.FAIL: True, Verdict.PASS: False}.get(self.verdict)


def outcome_of(oracle: Oracle, verdict: Verdict, code: ReasonCode | str, scores: Mapping[str, Any]) -> QueryOutcome:
    """Return the outcome of a judged case.

    Args:
        oracle: The oracle, whose primary criterion names the score.
        verdict: The verdict.
        code: Code of the reason.
        scores: Score columns by name.
    """
    primary = oracle.primary
    names = [compared_columns(name, primary.against)[0] for name in components(primary.score)]
    numbers = [float(scores[name]) for name in names if isinstance(scores.get(name), int | float)]
    score = sum(numbers) / len(numbers) if numbers else None
    return QueryOutcome(verdict, score, verdict is Verdict.ERROR or code in AGAIN)


def recorded_outcome(oracle: Oracle, row: Mapping[str, Any]) -> QueryOutcome:
    """Return the outcome of a record, judged by the oracle's present criterion."""
    verdict = Verdict(row["verdict"])
    if verdict in (Verdict.PASS, Verdict.FAIL):
        verdict = oracle.verdict(row)[0]
    return outcome_of(oracle, verdict, str(row["reason_code"]), row)


def together(outcomes: Iterable[QueryOutcome]) -> QueryOutcome:
    """Return the outcome of a follow-up with several questions."""
    parts = list(outcomes)
    verdicts = {part.verdict for part in parts}
    order = (Verdict.FAIL, Verdict.PASS, Verdict.ERROR, Verdict.SKIP)
    scores = [part.score for part in parts if part.score is not None]
    return QueryOutcome(
        next(verdict for verdict in order if verdict in verdicts),
        sum(scores) / len(scores) if scores else None,
        any(part.open for part in parts),
    )
