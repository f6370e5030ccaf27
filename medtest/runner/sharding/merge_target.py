"""Target folder of joined shards: its choice, and checks that nothing in it is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from medtest.core.errors import typed_error
from medtest.core.files import read_object
from medtest.core.records import KEY_COLUMNS, PICTURES
from medtest.runner.folder import OUTPUTS, PRIVATE, RECORDS, RUN_FILE, SHARD_FOLDERS, FolderLock, system_folder
from medtest.runner.records.answers import FOLDER as ANSWERS
from medtest.runner.records.answers import THUMBNAILS
from medtest.runner.records.crafted import FOLDER as CRAFTED
from medtest.runner.records.parts import KEY
from medtest.runner.records.seals import CONTENT, CSV, JOINED, text_mark
from medtest.runner.records.shard_scan import damage
from medtest.runner.records.shards import DIGEST, RECORDS_CSV, SHARDS
from medtest.runner.sharding.shard_checks import RUN_NAMES, ShardPart, folder_mistake

BY_CONTENT = (PICTURES, CRAFTED, ANSWERS, THUMBNAILS)
"""Folders of a run with files named by their content: a merge copies the missing ones."""
_BEFORE_RECORDS = (SHARD_FOLDERS, SHARDS, *BY_CONTENT)
"""Permitted content of a run's folder before it has a record."""


def choose_target(parts: Sequence[ShardPart], home: Path, out: Path | None) -> Path:
    """Return the target folder: the typed one, else the run's folder below ``outputs/``.

    Raises:
        UserMistakes: It holds files of no run, or another run, or is a shard.
    """
    first = parts[0].run
    folder = _folder_at_home(parts, home) if out is None else out.expanduser().resolve()
    if problem := _foreign_reason(folder, parts):
        raise typed_error(
            "FOLDER" if out is None else "--out",
            f"{folder}, {problem}",
            f"a new folder, an empty one, or that of the run {first['digest']}",
            "choose another --out; nothing was written",
        )
    return folder


def _folder_at_home(parts: Sequence[ShardPart], home: Path) -> Path:
    suite, system, digest = (str(parts[0].run[key]) for key in RUN_NAMES)
    run_folders = {part.folder.resolve().parent for part in parts}
    if len(run_folders) == 1:  # the run was begun under another name of the system
        run = run_folders.pop().parent
        if run.name == digest and run.parent.parent == (home / OUTPUTS / suite).resolve():
            return run
    return system_folder(home, suite, system, digest)


def _foreign_reason(folder: Path, parts: Sequence[ShardPart]) -> str:
    """Explain why a folder does not belong to this run, as a phrase that continues its name; "" if it does."""
    shards = [part.folder.resolve() for part in parts]
    real = folder.resolve()
    if inside := next((shard for shard in shards if real.is_relative_to(shard)), None):
        return "a shard that is to be joined" if inside == real else f"inside the shard {inside.name}"
    if folder.is_symlink() and not folder.exists():
        return "a broken link"
    if folder.exists() and not folder.is_dir():
        return "a file"
    if not folder.is_dir():
        return ""
    run, digest = read_object(folder / RUN_FILE), str(parts[0].run["digest"])
    if KEY in run:
        return "which is a shard"
    digests = {str(run["digest"])} if "digest" in run else set()
    for path in (folder / RECORDS, *_pending(folder)):
        digests |= {_metadata(path).get(DIGEST, b"").decode(errors="replace")} - {""}
    if digests - {digest}:
        return f"a run of digest {min(digests - {digest})}"
    foreign_names = [] if digests else [path.name for path in sorted(folder.iterdir()) if not _ours(path.name)]
    return f"which holds files that do not belong to a run: {', '.join(foreign_names[:3])}" if foreign_names else ""


def _pending(folder: Path) -> list[Path]:
    """Return records that a run has not merged yet."""
    return sorted((folder / SHARDS).glob("shard-*.parquet"))


def _ours(name: str) -> bool:
    return name in _BEFORE_RECORDS or name.startswith(PRIVATE) or name == ".writable" or name.endswith(".tmp")


def _metadata(path: Path) -> dict[bytes, bytes]:
    try:
        return dict(pq.read_metadata(path).metadata or {})
    except (pa.ArrowException, OSError):
        return {}


def is_joined(folder: Path, mark: bytes) -> bool:
    """Return True if a folder's records are the complete result of joining exactly these shards.

    Args:
        folder: The run's folder.
        mark: Mark made from the shards' seals.
    """
    metadata = _metadata(folder / RECORDS)
    return (
        metadata.get(JOINED) == mark
        and (folder / RUN_FILE).is_file()
        and text_mark(folder / RECORDS_CSV) == metadata.get(CSV)
        and CONTENT in metadata
        and not _pending(folder)
        and not damage(folder / RECORDS)
    )


def make_room(folder: Path, lock: FolderLock, parts: Sequence[ShardPart], *, fresh: bool) -> None:
    """Ensure that no case is overwritten that these shards do not hold.

    Args:
        folder: The run's folder.
        lock: Its lock, which is held.
        parts: The shards.
        fresh: Move other content of the folder to ``<digest>.old-<time>`` if it has such cases.

    Raises:
        UserMistakes: It has such cases; nothing was changed.
    """
    lost = _lost_records(folder, parts)
    if lost and not fresh:
        raise folder_mistake(
            f"{folder}: it holds {lost}",
            "a run's folder with nothing but shards, or what an earlier merge of these made",
            "--fresh moves them aside, or --out FOLDER writes elsewhere",
        ).as_error()
    if lost:
        lock.move_aside(but=SHARD_FOLDERS)


def _lost_records(folder: Path, parts: Sequence[ShardPart]) -> str:
    """Describe the records that would be lost from a folder; "" if none."""
    if _pending(folder):
        return "cases of a run that was interrupted"
    if not (folder / RECORDS).exists():
        return ""
    if JOINED not in _metadata(folder / RECORDS):
        return "cases of a run that was not sharded, or that continued after a merge"
    keys = list(KEY_COLUMNS)
    try:
        target_keys = pq.read_table(folder / RECORDS, columns=keys)
        shard_keys = pa.concat_tables(pq.read_table(part.folder / RECORDS, columns=keys) for part in parts)
        count = target_keys.join(shard_keys.replace_schema_metadata(), keys, join_type="left anti").num_rows
    except (pa.ArrowException, OSError):
        return "records that cannot be read"
    return f"{count:,} case{'s' * (count != 1)} that none of these shards has" if count else ""
