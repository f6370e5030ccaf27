"""Joining of shards into the run that a single machine would have made.

Shards are joined only if they are complete: every shard exists once, finished, with one digest and one choice of cases,
and every record matches its seal. Otherwise the problems are reported and nothing is written.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from medtest.core.errors import Mistake, OutputProblem, UserMistakes
from medtest.core.records import REVISION
from medtest.runner.folder import (
    RECORDS,
    RUN_FILE,
    TABLES_OF,
    FolderLock,
    check_format,
    make_folder,
    output_problems,
    write_run,
    writing,
)
from medtest.runner.records.parts import KEY, read_seeds
from medtest.runner.records.shard_scan import ForeignFile, read_parts
from medtest.runner.records.shards import Find, RowGroup, Stamp, merge
from medtest.runner.reporting.finish import SUITE_FILE
from medtest.runner.reporting.frozen import COPY, STATED
from medtest.runner.sharding.merge_target import BY_CONTENT, choose_target, is_joined, make_room
from medtest.runner.sharding.shard_checks import ShardPart, folder_mistake, stated_plan, typed_shards, whole_run
from medtest.suite.checking.exclusion import COPY as EXCLUDED

JOINED = "joined"
"""Key of ``run.json`` of a joined run: the number of shards."""
_PLACES = 32
"""Bits of a place that count rows within a shard; the higher bits are the seed's position in the plan."""


@dataclass(frozen=True, kw_only=True)
class Joined:
    """Result of joining.

    Attributes:
        folder: The run's folder.
        shards: Number of shards.
        cases: Records of all.
        planned: Cases of the full plan.
    """

    folder: Path
    shards: int
    cases: int
    planned: int


def join(folders: Sequence[Path], *, home: Path, out: Path | None = None, fresh: bool = False) -> Joined:
    """Join the shards of one run of one system; shards stay unchanged.

    The result of an earlier merge of the same shards is not rewritten.

    Args:
        folders: Shards' folders (``…/shards/3-of-16``), or folders of runs that contain ``shards/``.
        home: Folder that holds ``outputs/`` with the run's folder.
        out: Another folder for the run.
        fresh: Move other content of the run's folder aside if it has cases that no shard holds.

    Raises:
        UserMistakes: A shard is missing, duplicated, unfinished, damaged, or of another run, or the folder belongs to
            another run; nothing was written.
        FolderInUse: A shard is being run.
        OutputProblem: The run's folder cannot be written.
    """
    parts = whole_run(typed_shards(folders))
    parts.sort(key=lambda part: part.account.number)
    for part in parts:
        check_format(part.folder)
    first = parts[0]
    target = choose_target(parts, home, out)
    check_format(target)
    with ExitStack() as locks:
        lock = FolderLock(target)
        locks.callback(lock.release)
        for part in parts:
            shard_lock = FolderLock(part.folder.resolve())
            shard_lock.share()
            locks.callback(shard_lock.release)
        schema, stamp, groups, newest, mark = _read(parts)
        lock.acquire()
        choose_target(parts, home, out)  # check for changes in the meantime
        cases = sum(len(group.places) for group in groups)
        if not is_joined(target, mark):
            make_room(target, lock, parts, fresh=fresh)
            make_folder(target)
            # run.json first, to claim the folder; the records last, whose mark states that everything else is there
            write_run(target, _account(parts, cases))
            for name in (SUITE_FILE, EXCLUDED, COPY):
                if (first.folder / name).is_file():
                    with writing(target / name) as file:
                        file.write((first.folder / name).read_bytes())
            merge(
                target,
                schema,
                stamp,
                groups,
                written=newest,
                judge=lambda table: table,
                system=str(first.run["system"]),
                joins=len(parts),
                mark=mark,
            )
        for part in parts:
            for name in BY_CONTENT:
                _copy_by_content(part.folder / name, target / name)
    return Joined(folder=target, shards=len(parts), cases=cases, planned=first.account.cases)


# --- records ---------------------------------------------------------------------------------------------------------


def _places_in(part: ShardPart) -> Find:
    """Return the function that gives the places of a shard's rows in the whole run, for its row groups in order.

    A place is the seed's position in the plan, then the row's in the shard's file.
    """
    seeds, numbers = read_seeds(part.folder), count()

    def find(columns: Mapping[str, Sequence[Any]]) -> NDArray[np.int64]:
        pairs = zip(columns["dataset"], columns["seed_id"], strict=True)
        places = ((seeds.get(pair, -1), row) for pair, row in zip(pairs, numbers, strict=False))
        return np.array([-1 if unit < 0 else (unit << _PLACES) + row for unit, row in places], dtype=np.int64)

    return find


