"""Report of a call of :func:`medtest.runner.followups.make_followups`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class StoreReport:
    """Result of one call of :func:`medtest.runner.followups.make_followups`.

    Attributes:
        suite: The suite's key, for :meth:`medtest.runner.followups.FollowUpStore.entries`.
        folder: The store's folder.
        sources: Number of chosen seeds.
        made: Follow-ups made by this call.
        reused: Follow-ups that already existed.
        skipped: Cases without a follow-up (no room), old and new.
        errors: Cases that failed; the next call tries them again.
        problems: (shown address, error) of the first of them.
        left_out: Relations that need the system under test and are not stored.
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
