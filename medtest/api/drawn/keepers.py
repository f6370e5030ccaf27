"""Helper processes that store pictures: decoding takes longer than a fast server's whole answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from medtest.api.calls.request import CallState
from medtest.api.drawn.store import KeptPicture
from medtest.core.errors import OutputProblem

_FIRST = 48
"""Number of pictures stored in the main process, because starting helpers would take longer."""
_HANDED_ON = (
    *("PATH", "PYTHONPATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "SYSTEMROOT"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONHASHSEED"),
)
"""Environment variables passed to helper processes; those with keys are not among them."""


class _Keeper:
    """Helper process, used by one thread at a time."""

    def __init__(self, folder: Path, size: int | None) -> None:
        command = [sys.executable, "-m", "medtest.api.drawn.keeper", str(folder), str(size or 0)]
        environment = {name: value for name in _HANDED_ON if (value := os.environ.get(name)) is not None}
        roots = [str(Path(__file__).parents[3]), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, roots))
        self._process = subprocess.Popen(  # noqa: S603 - runs this program with its own paths
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=folder.parent
        )

    def keep(self, content: bytes) -> KeptPicture | None:
        """Return the stored picture, or None if the process has ended."""
        process = self._process
        try:
            assert process.stdin is not None and process.stdout is not None  # noqa: S101 - both pipes were requested
            process.stdin.write(len(content).to_bytes(4, "big"))
            process.stdin.write(content)
            process.stdin.flush()
            reply = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            return None
        if "problem" in reply:
            raise OutputProblem(reply["problem"])
        return KeptPicture(reply["picture"], CallState(reply["state"]), reply["reason"])

    def close(self) -> None:
        """Close the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Keepers:
    """Pool of helper processes, one per requesting thread, started once enough pictures have arrived.

    Args:
        folder: Picture folder of the run; its parent exists.
        size: Longer side to which pictures are resized; None keeps their size.
        most: Maximum number of processes.
        first: Number of pictures stored without helpers.
    """

    def __init__(self, folder: Path, *, size: int | None, most: int, first: int = _FIRST) -> None:
        self._folder, self._size, self._most, self._first = folder, size, most, first
        self._lock = threading.Lock()
        self._free: list[_Keeper] = []
        self._all: list[_Keeper] = []
        self._seen = 0
        self._broken = False

    def keep(self, content: bytes) -> KeptPicture | None:
        """Return the stored picture; None if the caller should store it itself.

        Raises:
            OutputProblem: The folder cannot be written.
        """
        with self._lock:
            self._seen += 1
            if self._seen <= self._first or self._broken:
                return None
            keeper = self._free.pop() if self._free else None
            if keeper is None and len(self._all) >= self._most:
                return None
            if keeper is None:
                try:
                    keeper = _Keeper(self._folder, self._size)
                except OSError:  # no process available: continue without
                    self._broken = True
                    return None
                self._all.append(keeper)
        stored = keeper.keep(content)
        with self._lock:
            if stored is None:
                self._broken = True
            else:
                self._free.append(keeper)
        return stored

    def close(self) -> None:
        """Close all processes."""
        with self._lock:
            keepers, self._all, self._free = self._all, [], []
            self._broken = True
        for keeper in keepers:
            keeper.close()
