"""Records that an earlier run left: read whole, verified, and set aside where they cannot be used.

A file that is torn, whose content is not what was written (:mod:`medtest.runner.records.seals`), or that is not of this
run is set aside, and its cases are run again. Files of the version before have no seal and are read without one;
columns that they lack are filled.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from medtest.core.records import KEY_COLUMNS
from medtest.runner.folder import RECORDS, output_problems
from medtest.runner.records.judged_by import JudgedBy
from medtest.runner.records.seals import CONTENT, CSV, SEALED, Seal
from medtest.runner.records.shards import DIGEST, PRIMARY, SHARD, SHARDS, WRITTEN, Find, RowGroup, codes_of

_NEEDED = (*KEY_COLUMNS, "verdict", "reason")


class ForeignFile(Exception):
    """A file in the folder that is not a whole file of this run."""


@dataclass(slots=True, kw_only=True)
class Scan:
    """What an earlier run left.

    Attributes:
        parts: Row groups from the oldest to the newest.
        written: When the newest file was closed, "" where there is none.
        set_aside: Files that could not be used.
        csv: SHA-256 of ``records.csv`` as the merged file has it, b"" where it does not say.
    """

    parts: list[RowGroup]
    written: str
    set_aside: list[str]
    csv: bytes = b""


@dataclass(slots=True, kw_only=True)
class OpenedRecords:
    """A file of records whose footer was read.

    Attributes:
        file: The file.
        primary: The criterion of its verdicts.
        written: When it was written.
        seal: The seal of its content, b"" where it has none.
        csv: SHA-256 of ``records.csv``, b"" where it does not say.
        fits: Whether it has the columns that records have now.
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
        ForeignFile: It is torn, or not of this run.
    """
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        found, metadata = file.schema_arrow, file.metadata.metadata or {}
    except Exception as error:
        raise ForeignFile("not a whole Parquet file") from error
    seal = metadata.get(CONTENT, b"")
    lacking = [field.name for field in schema if field.name not in found.names]
    other = [field.name for field in found if field.name not in schema.names]
    same = all(found.field(name).type == schema.field(name).type for name in set(found.names) & set(schema.names))
    problem = ""
    if metadata.get(DIGEST, b"").decode(errors="replace") != digest:
        problem = "of another run"
    elif not same or {*_NEEDED} & {*lacking} or (lacking and other and not seal):
        # Without a seal, one column more and one less may be one whose name was damaged.
        problem = "with other columns"
    if problem:
        file.close()
        raise ForeignFile(problem)
    return OpenedRecords(
        file=file,
        primary=metadata.get(PRIMARY, b"").decode(errors="replace"),
        written=metadata.get(WRITTEN, b"").decode(errors="replace"),
        seal=seal or metadata.get(SEALED, b""),
        csv=metadata.get(CSV, b""),
        fits=found.names == schema.names,
    )


def scan(
    folder: Path, schema: pa.Schema, digest: str, find: Find, judged: JudgedBy | None = None, *, look: bool = False
) -> Scan:
    """Read everything an earlier run left, verifying each page, and set aside what cannot be used.

    Args:
        folder: The system's folder.
        schema: What records look like.
        digest: The run's.
        find: Places of rows in the plan.
        judged: By what records are judged now; None where none are judged again.
        look: Leave all files as they are: those that cannot be used are passed over.
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
    """Return what is wrong with a file of records by its own seal; "" for nothing, or where it has none."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            metadata = file.metadata.metadata or {}
            seal = Seal(*(metadata.get(key, b"").decode(errors="replace") for key in (DIGEST, PRIMARY, WRITTEN)))
            for group in range(file.metadata.num_row_groups):
                seal.add(file.read_row_group(group, use_threads=False))
    except Exception:  # noqa: BLE001 - as above
        return "damaged"
    stated = metadata.get(CONTENT, b"") or metadata.get(SEALED, b"")
    return "not what was written" if stated and stated != seal.value() else ""


def read_parts(
    path: Path, schema: pa.Schema, digest: str, find: Find, judged: JudgedBy | None = None
) -> tuple[list[RowGroup], OpenedRecords]:
    """Read a file of records whole, verifying each page and its seal.

    Args:
        path: The file.
        schema: What records look like.
        digest: The run's.
        find: Places of rows in the plan.
        judged: By what records are judged now.

    Returns:
        Its row groups, and what it says of itself.

    Raises:
        ForeignFile: It is torn, altered, of another run, or has cases that the plan does not have.
    """
    opened = _open(path, schema, digest)
    parts: list[RowGroup] = []
    seal = Seal(digest, opened.primary, opened.written)
    with opened.file as file:
        for group in range(file.metadata.num_row_groups):
            try:
                table = file.read_row_group(group, use_threads=False)  # all columns: a torn page shows anywhere
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
    if opened.seal and opened.seal != seal.value():
        raise ForeignFile("not what was written")
    return parts, opened
