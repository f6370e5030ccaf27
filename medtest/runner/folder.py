"""Result folders: paths, locks, and atomic writing of files."""

from __future__ import annotations

import ctypes
import fcntl
import io
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import IO, Any

from medtest.core.errors import FolderInUse, OutputProblem
from medtest.core.files import file_sha256, manifest_line, read_object
from medtest.core.files.paths import path_from_here

MANIFEST = "manifest.sha256"
PRIVATE = ("ledger.sqlite", "judge.sqlite")
"""Beginnings of the names of private files of a system, which are not results and hence neither in the manifest nor in
MLflow.
"""
OUTPUTS = "outputs"
VIEWS = "views"
SHARD_FOLDERS = "shards"
"""Subfolder of a run's folder for the parts made with ``shard=K/N``: ``shards/3-of-16``."""
RUN_FILE = "run.json"
FORMAT = 3
"""Layout of a run's folder, stated in ``run.json``; raised when it changes."""
RECORDS = "records.parquet"
TABLES_OF = "tables_of"
"""Key of ``run.json``: SHA-256 of the records from which the folder's own tables and report were made."""
SWEEP_VARIABLE = "MEDTEST_SWEEP_ID"
"""Environment variable shared by all jobs of one multirun: they wait for each other's folders."""

_POLL = 0.2


def system_folder(home: Path, suite: str, record_name: str, digest: str) -> Path:
    """Return ``outputs/<suite>/<system>/<digest>`` under ``home``."""
    return home / OUTPUTS / suite / record_name / digest


def earlier_folder(home: Path, suite: str, system: str, digest: str, names: Sequence[str]) -> Path | None:
    """Return the folder of this run under another name: names are not in the digest, and finished cases are reused.

    Args:
        home: Folder that holds ``outputs/``.
        suite: Name of the suite.
        system: The system's id in the suite.
        digest: The run's digest.
        names: Names of the systems of this call, whose folders are excluded.

    Returns:
        The newest folder of a system with this id; None if there is none.
    """
    candidates: list[tuple[str, Path]] = []
    for folder in sorted((home / OUTPUTS / suite).glob(f"*/{digest}")):
        if folder.parent.name in names or not folder.is_dir():
            continue
        content = read_object(folder / "run.json")  # empty for a run that stopped before its first tables
        if content.get("system_id", folder.parent.name) == system:
            candidates.append((str(content.get("finished_at", "")), folder))
    return max(candidates)[1] if candidates else None


def series_folder(home: Path, suite: str, view: str = "") -> Path:
    """Return the folder of a series' tables and figures of all systems, with a subfolder for each relation.

    Args:
        home: Folder that holds ``outputs/``.
        suite: Name of the suite.
        view: Digest of the oracle if it is not the suite's own.
    """
    return home / OUTPUTS / suite / (f"alpha_sigma-{view}" if view else "alpha_sigma")


def view_folder(folder: Path, view: str) -> Path:
    """Return the folder of the tables and report of a view; the system's folder itself for "", its own view."""
    return folder / VIEWS / view if view else folder


def tables_are_stale(folder: Path) -> bool:
    """Return True if a folder's own tables were not made from its current records; see :func:`note_tables`."""
    return read_object(folder / RUN_FILE).get(TABLES_OF) != _records_sha256(folder)


def note_tables(folder: Path) -> None:
    """Note in ``run.json`` that a folder's own tables match its records; call it after writing them.

    Raises:
        OutputProblem: It cannot be written.
    """
    write_run(folder, {**read_object(folder / RUN_FILE), TABLES_OF: _records_sha256(folder)})


def check_format(folder: Path) -> None:
    """Refuse a folder whose files another version of medtest laid out; nothing in it is changed.

    Raises:
        OutputProblem: ``run.json`` states another format, or none.
    """
    content = read_object(folder / RUN_FILE)
    if not content or content.get("format") == FORMAT:
        return
    versions = content.get("versions")
    version = versions.get("medtest", "?") if isinstance(versions, dict) else "?"
    raise OutputProblem(
        f"{path_from_here(folder)} holds results of format {content.get('format', 1)}, written by medtest {version}; "
        f"this version reads format {FORMAT}. Nothing there was changed. Read it with that version, or move the folder "
        "elsewhere and run its command again."
    )


def write_run(folder: Path, content: Mapping[str, Any]) -> None:
    """Write ``run.json`` of a folder or of a view.

    Raises:
        OutputProblem: It cannot be written.
    """
    with writing_text(folder / RUN_FILE) as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def set_unread_aside(folder: Path) -> list[str]:
    """Rename every unreadable ``run.json`` of a folder and its views before it is replaced.

    Returns:
        Their paths below the folder.

    Raises:
        OutputProblem: One cannot be renamed.
    """
    renamed = []
    for path in (folder / RUN_FILE, *sorted((folder / VIEWS).glob(f"*/{RUN_FILE}"))):
        if path.is_file() and not read_object(path):
            with output_problems(path):
                path.rename(path.with_name(f"{path.name}.aside-{time.time_ns()}"))
            renamed.append(path.relative_to(folder).as_posix())
    return renamed


def _records_sha256(folder: Path) -> str:
    try:
        return file_sha256(folder / RECORDS)
    except OSError:
        return ""


def utc_now() -> str:
    """Return the time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name, synced to disk, when the block succeeds, and not at all otherwise.

    Raises:
        OutputProblem: The disk is full, the folder is read-only, and the like.
    """
    draft = path.with_name(f".{path.name}.tmp")
    try:
        with output_problems(path):
            with draft.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


