"""Pictures that services draw, kept by content: the run's own, and those that all runs share.

The run's lie in its folder by the SHA-256 of their pixels (:mod:`medtest.core.files.by_content`) before the ledger says
that a question is answered; ledger, cache and records name that hash and hold no picture. The shared ones lie beside
the cache, which names hashes too: an answer that it gives out counts only while its picture is there, whole.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from medtest.api.calls.request import Outcome
from medtest.api.calls.retry import Reply
from medtest.api.drawn.store import KIND, KeptPicture, Store
from medtest.core.cases import Image
from medtest.core.errors import OutputProblem
from medtest.core.files.by_content import DamagedFile, PictureFiles


class Helpers(Protocol):
    """Others that keep pictures in the same folder, so that this process need not."""

    def keep(self, content: bytes) -> KeptPicture | None:
        """Return what became of a picture; None where it is to be kept here."""

    def close(self) -> None:
        """Let them end."""


class KeptPictures:
    """The pictures of one run.

    Args:
        folder: Of the run's pictures (:data:`medtest.core.records.PICTURES` in its folder).
        shared: Of the pictures that all runs share; None shares none, and then the cache keeps no picture either.
        size: Longer side to which pictures are made before they are kept; None keeps theirs.
        threads: In which they are decoded and written.
        helpers: Processes that do so instead; None for none.
    """

    def __init__(
        self,
        folder: Path,
        shared: Path | None = None,
        *,
        size: int | None = None,
        threads: int = 4,
        helpers: Helpers | None = None,
    ) -> None:
        self.store = Store(folder, size=size)
        self._shared = None if shared is None else PictureFiles(shared, durable=True)
        self._helpers = helpers
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="pictures")

    def close(self) -> None:
        """End the threads, and the helpers."""
        self._pool.shutdown()
        if self._helpers is not None:
            self._helpers.close()

    async def keep(self, reply: Reply) -> Reply:
        """Return a reply with the name of its picture, which is on disk now, in place of the file that came.

        What cannot be read is MALFORMED; a picture of one colour is moderation and is not kept.

        Raises:
            OutputProblem: The folder cannot be written.
        """
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._pool, self._keep, reply.drawn)
        reason = found.reason or reply.reason
        return replace(reply, drawn=b"", picture=found.picture, state=found.state, reason=reason)

    def _keep(self, content: bytes) -> KeptPicture:
        found = None if self._helpers is None else self._helpers.keep(content)
        return self.store.keep(content) if found is None else found

    def put(self, sha256: str, pixels: Image) -> None:
        """Keep a picture that was drawn here.

        Raises:
            OutputProblem: The folder cannot be written.
        """
        self.store.put(sha256, pixels)

    async def here(self, outcome: Outcome) -> bool:
        """Say whether the picture of an outcome is in the run's folder, whole; one of the shared ones is brought there.

        Raises:
            OutputProblem: The folder cannot be written.
        """
        if not outcome.picture:
            return True
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._here, outcome.picture)

    def _here(self, sha256: str) -> bool:
        if _is_whole(self.store.files, sha256):
            return True
        if self._shared is None or not _is_whole(self._shared, sha256):
            return False
        _link(self._shared.path(KIND, sha256), self.store.files.path(KIND, sha256))
        return True

    async def share(self, outcome: Outcome) -> bool:
        """Put the picture of an outcome among those that all runs share; False where none are shared.

        Raises:
            OutputProblem: They cannot be written.
        """
        if not outcome.picture:
            return True
        if self._shared is None:
            return False
        # Two names of one file: quicker than the way to a thread and back.
        source, goal = (files.path(KIND, outcome.picture) for files in (self.store.files, self._shared))
        _link(source, goal)
        return True


def _is_whole(files: PictureFiles, sha256: str) -> bool:
    try:
        files.read(KIND, sha256)
    except (DamagedFile, ValueError):
        return False
    return True


def _link(source: Path, goal: Path) -> None:
    """Give a file a second name, or a copy where the disks differ; what lies there is replaced."""
    draft = goal.with_name(f".{goal.stem[:16]}-{os.getpid()}-{id(goal)}.part")
    try:
        try:
            os.link(source, draft)
        except FileNotFoundError:
            goal.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, draft)
    except OSError:
        _copied(source, draft)
    try:
        draft.replace(goal)
        draft.unlink(missing_ok=True)  # two names of one file are left as they are by a rename (POSIX rename)
    except OSError as error:
        raise OutputProblem(f"the picture cannot be kept in {goal.parents[2]} ({error.strerror})") from None


def _copied(source: Path, draft: Path) -> None:
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(source.read_bytes())
    except OSError as error:
        raise OutputProblem(f"the picture cannot be kept in {draft.parents[2]} ({error.strerror})") from None
