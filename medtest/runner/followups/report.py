"""What a call of :func:`medtest.runner.followups.make_followups` did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class StoreReport:
    """What became of one call of :func:`medtest.runner.followups.make_followups`.

    Attributes:
        suite: The suite's key, for :meth:`medtest.runner.followups.FollowUpStore.entries`.
        folder: The store's folder.
        sources: Seeds that were chosen.
        made: Follow-ups made by this call.
        reused: Follow-ups that were there.
        skipped: Cases without a follow-up (no room), old and new.
        errors: Cases that could not be made; the next call tries them again.
        problems: (address as shown, what broke) of the first of them.
        left_out: Relations that need the system under test and are not kept.
        bytes: Bytes of pictures written.
        seconds: Wall time.
        workers: Processes.
    """

    suite: str
    folder: Path
    sources: int
    made: int
    reused: int
    skipped: int
    errors: int
    problems: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]
    bytes: int
    seconds: float
    workers: int
