"""Generated pictures, stored by content: the run's own, and those shared by all runs.

The run's pictures are stored in its folder by the SHA-256 of their pixels (:mod:`medtest.core.files.by_content`) before
the ledger marks a question as answered; ledger, cache and records refer to that hash and hold no picture. The shared
ones are next to the cache, which holds hashes too: a cached answer is valid only while its picture exists undamaged.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from medtest.api.calls.request import Outcome
from medtest.api.calls.retry import Reply
from medtest.api.drawn.keepers import Keepers
from medtest.api.drawn.store import KIND, KeptPicture, Store
from medtest.core.cases import Image
from medtest.core.errors import OutputProblem
from medtest.core.files.by_content import DamagedFile, PictureFiles


class KeptPictures:
    """Pictures of one run.

    Args:
        folder: Folder of the run's pictures (:data:`medtest.core.records.PICTURES` in its folder).
        shared: Folder of the pictures shared by all runs; None to share none; the cache then stores no pictures
            either.
        size: Longer side to which pictures are resized before they are stored; None keeps their size.
        threads: Number of threads that decode and write.
        helpers: Processes that do so instead; None for none.
    """

    def __init__(
        self,
        folder: Path,
        shared: Path | None = None,
        *,
        size: int | None = None,
        threads: int = 4,
        helpers: Keepers | None = None,
    ) -> None:
        self.store = Store(folder, size=size)
        self._shared = None if shared is None else PictureFiles(shared, durable=True)
        self._helpers = helpers
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="pictures")

    def close(self) -> None:
        """End the threads and the helpers."""
        self._pool.shutdown()
        if self._helpers is not None:
            self._helpers.close()

    async def keep(self, reply: Reply) -> Reply:
        """Store a reply's pictures, if there are any, and return the reply with names in place of the received files.

        Unreadable files are MALFORMED; a picture of one colour counts as moderation and is not stored.

        Raises:
            OutputProblem: The folder cannot be written.
        """
        more = tuple([await self.keep(other) for other in reply.more])
        if not reply.drawn:
            return replace(reply, more=more)
        loop = asyncio.get_running_loop()
        stored = await loop.run_in_executor(self._pool, self._keep, reply.drawn)
        reason = stored.reason or reply.reason
        return replace(reply, drawn=b"", picture=stored.picture, state=stored.state, reason=reason, more=more)

    def _keep(self, content: bytes) -> KeptPicture:
        stored = None if self._helpers is None else self._helpers.keep(content)
        return self.store.keep(content) if stored is None else stored

    def put(self, sha256: str, pixels: Image) -> None:
        """Store a picture generated in this process.

        Raises:
            OutputProblem: The folder cannot be written.
        """
        self.store.put(sha256, pixels)

    async def here(self, outcome: Outcome) -> bool:
        """Return True if the picture of an outcome is undamaged in the run folder; shared pictures are linked there.

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
        """Add the picture of an outcome to the shared ones; return False if none are shared.

        Raises:
            OutputProblem: They cannot be written.
        """
        if not outcome.picture:
            return True
        if self._shared is None:
            return False
        # Hard links: faster than switching to a thread and back.
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
    """Create a hard link, or a copy across disks, replacing any existing file."""
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
        draft.unlink(missing_ok=True)  # a rename between two links of one file leaves both (POSIX rename)
    except OSError as error:
        raise OutputProblem(f"the picture cannot be saved in {goal.parents[2]} ({error.strerror})") from None


def _copied(source: Path, draft: Path) -> None:
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(source.read_bytes())
    except OSError as error:
        raise OutputProblem(f"the picture cannot be saved in {draft.parents[2]} ({error.strerror})") from None