@contextmanager
def writing_text(path: Path) -> Iterator[IO[str]]:
    """Open a UTF-8 file like :func:`writing`; line feeds are not converted.

    Bytes of a command line that are not UTF-8 (folders named in another encoding) are escaped by their number.
    """
    with writing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        yield text
        text.flush()
        text.detach()


@contextmanager
def output_problems(path: Path) -> Iterator[None]:
    """Convert write errors of the operating system to :class:`OutputProblem`."""
    try:
        yield
    except OSError as error:
        raise OutputProblem(
            f"{path.parent.name}/{path.name} cannot be written: {error.strerror or error}. "
            "Finished results are kept; run the same command again to continue."
        ) from error


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Make everything below a folder durable with a single wait for the disk.

    Raises:
        OSError: The disk could not be written.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None:  # not Linux
            os.sync()
        elif syncfs(handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Create a folder for results.

    Raises:
        OutputProblem: It cannot be created or written to.
    """
    with output_problems(folder / "records"):
        (folder / "records").mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()


def write_manifest(folder: Path) -> Path:
    """Write ``manifest.sha256`` over every file below a folder, in the format of ``sha256sum``; call it last.

    Args:
        folder: A system's folder. Call again whenever a file in it was added or changed.

    Returns:
        The manifest's path. ``sha256sum --check manifest.sha256`` inside the folder verifies it.

    Raises:
        OutputProblem: It cannot be written.
    """
    target = folder / MANIFEST
    with writing_text(target) as file:
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()):
            name = path.relative_to(folder).as_posix()
            belongs = not name.startswith((*PRIVATE, f"{SHARD_FOLDERS}/"))  # shards have their own manifests
            if name != MANIFEST and not name.endswith(".tmp") and belongs:
                file.write(manifest_line(file_sha256(path), name))
    return target


class FolderLock:
    """Operating-system lock of one folder; its file is beside the folder, because ``fresh=true`` moves the folder.

    The lock belongs to the open file: it is released when its process ends, even by a crash.

    Args:
        folder: The folder to lock.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder.with_name(f"{folder.name}.lock")
        self._folder = folder
        self._file: IO[str] | None = None

    def acquire(self) -> None:
        """Acquire the lock; wait if another job of the same multirun holds it.

        Raises:
            FolderInUse: Another process holds it.
            OutputProblem: The folder cannot be written.
        """
        with output_problems(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = self._path.open("a+", encoding="utf-8")
        if not _is_lock(file):
            file.close()
            raise OutputProblem(
                f"{self._path.name} exists, but medtest did not write it, so {self._folder.name} cannot be locked. "
                "Move the file away or choose another folder."
            )
        sweep = os.environ.get(SWEEP_VARIABLE, "")
        while True:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = self._read(file)
                if not sweep or holder.get("sweep") != sweep:
                    file.close()
                    raise FolderInUse(self._in_use_message(holder)) from None
                time.sleep(_POLL)
            except OSError as error:
                file.close()
                raise OutputProblem(f"{self._path.name} cannot be locked: {error.strerror}") from error
        self._file = file
        self._write(fresh=str(self._read(file).get("fresh", "")))

    def share(self) -> None:
        """Keep runs out of a folder that is only read, if it has a lock; nothing is created or written.

        Raises:
            FolderInUse: A process writes to it.
        """
        try:
            file = self._path.open(encoding="utf-8")
        except OSError:
            return  # the folder never held a run, or the lock is unreadable
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._read(file)
            file.close()
            raise FolderInUse(self._in_use_message(holder)) from None
        except OSError:
            file.close()  # a network share without locks
            return
        self._file = file

    def release(self) -> None:
        """Release the lock; its file stays, because removing it would let two processes hold "the" lock."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def move_aside(self, but: str = "") -> Path | None:
        """Rename the folder to ``<digest>.old-<timestamp>`` and return its new path; None if there is none.

        Within one multirun a folder is moved once, not by every job that uses it.

        Args:
            but: Name of a subfolder that is not moved.
        """
        sweep = os.environ.get(SWEEP_VARIABLE, "")
        if self._file is not None and sweep and self._read(self._file).get("fresh") == sweep:
            return None
        self._write(fresh=sweep)
        if not self._folder.exists():
            return None
        name = f"{self._folder.name}.old-{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}"
        names = chain([name], (f"{name}-{number}" for number in count(2)))
        target = next(path for path in map(self._folder.with_name, names) if not path.exists())
        with output_problems(self._folder):
            if but and (self._folder / but).exists():
                target.mkdir()
                for path in sorted(self._folder.iterdir()):
                    if path.name != but:
                        path.rename(target / path.name)
            else:
                self._folder.rename(target)
            sync_folder(target.parent)
        return target

    def _read(self, file: IO[str]) -> dict[str, object]:
        file.seek(0)
        try:
            content = json.loads(file.read() or "{}")
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}

    def _write(self, *, fresh: str) -> None:
        if self._file is None:
            return
        sweep = os.environ.get(SWEEP_VARIABLE, "")
        with output_problems(self._path):
            self._file.seek(0)
            self._file.truncate()
            json.dump({"pid": os.getpid(), "since": utc_now(), "sweep": sweep, "fresh": fresh}, self._file)
            self._file.flush()

    def _in_use_message(self, holder: dict[str, object]) -> str:
        place = "/".join(self._folder.parts[-4:])
        process = (
            f"process {holder['pid']} (since {holder.get('since', '?')})" if "pid" in holder else "another process"
        )
        return f"{place} is in use by {process}. Wait until it has ended, or stop it; its finished cases are kept."


def _is_lock(file: IO[str]) -> bool:
    """Return True if a lock file is new, or was written by medtest: whole, or truncated by a full disk."""
    file.seek(0)
    text = file.read(64).lstrip("\0").lstrip()
    return not text or text.startswith('{"pid"')
