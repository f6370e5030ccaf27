"""Case of a unit with its image, and a system's answer to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from medtest.api.redact import reason_of, redact
from medtest.core.cases import (
    Address,
    Classes,
    FollowUp,
    ImageSpec,
    Output,
    Reason,
    ReasonCode,
    Verdict,
)
from medtest.core.errors import BadOutput, LesionInvisible, NotApplicable, TargetUnreachable
from medtest.core.tasks.base import Task, task_of

_SKIPPED = ((LesionInvisible, ReasonCode.LESION_INVISIBLE), (TargetUnreachable, ReasonCode.TARGET_UNREACHABLE))
_MOST_REASON = 1000
"""Maximum characters of an exception; records shorten it further and remove paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCase:
    """Image of a case, or the reason for its absence.

    Attributes:
        address: Its address.
        follow: The follow-up (for the source case: the unchanged source image), or None.
        sha256: SHA-256 of its image.
        verdict: SKIP or ERROR if there is none, else PASS.
        reason: Reason if there is none.
        kind: Name of the task.
        spec: Meaning of the image's numbers.
        classes: For kind ``label``: the seed's classes.
        crafting: Its columns of :data:`medtest.core.records.CRAFTING_COLUMNS`.
    """

    address: Address
    follow: FollowUp | None
    sha256: str = ""
    verdict: Verdict = Verdict.PASS
    reason: Reason = Reason()
    kind: str = "mask"
    spec: ImageSpec = ImageSpec()
    classes: Classes | None = None
    crafting: Mapping[str, float | str | None] = field(default_factory=dict)

    @property
    def task(self) -> Task:
        """Task of the case."""
        return task_of(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemAnswer:
    """Answer of a system to one image.

    Attributes:
        output: The checked answer, or None.
        verdict: SKIP or ERROR if there is none, else PASS.
        reason: Reason if there is none.
        elapsed_ms: The image's share of the time of its batch.
        classes: Number of classes scored by a classifier, if it differs from the requested number.
        texts: The reader's texts, as in a record.
        unread: An answer on which the reader failed: it is not judged, but its words and cost are recorded.
        spent: What an ERROR cost, by the oracle's measures.
    """

    output: Output | None
    verdict: Verdict = Verdict.PASS
    reason: Reason = Reason()
    elapsed_ms: float | None = None
    classes: int = 0
    texts: Mapping[str, str | None] = field(default_factory=dict)
    unread: Output | None = None
    spent: Mapping[str, float | None] = field(default_factory=dict)


def not_made(address: Address, error: Exception) -> MadeCase:
    """Return the case of a follow-up that a relation did not make: SKIP if it does not apply, else ERROR."""
    if isinstance(error, NotApplicable):
        code = next((code for kind, code in _SKIPPED if isinstance(error, kind)), ReasonCode.NOT_APPLICABLE)
        reason = Reason(code, str(error) or "the relation does not apply")
        return MadeCase(address=address, follow=None, verdict=Verdict.SKIP, reason=reason)
    reason = Reason(ReasonCode.RELATION_ERROR, f"relation: {describe(error)}")
    return MadeCase(address=address, follow=None, verdict=Verdict.ERROR, reason=reason)


def given_up_case(address: Address, given_up: Reason) -> MadeCase:
    """Return the ERROR case of a follow-up whose relation hung or took its process down."""
    reason = given_up._replace(text=f"relation: {given_up.text}")
    return MadeCase(address=address, follow=None, verdict=Verdict.ERROR, reason=reason)


def describe(error: BaseException) -> str:
    """Format an exception as one line that may be shown and stored."""
    text, name = reason_of(error, _MOST_REASON), redact(type(error).__name__)
    return text if isinstance(error, BadOutput) or text == name else f"{name}: {text}"
