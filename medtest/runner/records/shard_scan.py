"""Reading of an earlier run's records: read completely, verified, and set aside if unusable.

A file that is truncated, whose content differs from what was written (:mod:`medtest.runner.records.seals`), or that
belongs to another run is set aside, and its cases are run again. Missing score columns are filled.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from medtest.core.records import FIXED_COLUMNS, KEY_COLUMNS
from medtest.runner.folder import RECORDS, output_problems
from medtest.runner.records.judged_by import JudgedBy
from medtest.runner.records.seals import CONTENT, CSV, Seal
from medtest.runner.records.shards import DIGEST, PRIMARY, SHARD, SHARDS, WRITTEN, Find, RowGroup, codes_of

_NEEDED = frozenset(name for name, _ in FIXED_COLUMNS)


class ForeignFile(Exception):
    """Raised if a file in the folder is not a complete file of this run."""


@dataclass(slots=True, kw_only=True)
class Scan:
    """Records of an earlier run.

    Attributes:
        parts: Row groups from the oldest to the newest.
        written: Time when the newest file was closed, "" if there is none.
        set_aside: Unusable files.
        csv: SHA-256 of ``records.csv`` according to the merged file, b"" if not recorded.
    """

    parts: list[RowGroup]
    written: str
    set_aside: list[str]
    csv: bytes = b""


@dataclass(slots=True, kw_only=True)
class OpenedRecords:
    """File of records with its metadata.

    Attributes:
        file: The file.
        primary: The criterion of its verdicts.
        written: Time of writing.
        seal: The seal of its content.
        csv: SHA-256 of ``records.csv``, b"" if not recorded.
        fits: True if it has the present columns of records.
    """

    file: pq.ParquetFile
    primary: str
    written: str
    seal: bytes
    csv: bytes
    fits: bool


def _open(path: Path, schema: pa.Schema, digest: str) -> OpenedRecords:
    """Open a file of records.

    Raises:
        ForeignFile: It is truncated, or not of this run.
    """
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        file_schema, metadata = file.schema_arrow, file.metadata.metadata or {}
    except Exception as error:
        raise ForeignFile("not a whole Parquet file") from error
    same_types = all(
        file_schema.field(name).type == schema.field(name).type for name in set(file_schema.names) & set(schema.names)
    )
    problem = ""
    if metadata.get(DIGEST, b"").decode(errors="replace") != digest:
        problem = "of another run"
    elif not same_types or not _NEEDED.issubset(file_schema.names):
        problem = "with other columns"
    if problem:
        file.close()
        raise ForeignFile(problem)
    return OpenedRecords(
        file=file,
        primary=metadata.get(PRIMARY, b"").decode(errors="replace"),
        written=metadata.get(WRITTEN, b"").decode(errors="replace"),
        seal=metadata.get(CONTENT, b""),
        csv=metadata.get(CSV, b""),
        fits=file_schema.names == schema.names,
    )


def scan(
    folder: Path, schema: pa.Schema, digest: str, find: Find, judged: JudgedBy | None = None, *, look: bool = False
) -> Scan:
    """Read all records of an earlier run, verifying each page, and set unusable files aside.

    Args:
        folder: The system's folder.
        schema: Schema of the records.
        digest: The run's digest.
        find: Returns the places of rows in the plan.
        judged: Present judgement; None if nothing is judged again.
        look: True to leave all files in place and skip unusable ones.
    """
    result = Scan(parts=[], written="", set_aside=[])
    for draft in () if look else (folder / SHARDS).glob(".*.tmp"):
        draft.unlink(missing_ok=True)
    shards = sorted((folder / SHARDS).glob("*.parquet"))
    records = folder / RECORDS
    for path in ([records] if records.exists() else []) + shards:
        try:
            if path is not records and not SHARD.fullmatch(path.name):
                raise ForeignFile("with a foreign name")
            parts, opened = read_parts(path, schema, digest, find, judged)
        except ForeignFile as reason:
            if look:
                continue
            aside = path.with_name(f"{path.name}.aside-{time.time_ns()}")
            with output_problems(path):
                path.rename(aside)
            result.set_aside.append(f"{path.name}: {reason}")
            continue
        result.parts += parts
        result.written = max(result.written, opened.written)
        result.csv = opened.csv if path is records else result.csv
    return result


def damage(path: Path) -> str:
    """Describe the damage of a file of records according to its seal; "" if there is none."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            metadata = file.metadata.metadata or {}
            seal = Seal(*(metadata.get(key, b"").decode(errors="replace") for key in (DIGEST, PRIMARY, WRITTEN)))
            for group in range(file.metadata.num_row_groups):
                seal.add(file.read_row_group(group, use_threads=False))
    except Exception:  # noqa: BLE001 - as above
        return "damaged"
    return "" if metadata.get(CONTENT) == seal.value() else "not what was written"


def read_parts(
    path: Path, schema: pa.Schema, digest: str, find: Find, judged: JudgedBy | None = None
) -> tuple[list[RowGroup], OpenedRecords]:
    """Read a file of records completely, verifying each page and its seal.

    Args:
        path: The file.
        schema: Schema of the records.
        digest: The run's digest.
        find: Returns the places of rows in the plan.
        judged: Present judgement.

    Returns:
        Its row groups, and its metadata.

    Raises:
        ForeignFile: It is truncated, altered, of another run, or has cases that are not in the plan.
    """
    opened = _open(path, schema, digest)
    parts: list[RowGroup] = []
    seal = Seal(digest, opened.primary, opened.written)
    with opened.file as file:
        for group in range(file.metadata.num_row_groups):
            try:
                table = file.read_row_group(
                    group, use_threads=False
                )  # read all columns to detect a damaged page anywhere
                seal.add(table)
                codes = codes_of(table)
                stale = None if judged is None else judged.stale(table, table.column_names)
                places = find(table.select(KEY_COLUMNS).to_pydict())
            except Exception as error:
                raise ForeignFile("damaged") from error
            if (places < 0).any():
                raise ForeignFile("with cases that this suite does not have")
            parts.append(
                RowGroup(
                    path=path,
                    group=group,
                    places=places,
                    codes=codes,
                    primary=opened.primary,
                    fits=opened.fits,
                    stale=stale if stale is not None and stale.any() else None,
                )
            )
    if opened.seal != seal.value():
        raise ForeignFile("not what was written")
    return parts, opened
