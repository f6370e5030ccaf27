"""Makes a suite's follow-ups into a store: over all cores, going on where an earlier call stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from medtest.core.errors import Mistake
from medtest.runner.followups.guard import StoreLock
from medtest.runner.followups.making import Making
from medtest.runner.followups.report import StoreReport
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
    """Make the chosen follow-ups of a suite and keep them, with their sources and expected masks.

    What is in the store already is not made again, whichever suite it was made for. Every picture is on its place
    before the index names it, so that a killed process leaves a store that holds less and never one that holds halves.
    The bytes do not depend on the order, on the number of workers, or on what else is in the store.

    Args:
        suite: The suite; its systems do not matter.
        invocation: ``data``, ``home``, ``limit``, ``only``, ``workers`` and ``batch_seconds`` (the longest a case may
            take) count.
        folder: The store's folder; ``followups/`` under ``invocation.home`` where it is None.
        workers: Processes; as many as there are cores where neither this nor ``invocation.workers`` is given. 0 makes
            them in this process: quicker for a few, but a relation that hangs or crashes is not survived.
        progress: Called with how many follow-ups are done, and how many there are to do.

    Returns:
        What was done.

    Raises:
        UserMistakes: The suite's privacy forbids keeping images, or its seeds have mistakes.
        OutputProblem: The folder cannot be written, the disk is full.
        Interrupted: Ctrl-C; what was finished is kept.
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
    """Check that a suite allows its images to be kept and shown.

    Args:
        suite: The suite.
        series: What to tell of series.
        forbidden: What to tell of a suite that keeps its images to itself.

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