def _read(parts: Sequence[ShardPart]) -> tuple[pa.Schema, Stamp, list[RowGroup], str, bytes]:
    """Read and verify all records once; return their schema, stamp and rows, and the mark of these shards.

    Raises:
        UserMistakes: Records are damaged, or judged otherwise.
    """
    with _readable(parts[0].folder), pq.ParquetFile(parts[0].folder / RECORDS) as file:
        schema = file.schema_arrow.remove_metadata()
    mistakes: list[Mistake] = []
    groups: list[RowGroup] = []
    newest, primary = "", ""
    revisions: set[int] = set()
    mark = hashlib.sha256()
    for part in parts:

        def add(problem: str, allowed: str, part: ShardPart = part) -> None:
            fix = f"run its command again, which repeats what is lost: {part.account.command}".rstrip(": ")
            mistakes.append(folder_mistake(f"{part.name}: {problem}", allowed, fix))

        try:
            row_groups, opened = read_parts(part.folder / RECORDS, schema, str(part.run["digest"]), _places_in(part))
        except (ForeignFile, OutputProblem) as error:
            add(
                f"{RECORDS} is {error}" if isinstance(error, ForeignFile) else str(error), "records as a run wrote them"
            )
            continue
        rows = sum(len(group.places) for group in row_groups)
        units = [np.unique(group.places >> _PLACES) for group in row_groups]
        if any(not part.account.shard.holds(int(unit)) for part_units in units for unit in part_units):
            add("cases of seeds that belong to another shard", f"every {part.account.of}th seed of the plan")
        if rows < part.account.finished:
            add(f"{rows:,} records, but {RUN_FILE} states {part.account.finished:,}", "all of a shard's records")
        primary = primary or opened.primary
        if opened.primary != primary:
            add(f"verdicts by another criterion than those of {parts[0].name}", "one criterion in all shards")
        revisions |= _revisions_in(part)
        if len(revisions) > 1:
            problem = f"records judged by another revision of the oracle than those of {parts[0].name}"
            add(problem, "one revision in all shards")
        newest = max(newest, opened.written)
        mark.update(f"{part.account.shard} {opened.seal.hex()}\n".encode())
        groups += row_groups
    if mistakes:
        raise UserMistakes(mistakes, f"nothing was merged: {len(mistakes)} mistake{'s' * (len(mistakes) > 1)}")
    stamp = Stamp(digest=str(parts[0].run["digest"]), primary=primary)
    return schema, stamp, groups, newest, mark.hexdigest().encode()


def _revisions_in(part: ShardPart) -> set[int]:
    """Return the oracle revisions that judged a shard's records."""
    with _readable(part.folder), pq.ParquetFile(part.folder / RECORDS) as file:
        return set(file.read(columns=[REVISION])[REVISION].drop_null().unique().to_pylist())


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        problem = f"{folder}: {RECORDS} is not a whole Parquet file"
        raise folder_mistake(
            problem, "records as a run wrote them", "run that shard's command again"
        ).as_error() from error


# --- folder of the run -----------------------------------------------------------------------------------------------


def _copy_by_content(source: Path, target: Path) -> None:
    """Copy missing files that are named by their content, by hard link on the same disk.

    Raises:
        OutputProblem: A file cannot be written.
    """
    for path in sorted(source.rglob("*")) if source.is_dir() else ():
        copy = target / path.relative_to(source)
        if path.is_symlink() or not path.is_file() or (copy.is_file() and copy.stat().st_size == path.stat().st_size):
            continue
        with output_problems(copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            draft = copy.with_name(f".{copy.name}.tmp")
            draft.unlink(missing_ok=True)
            try:
                os.link(path, draft)
            except OSError:
                shutil.copyfile(path, draft)
            draft.replace(copy)


def _account(parts: Sequence[ShardPart], cases: int) -> dict[str, Any]:
    """Return ``run.json`` of the whole run: sums of the shards' counts, and shared values from the first shard."""
    first = dict(parts[0].run)
    for name in (KEY, TABLES_OF):
        first.pop(name, None)
    verdicts: Counter[str] = Counter()
    for part in parts:
        verdicts.update(part.run.get("verdicts", {}))
    if plan := stated_plan(first):
        stated = (stated_plan(part.run).get("differs") for part in parts)
        named = (str(name) for names in stated if isinstance(names, list) for name in names)
        first[STATED] = {**plan, "differs": list(dict.fromkeys(named))}
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
