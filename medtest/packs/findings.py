"""What a check of a pack found, one finding a topic: the same or not, and whether that matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from medtest.packs.locks import ANSWERS, NOTHING, PIXELS, TABLES, OtherVersion, Touches

MOST_NAMED = 8


class Sameness(StrEnum):
    """Whether something is here what it was where the pack was made."""

    SAME = "same"
    OTHER = "other, does not matter"
    MATTERS = "other, matters"
    UNKNOWN = "not compared"


@dataclass(frozen=True, kw_only=True)
class PackFinding:
    """What was found of one topic.

    Attributes:
        topic: What was compared.
        state: What came out.
        words: That in a sentence.
        lines: What differs, a line each.
    """

    topic: str
    state: Sameness
    words: str
    lines: tuple[str, ...] = ()


def listed(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return names in one line, the first ones where there are many."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def about_versions(
    others: Sequence[OtherVersion], *, pixels: Sameness, answers: Sameness, tables: Sameness, count: int
) -> PackFinding:
    """Return what to make of other versions, by what was seen of what they touch.

    Args:
        others: What is installed in another version.
        pixels: What came out for seeds and follow-ups.
        answers: What came out for systems; they are never asked.
        tables: What came out for tables.
        count: How many packages were compared.
    """
    if not others:
        return PackFinding(topic="versions", state=Sameness.SAME, words=f"all {count:,} the same")
    seen: dict[Touches, Sameness] = {PIXELS: pixels, ANSWERS: answers, TABLES: tables}
    lines = []
    for touched, state in seen.items():
        names = [str(one) for one in others if touched in one.touches]
        if names:
            lines.append(f"{touched}: {listed(names)}: {_meaning(touched, state)}")
    idle = [str(one) for one in others if one.touches == (NOTHING,)]
    if idle:
        lines.append(f"{len(idle):,} that no figure rests on: {listed(idle, 3)}")
    told = [state for touched, state in seen.items() if any(touched in one.touches for one in others)]
    state = Sameness.OTHER
    if Sameness.MATTERS in told:
        state = Sameness.MATTERS
    elif Sameness.UNKNOWN in told:
        state = Sameness.UNKNOWN
    words = f"{len(others):,} of {count:,} others"
    return PackFinding(topic="versions", state=state, words=words, lines=tuple(lines))


def _meaning(touched: Touches, state: Sameness) -> str:
    if touched == ANSWERS:
        return "answers may differ in their last digits, and cases near a threshold with them; a run tells"
    if state is Sameness.MATTERS:
        return "this may be why they differ"
    if state is Sameness.UNKNOWN:
        return "not compared here"
    return "does not matter to what was compared, which is the same"
