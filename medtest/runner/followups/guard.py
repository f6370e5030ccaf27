"""Lock of a store: shared by any number of processes that add, exclusive for one that repairs."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medtest.core.errors import FolderInUse, OutputProblem

LOCK = ".lock"
_TRIES = 10
_PAUSE_SECONDS = 0.03


class StoreLock:
    """Operating-system lock of one store; it is released when its process ends.

    Args:
        folder: The store's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._name = folder.name

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock together with other processes that add.

        Raises:
            FolderInUse: A process repairs the store.
            OutputProblem: The folder cannot be written.
        """
        with self._held(fcntl.LOCK_SH, f"{self._name} is being repaired by another process; try again afterwards."):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock exclusively.

        Raises:
            FolderInUse: A process adds to the store or repairs it.
            OutputProblem: The folder cannot be written.
        """
        with self._held(
            fcntl.LOCK_EX, f"{self._name} is in use by another process; repair it when that process has ended."
        ):
            yield

    def is_free(self) -> bool:
        """Return True if no process adds to the store or repairs it now."""
        try:
            handle = os.open(self._path, os.O_RDONLY)
        except OSError:
            return True  # no process ever added, or none can
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return True

    @contextmanager
    def _held(self, kind: int, words: str) -> Iterator[None]:
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise OutputProblem(f"{self._name} cannot be written: {error.strerror or error}") from error
        try:
            if not _try_lock(handle, kind):
                raise FolderInUse(words)
            yield
        finally:
            os.close(handle)


def _try_lock(handle: int, kind: int) -> bool:
    """Try to take the lock several times: :meth:`StoreLock.is_free` of another process holds it for an instant."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_SECONDS)
        else:
            return True
    return False
