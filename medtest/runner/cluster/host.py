"""Actor of a worker: starts the worker process on its node and relays messages in both directions.

The process is the same as in local runs, with the same limits, allocator and threads. Its messages stay packed, so that
no user code is imported here; files that it keeps are returned with the message that mentions them.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import queue
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from medtest.runner.cluster.node import NodeCache, code_sha256, machine, versions
from medtest.runner.cluster.talk import HostStart, KeptFile, NodeFacts
from medtest.runner.pool.messages import Gone, LoadedModules
from medtest.runner.pool.process_worker import ProcessWorker

_LINGER = 0.03
"""Seconds to wait for further messages after the first, so that they are returned together."""
_MOST_MESSAGES = 512
_MOST_FILE = 256 * 1024**2
"""Size limit of one kept file in bytes."""
_END_SECONDS = 5.0


class PackedWorker(ProcessWorker):
    """Worker process whose tasks and messages pass through packed.

    ``inbox`` takes ``(self, bytes)``, and :class:`~medtest.runner.pool.messages.Gone` last.
    """

    def _send(self, task: Any) -> None:
        with suppress(OSError):  # it is gone; the closed pipe reports that
            self._tasks.send_bytes(task.job if isinstance(task, HostStart) else task)

    def _read(self) -> None:
        loaded = LoadedModules.__name__.encode()
        with self._messages as pipe:
            while True:
                try:
                    packed = pipe.recv_bytes()
                except (EOFError, OSError):
                    break
                if loaded in packed[:200]:
                    self._process.loaded(pickle.loads(packed).modules)  # noqa: S301 - of our own worker process
                else:
                    self._inbox.put((self, packed))
        self._inbox.put((self, Gone()))


class WorkerHost:
    """Host of one worker process; its methods are called from several threads.

    Args:
        probe: Path of a file that this node sees if it shares the run's folder, and the file's content.
        where: The machine of the run, :func:`medtest.runner.cluster.node.machine`.
    """

    def __init__(self, probe: tuple[str, str], where: str) -> None:
        self._cache = NodeCache()
        self._probe, self._where = probe, where
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._worker: PackedWorker | None = None
        self._kept: Path | None = None
        self._sent: dict[Path, tuple[int, int]] = {}
        self._lock = threading.Lock()
        self._early: dict[int, bytes] = {}
        self._next = 0
        self._killed = False

    def facts(self, node: str) -> NodeFacts:
        """Return facts about this node, which the cluster calls ``node``."""
        path, content = self._probe
        shares = False
        with suppress(OSError):
            shares = Path(path).read_text(encoding="utf-8") == content
        return NodeFacts(
            node=node,
            code=code_sha256(),
            versions=versions(),
            shares=shares,
            same_machine=machine() == self._where,
            cache=str(self._cache.folder),
        )

    def start(self, begin: HostStart) -> str:
        """Start the worker process; return the reason for failure, or ""."""
        if begin.data:
            from medtest.suite.data_url import fetched

            try:
                fetched(begin.data, self._cache.folder / "data", most=begin.cache_bytes)
            except Exception as error:  # noqa: BLE001 - whatever a file system raises ends in one message
                return str(error)
        if begin.root and not Path(begin.root).is_dir():
            return (
                f"it has no folder {begin.root}, from which seeds are read. Finished results are kept; put the data on "
                "a path that all nodes share, or into a store (data=s3://…)"
            )
        with self._lock:
            if self._killed:
                return "it was stopped"
            if begin.kept:
                self._kept = Path(begin.kept)
                self._kept.mkdir(parents=True, exist_ok=True)
            _prepare_environment(begin)
            self._worker = PackedWorker(begin, self._inbox)
            self._deliver()
        return ""

    def give(self, number: int, content: bytes) -> None:
        """Send the process its next task; calls may arrive out of order, so each has a number."""
        with self._lock:
            self._early[number] = content
            self._deliver()

    def _deliver(self) -> None:
        while self._worker is not None and self._next in self._early:
            self._worker._send(self._early.pop(self._next))
            self._next += 1

    def take(self, seconds: float) -> tuple[tuple[bytes, ...], tuple[KeptFile, ...], tuple[str, str] | None]:
        """Return messages, files, and at the end how the process ended; wait up to ``seconds`` for a message."""
        messages: list[bytes] = []
        until = time.monotonic() + seconds
        while len(messages) < _MOST_MESSAGES:
            try:
                _, message = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if isinstance(message, Gone):
                return tuple(messages), self._new_files(), self._end()
            if not messages:
                until = time.monotonic() + _LINGER
            messages.append(message)
        return tuple(messages), self._new_files() if messages else (), None

    def _new_files(self) -> tuple[KeptFile, ...]:
        if self._kept is None:
            return ()
        files = []
        for path in sorted(self._kept.rglob("*")):
            if path.name.endswith(".part") or not path.is_file() or path.is_symlink():
                continue
            status = path.stat()
            version = (status.st_size, status.st_mtime_ns)
            if self._sent.get(path) == version or status.st_size > _MOST_FILE:
                continue
            self._sent[path] = version
            content = path.read_bytes()
            name = path.relative_to(self._kept).as_posix()
            files.append(KeptFile(name, hashlib.sha256(content).hexdigest(), content))
        return tuple(files)

    def _end(self) -> tuple[str, str]:
        worker = self._worker
        if worker is None:
            return "never began", ""
        death = worker.death()
        words = worker.last_words()
        worker.end(patience=_END_SECONDS)
        return death, words

    def kill(self) -> None:
        """Kill the process and its children."""
        with self._lock:
            self._killed = True
            if self._worker is not None:
                self._worker.kill()

    def close(self) -> None:
        """Remove the temporary files on this node."""
        self.kill()
        self._cache.remove()
        sys.stdout.flush()


def _prepare_environment(begin: HostStart) -> None:
    """Prepare plug-ins and the working directory so that the process finds the same as the run's own."""
    if os.path.isdir(begin.folder):
        os.chdir(begin.folder)
    if begin.whole_path:
        sys.path[:] = begin.path
    else:
        sys.path += [place for place in begin.path if place not in sys.path and os.path.exists(place)]
