"""Verification and repair of a store: pictures exist, are unaltered, and are listed in the index."""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from medtest.core.errors import MedtestError, OutputProblem
from medtest.core.files.by_content import DRAFT, KINDS, SUFFIX, DamagedFile, Kind, decode, relative_path
from medtest.runner.followups.guard import StoreLock
from medtest.runner.followups.store import FollowUpStore
from medtest.runner.pool.layout import usable_cores
from medtest.seeds.folders.layout import shown

ASIDE = "aside"
"""Folder below the store to which a repair moves files that do not belong there."""

Trouble: TypeAlias = Literal["missing", "altered", "truncated", "orphaned", "draft", "index"]
_NAME = re.compile(rf"([0-9a-f]{{64}}){re.escape(SUFFIX)}")
_COLUMNS = (("images", "image_sha256"), ("masks", "mask_sha256"))
"""Kinds of pictures with their column in the tables of sources and follow-ups."""
_AHEAD = 4
_PAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem of a store.

    Attributes:
        trouble: ``missing`` (a file named by the index does not exist), ``truncated`` (it is shorter than when
            written), ``altered`` (its pixels do not match its name), ``orphaned`` (the index does not name the file),
            ``draft`` (an unfinished file of a killed process), ``index`` (the index contradicts itself).
        file: Path below the store; "" for the index.
        detail: Details.
        used_by: Address of a follow-up that needs the file, or "".
        uses: Number of follow-ups that need it.
    """

    trouble: Trouble
    file: str
    detail: str = ""
    used_by: str = ""
    uses: int = 0

    def __str__(self) -> str:
        parts = [f"{self.trouble}: {shown(self.file) or 'index'}"]
        if self.detail:
            parts.append(f"({self.detail})")
        if self.uses:
            suffix = f" and {self.uses - 1:,} more" if self.uses > 1 else ""
            parts.append(f"of {self.used_by}{suffix}")
        return " ".join(parts)


@dataclass(frozen=True, kw_only=True)
class VerifyReport:
    """Result of a verification.

    Attributes:
        files: Pictures named by the index.
        entries: Follow-ups in the index, including skipped ones.
        findings: The problems.
        in_work: Files and drafts that another process is adding at the moment.
        moved: Files moved aside by a repair.
        forgotten: Follow-ups removed from the index by a repair, because a file of theirs is gone.
    """

    files: int
    entries: int
    findings: tuple[Finding, ...]
    in_work: int = 0
    moved: int = 0
    forgotten: int = 0

    @property
    def whole(self) -> bool:
        """True if there are no problems, or all were repaired."""
        return not self.findings


def verify_store(
    store: FollowUpStore, *, progress: Callable[[int, int], None] | None = None, workers: int | None = None
) -> VerifyReport:
    """Compare every picture of a store with its name, and every file with the index.

    Args:
        store: The store; may be opened read-only.
        progress: Called with the number of pictures read and their total.
        workers: Threads; the number of cores if None.

    Raises:
        MedtestError: The index is unreadable.
    """
    undisturbed = StoreLock(store.folder).is_free()
    report = _verify(store, progress, workers or usable_cores())
    if undisturbed and StoreLock(store.folder).is_free():
        return report
    # another process is adding: pictures are in the folder before the index names them
    settled = tuple(f for f in report.findings if f.trouble not in ("orphaned", "draft"))
    return replace(report, findings=settled, in_work=len(report.findings) - len(settled))


def repair_store(store: FollowUpStore, *, progress: Callable[[int, int], None] | None = None) -> VerifyReport:
    """Repair a store: move damaged and orphaned files aside, and remove follow-ups that lost a picture from the index.

    Only drafts are deleted; ``aside/<time>/`` keeps the moved files. The command that made the follow-ups remakes the
    removed ones.

    Args:
        store: The store, opened for writing.
        progress: As for :func:`verify_store`.

    Returns:
        The problems and repairs; ``findings`` are the problems before the repair.

    Raises:
        FolderInUse: Another process adds to it.
        OutputProblem: It cannot be written.
        MedtestError: The index itself is damaged.
    """
    with StoreLock(store.folder).alone():
        before = _verify(store, progress, usable_cores())
        aside = _new_folder(store.folder / ASIDE / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"))
        moved = sum(
            _move(store.folder, f.file, aside) for f in before.findings if f.trouble in ("altered", "truncated")
        )
        damaged = [f.file for f in before.findings if f.trouble in ("missing", "altered", "truncated")]
        forgotten = _forget(store, damaged)
        for orphan in _orphans(store):
            if orphan.trouble == "draft":
                _remove(store.folder / orphan.file)
            else:
                moved += _move(store.folder, orphan.file, aside)
    return replace(before, moved=moved, forgotten=forgotten)


def _verify(store: FollowUpStore, progress: Callable[[int, int], None] | None, workers: int) -> VerifyReport:
    findings = list(_index_findings(store))
    total = int(store.index.rows("SELECT count(*) FROM files")[0][0])
    entries = int(store.index.rows("SELECT count(*) FROM followups")[0][0])
    findings += _read_all(store, total, progress, workers)
    findings += _orphans(store)
    return VerifyReport(files=total, entries=entries, findings=tuple(findings))


# --------------------------------------------------------------------------------------------------------- pictures


def _read_all(
    store: FollowUpStore, total: int, progress: Callable[[int, int], None] | None, workers: int
) -> list[Finding]:
    """Read every picture named by the index, several at a time: decoding releases the GIL."""
    findings: list[Finding] = []
    waiting: deque[Future[Finding | None]] = deque()
    done = 0

    def settle() -> None:
        nonlocal done
        finding = waiting.popleft().result()
        done += 1
        if finding is not None:
            findings.append(_with_users(store, finding))
        if progress is not None:
            progress(done, total)

    with ThreadPoolExecutor(workers, thread_name_prefix="verify") as pool:
        for kind, sha256, size in _indexed_files(store):
            waiting.append(pool.submit(_check, store.folder, kind, sha256, size))
            if len(waiting) >= _AHEAD * workers:
                settle()
        while waiting:
            settle()
    return findings


def _indexed_files(store: FollowUpStore) -> Iterator[tuple[Kind, str, int]]:
    """Yield (kind, SHA-256, bytes) of every file of the index, page by page."""
    for kind in KINDS:
        last = ""
        while rows := store.index.rows(
            "SELECT sha256, bytes FROM files WHERE kind = ? AND sha256 > ? ORDER BY sha256 LIMIT ?", (kind, last, _PAGE)
        ):
            for sha256, size in rows:
                yield kind, str(sha256), int(size)
            last = str(rows[-1][0])


def _check(folder: Path, kind: Kind, sha256: str, size: int) -> Finding | None:
    try:
        name = relative_path(kind, sha256)
    except ValueError as error:
        return Finding(trouble="index", file="", detail=str(error))
    path = folder / name
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):  # a pipe would hang, a link may lead elsewhere
            return Finding(trouble="altered", file=name, detail="is not a regular file")
        with path.open("rb") as file:
            content = file.read(size + 1)
    except FileNotFoundError:
        return Finding(trouble="missing", file=name)
    except OSError as error:
        return Finding(trouble="altered", file=name, detail=f"cannot be read: {error.strerror or error}")
    if len(content) < size:
        return Finding(trouble="truncated", file=name, detail=f"{len(content):,} of {size:,} bytes")
    if len(content) > size:
        return Finding(trouble="altered", file=name, detail=f"more than the {size:,} bytes it had")
    try:
        decode(kind, sha256, content)
    except DamagedFile:
        return Finding(trouble="altered", file=name, detail="holds other pixels than its name says")
    return None


def _with_users(store: FollowUpStore, finding: Finding) -> Finding:
    """Add the follow-ups that need the file to a finding."""
    kind, sha256 = finding.file.partition("/")[0], Path(finding.file).stem
    condition = _users(kind)
    row = store.index.rows(
        "SELECT count(*), min(s.dataset || '/' || s.seed_id || '/' || f.relation || '_s' || f.severity || '_f' "  # noqa: S608 - our own words
        f"|| f.frame || '_r' || f.repeat) FROM followups f JOIN sources s ON s.id = f.source WHERE {condition}",
        (sha256, sha256),
    )[0]
    return replace(finding, uses=int(row[0]), used_by=str(row[1] or ""))


def _users(kind: str) -> str:
    column = dict(_COLUMNS)[kind]
    return f"f.{column} = ? OR f.source IN (SELECT id FROM sources WHERE {column} = ?)"  # noqa: S608 - our own words


# ------------------------------------------------------------------------------------------------- files and index


def _orphans(store: FollowUpStore) -> Iterator[Finding]:
    """Yield files among the pictures that are not in the index."""
    for kind in KINDS:
        for file in _walk(store.folder / kind):
            name = file.relative_to(store.folder).as_posix()
            if file.name.startswith(".") and file.name.endswith(DRAFT):
                yield Finding(trouble="draft", file=name, detail="left by a process that was killed")
                continue
            match = _NAME.fullmatch(file.name)
            expected = None if match is None else relative_path(kind, match[1])
            if match is None or name != expected or store.index.size(kind, match[1]) is None:
                yield Finding(trouble="orphaned", file=name, detail="the index does not name it")


def _walk(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder; links are not followed."""
    for place, _, files in os.walk(folder):
        for file in sorted(files):
            yield Path(place) / file


