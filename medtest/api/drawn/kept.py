"""Pictures that services draw, decoded within bounds and kept by content: the run's own, and those that all runs share.

The run's lie in its folder by the SHA-256 of their pixels (:mod:`medtest.files.by_content`) before the ledger says that
a question is answered; ledger, cache and records name that hash and hold no picture. The shared ones lie beside the
cache, which names hashes too: an answer that it gives out counts only while its picture is there, whole.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import cv2
import numpy as np

from medtest.api.request import CallState, Outcome
from medtest.api.retry import Reply
from medtest.cases import Image, image_sha256
from medtest.errors import OutputProblem
from medtest.files.by_content import DamagedFile, PictureFiles, encode, without_metadata
from medtest.files.images import BadFileError, decode_rgb

MOST_PIXELS = 40_000_000
"""Largest picture of a service's that is decoded."""
_KIND: Final = "images"


def pixels_of(content: bytes, size: int | None = None) -> Image:
    """Return a service's picture as uint8 RGB H×W×3.

    Args:
        content: The file, in any format of :mod:`medtest.files.images`.
        size: Longer side that it is resized to; None keeps its own.

    Raises:
        BadFileError: It is no readable picture of at most :data:`MOST_PIXELS`.
    """
    pixels = decode_rgb(content, max_pixels=MOST_PIXELS)
    longer = max(pixels.shape[:2])
    if size is None or longer == size:
        return pixels
    height, width = (max(1, round(side * size / longer)) for side in pixels.shape[:2])
    way = cv2.INTER_AREA if longer > size else cv2.INTER_CUBIC
    resized: Image = cv2.resize(pixels, (width, height), interpolation=way)
    return resized


def is_blank(pixels: Image) -> bool:
    """Say whether a picture is of one colour: some services answer so to what they will not draw."""
    first = pixels[:1, :1]
    return bool(np.array_equal(pixels[0], np.broadcast_to(first[0], pixels[0].shape)) and (pixels == first).all())


class KeptPictures:
    """The pictures of one run.

    Args:
        folder: Of the run's pictures (:data:`medtest.records.PICTURES` in its folder).
        shared: Of the pictures that all runs share; None shares none, and then the cache keeps no picture either.
        size: Longer side to which pictures are made before they are kept; None keeps theirs.
        threads: In which they are decoded and written.
    """

    def __init__(self, folder: Path, shared: Path | None = None, *, size: int | None = None, threads: int = 4) -> None:
        self.files = PictureFiles(folder, durable=True)
        self._shared = None if shared is None else PictureFiles(shared, durable=True)
        self._size = size
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="pictures")

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    async def keep(self, reply: Reply) -> Reply:
        """Return a reply with the name of its picture, which is on disk now, in place of the file that came.

        What cannot be read is MALFORMED; a picture of one colour is moderation and is not kept.

        Raises:
            OutputProblem: The folder cannot be written.
        """
        found: Reply = await asyncio.get_running_loop().run_in_executor(self._pool, self._keep, reply)
        return found

    def _keep(self, reply: Reply) -> Reply:
        content = reply.drawn
        reply = replace(reply, drawn=b"")
        try:
            pixels = pixels_of(content, self._size)
        except BadFileError as error:
            return replace(reply, state=CallState.MALFORMED, reason=f"what came {error}")
        if is_blank(pixels):
            return replace(reply, state=CallState.CONTENT_FILTER, reason="the picture is of one colour")
        sha256 = image_sha256(pixels)
        self.put(sha256, pixels, content)
        return replace(reply, picture=sha256)

    def put(self, sha256: str, pixels: Image, content: bytes = b"") -> None:
        """Keep a picture.

        Args:
            sha256: Its name.
            pixels: uint8 H×W×3.
            content: The file that they were read from, which is kept without its metadata where it is of the same
                kind; else they are encoded.

        Raises:
            OutputProblem: The folder cannot be written.
        """
        plain = None if self._size is not None else without_metadata(content)
        try:
            self.files.put_bytes(_KIND, sha256, encode(_KIND, pixels) if plain is None else plain)
        except OSError as error:
            raise OutputProblem(
                f"the picture that was drawn cannot be kept in {self.files.folder} ({error.strerror}): make room, and"
                " run the same command to go on"
            ) from None

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
        if _is_whole(self.files, sha256):
            return True
        if self._shared is None or not _is_whole(self._shared, sha256):
            return False
        _link(self._shared.path(_KIND, sha256), self.files.path(_KIND, sha256))
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
        loop = asyncio.get_running_loop()
        source, goal = (files.path(_KIND, outcome.picture) for files in (self.files, self._shared))
        await loop.run_in_executor(self._pool, _link, source, goal)
        return True


def _is_whole(files: PictureFiles, sha256: str) -> bool:
    try:
        files.read(_KIND, sha256)
    except (DamagedFile, ValueError):
        return False
    return True


def _link(source: Path, goal: Path) -> None:
    """Give a file a second name, or a copy where the disks differ; what lies there is replaced."""
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        draft = goal.with_name(f".{goal.stem[:16]}-{os.getpid()}-{id(goal)}.part")
        try:
            os.link(source, draft)
        except OSError:
            draft.write_bytes(source.read_bytes())
        draft.replace(goal)
        draft.unlink(missing_ok=True)  # two names of one file are left as they are by a rename (POSIX rename)
    except OSError as error:
        raise OutputProblem(f"the picture cannot be kept in {goal.parent.parent.parent} ({error.strerror})") from None
