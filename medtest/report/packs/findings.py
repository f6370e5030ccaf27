"""What a check of a pack found, one finding a topic: the same or not, and whether that matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from medtest.report.packs.locks import ANSWERS, OtherVersion, Touches

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


def about_versions(others: Sequence[OtherVersion], seen: Mapping[Touches, Sameness], *, count: int) -> PackFinding:
    """Return what to make of other versions, by what was seen of what they touch.

    Args:
        others: What is installed in another version.
        seen: What came out for what versions may touch; what does not count is left out.
        count: How many packages were compared.
    """
    if not others:
        return PackFinding(topic="versions", state=Sameness.SAME, words=f"all {count:,} the same")
    lines, told = [], []
    for touched, state in seen.items():
        names = [str(one) for one in others if touched in one.touches]
        if names:
            lines.append(f"{touched}: {listed(names)}: {_meaning(touched, state)}")
            told.append(state)
    idle = [str(one) for one in others if not set(one.touches) & seen.keys()]
    if idle:
        lines.append(f"{len(idle):,} that nothing here rests on: {listed(idle, 3)}")
    state = next((one for one in (Sameness.MATTERS, Sameness.UNKNOWN) if one in told), Sameness.OTHER)
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