def _index_findings(store: FollowUpStore) -> Iterator[Finding]:
    """Yield contradictions within the index."""
    for (line,) in store.index.rows("PRAGMA quick_check(20)"):
        if line != "ok":
            raise MedtestError(
                f"{store.folder.name}/{store.index.path.name} is damaged ({line}). Move it away and make the "
                "follow-ups again: existing pictures are reused."
            )
    for table, row, parent, _ in store.index.rows("PRAGMA foreign_key_check"):
        yield Finding(trouble="index", file="", detail=f"row {row} of {table} names no row of {parent}")
    for kind, column in _COLUMNS:
        for table in ("followups", "sources"):
            query = (
                f"SELECT count(*) FROM {table} WHERE {column} != '' AND {column} NOT IN "  # noqa: S608 - our own words
                "(SELECT sha256 FROM files WHERE kind = ?)"
            )
            missing = int(store.index.rows(query, (kind,))[0][0])
            if missing:
                yield Finding(trouble="index", file="", detail=f"{missing:,} rows of {table} name {kind} without size")


def _forget(store: FollowUpStore, lost: Iterable[str]) -> int:
    """Remove follow-ups that need one of these files from the index; return their number."""
    forgotten = 0
    with store.index.transaction() as connection:
        for file in lost:
            kind, sha256 = file.partition("/")[0], Path(file).stem
            query = f"DELETE FROM followups AS f WHERE {_users(kind)}"  # noqa: S608 - our own words
            forgotten += connection.execute(query, (sha256, sha256)).rowcount
        connection.execute("DELETE FROM sources WHERE id NOT IN (SELECT source FROM followups)")
        for kind, column in _COLUMNS:
            connection.execute(
                f"DELETE FROM files WHERE kind = ? AND sha256 NOT IN (SELECT {column} FROM followups) "  # noqa: S608 - our own words
                f"AND sha256 NOT IN (SELECT {column} FROM sources)",
                (kind,),
            )
    return forgotten


def _new_folder(path: Path) -> Path:
    """Return an unused folder path: after the clock was set back a name may exist already."""
    number = 1
    while (free := path.with_name(f"{path.name}{f'-{number}' * (number > 1)}")).exists():
        number += 1
    return free


def _move(folder: Path, name: str, aside: Path) -> int:
    target = aside / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        (folder / name).replace(target)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise OutputProblem(f"{folder.name}/{name} cannot be moved aside: {error.strerror or error}") from error
    return 1


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputProblem(f"{path.name} cannot be removed: {error.strerror or error}") from error
