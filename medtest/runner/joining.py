"""Shards of a run, made anywhere, joined into the run that one machine would have made.

Nothing is joined that is not whole: every shard is there once, finished, of one digest and one choice of cases, and
every record is read and held against its seal. What is wrong is told at once, and nothing is written then.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from medtest.errors import Mistake, OutputProblem, UserMistakes
from medtest.files import read_object
from medtest.records import PICTURES
from medtest.runner.finish import SUITE_FILE
from medtest.runner.folder import (
    RECORDS,
    RUN_FILE,
    SHARD_FOLDERS,
    TABLES_OF,
    FolderLock,
    make_folder,
    output_problems,
    system_folder,
    utc_now,
    write_run,
)
from medtest.runner.records.crafted import FOLDER as CRAFTED
from medtest.runner.records.parts import KEY, read_seeds
from medtest.runner.records.shard_scan import ForeignFile, read_parts
from medtest.runner.records.shards import SHARDS, RowGroup, Stamp, merge
from medtest.runner.shard_checks import ShardPart, folder_mistake, shards_in, whole_run
from medtest.suite.exclusion import COPY as EXCLUDED

JOINED = "joined"
"""Key of ``run.json`` of a run that was joined of shards: how many."""
_BY_CONTENT = (PICTURES, CRAFTED)
_PLACES = 32
"""Bits of a place that count rows within a shard; what lies above is the seed's position in the plan."""


@dataclass(frozen=True, kw_only=True)
class Joined:
    """What came of joining.

    Attributes:
        folder: The run's folder.
        shards: How many shards there were.
        cases: Records of all.
        planned: Cases of the full plan.
    """

    folder: Path
    shards: int
    cases: int
    planned: int


def join(folders: Sequence[Path], *, home: Path, fresh: bool = False) -> Joined:
    """Join the shards of one run of one system; shards stay as they are.

    Args:
        folders: Shards' folders (``…/shards/3-of-16``), or folders of runs that hold ``shards/``.
        home: Folder that holds ``outputs/``: where the run goes whose shards do not all lie in one run's folder.
        fresh: Move what the run's folder holds beside its shards aside, where no earlier joining made it.

    Raises:
        UserMistakes: A shard is missing, there twice, not finished, damaged, or of another run; nothing was written.
        FolderInUse: A shard is being run.
        OutputProblem: The run's folder cannot be written.
    """
    found = [shard for folder in folders for shard in shards_in(folder)]
    parts = whole_run(found)
    parts.sort(key=lambda part: part.account.number)
    first = parts[0]
    above = {part.folder.resolve().parent for part in parts}
    names = [str(first.run[key]) for key in ("suite", "system", "digest")]
    target = above.pop().parent if len(above) == 1 else system_folder(home, *names)
    with ExitStack() as locks:
        for folder in sorted({target, *(part.folder.resolve() for part in parts)}):
            lock = FolderLock(folder)
            lock.acquire()
            locks.callback(lock.release)
        schema, stamp, groups, written = _read(parts)
        _make_room(target, fresh=fresh)
        make_folder(target)
        counts = merge(
            target,
            schema,
            stamp,
            groups,
            written=written,
            judge=lambda table: table,
            system=str(first.run["system"]),
            joins=len(parts),
        )
        for part in parts:
            for name in _BY_CONTENT:
                _take_over(part.folder / name, target / name)
        for name in (SUITE_FILE, EXCLUDED):
            if (first.folder / name).is_file():
                with output_problems(target / name):
                    shutil.copyfile(first.folder / name, target / name)
        write_run(target, _account(parts, int(counts.sum())))
    return Joined(folder=target, shards=len(parts), cases=int(counts.sum()), planned=first.account.cases)


# --- their records ---------------------------------------------------------------------------------------------------


class _Places:
    """Places of a shard's rows in the whole: the seed's position in the plan, then the row's in its file."""

    def __init__(self, part: ShardPart) -> None:
        self._seeds = read_seeds(part.folder)
        self._row = 0

    def find(self, columns: Mapping[str, Sequence[Any]]) -> NDArray[np.int64]:
        pairs = zip(columns["dataset"], columns["seed_id"], strict=True)
        units = np.array([self._seeds.get(pair, -1) for pair in pairs], dtype=np.int64)
        rows = np.arange(self._row, self._row + len(units), dtype=np.int64)
        self._row += len(units)
        return np.where(units < 0, -1, (units << _PLACES) + rows)


