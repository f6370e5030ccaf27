"""Findings of a pack check: for each topic, whether it is equal here and whether a difference matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from medtest.report.packs.locks import ANSWERS, OtherVersion, Touches

MOST_NAMED = 8


class Sameness(StrEnum):
    """Comparison of this machine with the one that made the pack."""

    SAME = "same"
    OTHER = "different, does not matter"
    MATTERS = "different, matters"
    UNKNOWN = "not compared"


@dataclass(frozen=True, kw_only=True)
class PackFinding:
    """Finding on one topic.

    Attributes:
        topic: Compared topic.
        state: Result.
        words: The result as a sentence.
        lines: Differences, one per line.
    """

    topic: str
    state: Sameness
    words: str
    lines: tuple[str, ...] = ()


def listed(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return names in one line, abbreviated if there are many."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def about_versions(others: Sequence[OtherVersion], states_of: Mapping[Touches, Sameness], *, count: int) -> PackFinding:
    """Return the finding on package versions, given the results for what they may change.

    Args:
        others: Packages whose version differs.
        states_of: Results for what versions may change; irrelevant kinds are left out.
        count: Number of compared packages.
    """
    if not others:
        return PackFinding(topic="versions", state=Sameness.SAME, words=f"all {count:,} are the same")
    lines, states = [], []
    for touched, state in states_of.items():
        names = [str(version) for version in others if touched in version.touches]
        if names:
            lines.append(f"{touched}: {listed(names)}: {_meaning(touched, state)}")
            states.append(state)
    idle = [str(version) for version in others if not set(version.touches) & states_of.keys()]
    if idle:
        lines.append(f"{len(idle):,} without effect on results: {listed(idle, 3)}")
    state = next(
        (candidate for candidate in (Sameness.MATTERS, Sameness.UNKNOWN) if candidate in states), Sameness.OTHER
    )
    words = f"{len(others):,} of {count:,} differ"
    return PackFinding(topic="versions", state=state, words=words, lines=tuple(lines))


def _meaning(touched: Touches, state: Sameness) -> str:
    if touched == ANSWERS:
        return "answers may differ in the last digits, which can change cases near a threshold; run the suite to check"
    if state is Sameness.MATTERS:
        return "possible cause of the difference"
    if state is Sameness.UNKNOWN:
        return "not compared here"
    return "no effect: the compared content is the same"
