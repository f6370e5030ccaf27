"""Making of a suite's follow-ups for a store: in parallel, resuming an interrupted call."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from medtest.core.errors import Mistake
from medtest.runner.followups.guard import StoreLock
from medtest.runner.followups.making import Making, StoreReport
from medtest.runner.followups.store import FOLDER, FollowUpStore
from medtest.suite.checking.misfits.inputs import check_images
from medtest.suite.model import Invocation, Suite


def make_followups(
    suite: Suite,
    invocation: Invocation,
    folder: Path | None = None,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StoreReport:
    """Make the chosen follow-ups of a suite and store them with their sources and expected masks.

    Follow-ups that the store already holds, for any suite, are not made again. Every picture is in place before the
    index names it, so that a store left by a killed process is incomplete but consistent. The bytes do not depend on
    the order, on the number of workers, or on other content of the store.

    Args:
        suite: The suite; its systems are not used.
        invocation: Provides ``data``, ``home``, ``limit``, ``only``, ``workers`` and ``batch_seconds`` (the longest a
            case may take).
        folder: The store's folder; ``followups/`` under ``invocation.home`` if None.
        workers: Processes; defaults to ``invocation.workers``, else the number of cores. 0 makes the follow-ups in this
            process: quicker for a few, but a relation that hangs or crashes takes the process down.
        progress: Called with the number of finished follow-ups and their total.

    Returns:
        Summary of the call.

    Raises:
        UserMistakes: The suite's privacy forbids keeping images, or its seeds have mistakes.
        OutputProblem: The folder cannot be written, or the disk is full.
        Interrupted: Ctrl-C; finished follow-ups are kept.
    """
    check_privacy(suite)
    began = time.monotonic()
    target = (invocation.home / FOLDER) if folder is None else Path(folder)
    store = FollowUpStore.open(target, create=True)
    try:
        with StoreLock(target).shared():
            making = Making(suite, invocation, store, workers=workers, progress=progress)
            making.run()
        return making.report(time.monotonic() - began)
    finally:
        store.close()


def check_privacy(
    suite: Suite,
    *,
    series: str = "Follow-ups of series are not kept; medtest export writes them as files.",
    forbidden: str = "A store of follow-ups holds every image of the suite, which its privacy forbids.",
) -> None:
    """Check that a suite allows its images to be stored and shown.

    Args:
        suite: The suite.
        series: Message for series.
        forbidden: Message for a suite that forbids storing its images.

    Raises:
        UserMistakes: It has ``privacy: {images: none}``, or is a series, whose images a store does not hold.
    """
    check_images(suite, "a store of follow-ups")
    if suite.task.series:
        raise Mistake(
            where="suite",
            key="seeds",
            found=f"seeds that expect {suite.task.noun}",
            allowed="seeds that expect a mask",
            fix=series,
        ).as_error()
    if suite.privacy.images == "none":
        raise Mistake(where="suite", key="privacy.images", found="none", allowed="samples", fix=forbidden).as_error()