def _read(parts: Sequence[ShardPart]) -> tuple[pa.Schema, Stamp, list[RowGroup], str]:
    """Read all records once, verified.

    Raises:
        UserMistakes: Records are damaged, or judged otherwise.
    """
    with _readable(parts[0].folder), pq.ParquetFile(parts[0].folder / RECORDS) as file:
        schema = file.schema_arrow.remove_metadata()
    mistakes: list[Mistake] = []
    groups: list[RowGroup] = []
    written, primary = "", ""
    for part in parts:
        again = f"run its command again, which makes good what is lost: {part.account.command}".rstrip(": ")
        try:
            found, opened = read_parts(part.folder / RECORDS, schema, str(part.run["digest"]), _Places(part).find)
        except (ForeignFile, OutputProblem) as error:
            what = f"{part.name}: {RECORDS} is {error}" if isinstance(error, ForeignFile) else f"{part.name}: {error}"
            mistakes.append(folder_mistake(what, "records as a run wrote them", again))
            continue
        rows = sum(len(group.places) for group in found)
        units = [np.unique(group.places >> _PLACES) for group in found]
        if any(not part.account.shard.holds(int(unit)) for some in units for unit in some):
            what = f"{part.name}: cases of seeds that are another shard's"
            mistakes.append(folder_mistake(what, f"every {part.account.of}th seed of the plan", again))
        if rows < part.account.finished:
            what = f"{part.name}: {rows:,} records, where {RUN_FILE} speaks of {part.account.finished:,}"
            mistakes.append(folder_mistake(what, "all of a shard's records", again))
        primary = primary or opened.primary
        if opened.primary != primary:
            what = f"{part.name}: verdicts by another criterion than those of {parts[0].name}"
            mistakes.append(folder_mistake(what, "one criterion in all shards", again))
        written = max(written, opened.written)
        groups += found
    if mistakes:
        raise UserMistakes(mistakes, f"nothing was joined: {len(mistakes)} mistake{'s' * (len(mistakes) > 1)}")
    return schema, Stamp(digest=str(parts[0].run["digest"]), primary=primary), groups, written


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        what = f"{folder}: {RECORDS} is not a whole Parquet file"
        raise folder_mistake(
            what, "records as a run wrote them", "run that shard's command again"
        ).as_error() from error


# --- the run's folder ------------------------------------------------------------------------------------------------


def _make_room(target: Path, *, fresh: bool) -> None:
    """See that nothing is written over that no shard holds.

    Raises:
        UserMistakes: The folder holds a run of its own.
    """
    own = (target / RECORDS).is_file() or any((target / SHARDS).glob("shard-*.parquet"))
    if not own or JOINED in read_object(target / RUN_FILE):
        return
    if not fresh:
        raise folder_mistake(
            f"{target}: it holds cases of a run that was not made of shards",
            "a run's folder with nothing but shards, or what an earlier merge made",
            "--fresh moves them aside",
        ).as_error()
    aside = target / f"before-merge-{utc_now().replace(':', '')}"
    with output_problems(target / RECORDS):
        aside.mkdir()
        for path in sorted(target.iterdir()):
            if path not in (aside, target / SHARD_FOLDERS) and not path.name.startswith("before-merge-"):
                path.rename(aside / path.name)


def _take_over(source: Path, target: Path) -> None:
    """Take kept pictures over, by link where the disk is one; their names are their content.

    Raises:
        OutputProblem: One cannot be written.
    """
    for path in sorted(source.rglob("*")) if source.is_dir() else ():
        to = target / path.relative_to(source)
        if path.is_symlink() or not path.is_file() or to.exists():
            continue
        with output_problems(to):
            to.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, to)
            except OSError:
                draft = to.with_name(f".{to.name}.tmp")
                shutil.copyfile(path, draft)
                draft.replace(to)


def _account(parts: Sequence[ShardPart], cases: int) -> dict[str, Any]:
    """Return ``run.json`` of the whole: sums of what shards count, and the first one's for what they have in common."""
    first = dict(parts[0].run)
    for name in (KEY, TABLES_OF):
        first.pop(name, None)
    verdicts: Counter[str] = Counter()
    for part in parts:
        verdicts.update(part.run.get("verdicts", {}))
    shares = [(float(part.run.get("error_percent", 0.0)), part.account.finished) for part in parts]
    command = [token for token in _tokens(parts[0].account.command) if not token.startswith("shard=")]
    return {
        **first,
        "finished_at": max(str(part.run.get("finished_at", "")) for part in parts),
        "cases_executed": sum(int(part.run.get("cases_executed", 0)) for part in parts),
        "cases_reused": sum(int(part.run.get("cases_reused", 0)) for part in parts),
        "cases_finished": cases,
        "cases_planned": parts[0].account.cases,
        "partial": cases < parts[0].account.cases,
        "verdicts": dict(verdicts),
        "error_percent": sum(p * n for p, n in shares) / max(1, sum(n for _, n in shares)),
        "workers": sum(int(part.run.get("workers", 0)) for part in parts),
        "command": shlex.join(command),
        "mlflow_run_id": None,
        JOINED: len(parts),
    }


def _tokens(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []
