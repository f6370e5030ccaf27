"""Store of crafted follow-ups: their pixels are data, kept by content beside the records that name them.

Images made from a network's gradients depend on batches, threads and processors. They are therefore not remade: the run
stores them losslessly below ``crafted/`` of its folder, and the record (``followup_sha256``, ``params``, ``scale``) is
their index.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from medtest.core.cases import Address, Crafting, FollowUp, Image, PreparedSeed
from medtest.core.files.by_content import DamagedFile, PictureFiles, relative_path
from medtest.runner.folder import RECORDS, output_problems
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.records.shards import SHARDS

FOLDER = "crafted"
_COLUMNS = (
    *("dataset", "seed_id", "relation", "severity", "frame", "repeat"),
    *("params", "scale", "verdict", "reason", "crafted_on", "source_sha256", "followup_sha256"),
)
_CASE = ("relation", "severity", "frame", "repeat")


def keep(folder: Path, sha256: str, image: Image) -> None:
    """Write a crafted follow-up to a run's folder and sync it to disk.

    Args:
        folder: The run's folder.
        sha256: Hash of the image, :func:`medtest.core.cases.image_sha256`.
        image: uint8 H×W×3 RGB.

    Raises:
        OutputProblem: It cannot be written.
    """
    with output_problems(folder / FOLDER / relative_path("images", sha256)):
        PictureFiles(folder / FOLDER, durable=True).put("images", sha256, image)


def kept(folder: Path, sha256: str) -> Image | None:
    """Return a crafted follow-up from a run's folder; None if it is missing or was altered."""
    try:
        return PictureFiles(folder / FOLDER).read("images", sha256)
    except DamagedFile:
        return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptCase:
    """Stored crafted case of a run.

    Attributes:
        folder: The run's folder.
        record: The columns that describe its crafting.
        image: uint8 H×W×3 RGB; None if there is none, or its file is missing or was altered.
        problem: Problem with its file; "" if there is none.
    """

    folder: Path
    record: Mapping[str, Any]
    image: Image | None = None
    problem: str = ""


@dataclass
class CraftedCases:
    """Crafted follow-ups of runs, found by their records; pickled for workers.

    Attributes:
        folders: The systems' folders, in the suite's order.
        names: Display of ids in records.
        more: Further folders to search, by system and relation: of runs that crafted alike.
        by_source: True to find cases only by the pixels of their source, under whichever name a run knew it.
    """

    folders: Sequence[Path]
    names: ShownNames
    more: Mapping[tuple[int, str], Sequence[Path]] = field(default_factory=dict)
    by_source: bool = False
    _rows: dict[tuple[Any, ...], Mapping[tuple[Any, ...], Mapping[str, Any]]] = field(default_factory=dict)
    _seed: str = ""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": {}, "_seed": ""}

    def look(self, system: int, seed: PreparedSeed, address: Address) -> KeptCase | None:
        """Return the stored form of a case: the first with intact pixels, else the first recorded.

        Args:
            system: The system's place in the suite.
            seed: The prepared source case.
            address: The case.

        Returns:
            None if no run has recorded it.
        """
        first: KeptCase | None = None
        further = self.more.get((system, address.relation), ())
        for folder in dict.fromkeys((*self.folders[system : system + 1], *further)):
            row = self._record(folder, seed, address)
            if row is None:
                continue
            stored = _kept_case(folder, row, seed)
            if not stored.problem:
                return stored
            first = first or stored
        return first

    def _record(self, folder: Path, seed: PreparedSeed, address: Address) -> Mapping[str, Any] | None:
        if self._seed != seed.sha256:  # one seed at a time, to bound memory
            self._rows.clear()
            self._seed = seed.sha256
        seed_key = {"dataset": address.dataset, "seed_id": self.names.seed_id(address.dataset, address.seed_id)}
        conditions = {"source_sha256": seed.sha256, **({} if self.by_source else seed_key)}
        key = (folder, *conditions.values())
        if key not in self._rows:
            self._rows[key] = {tuple(row[name] for name in _CASE): row for row in rows_of(folder, conditions, _COLUMNS)}
        return self._rows[key].get(tuple(getattr(address, name) for name in _CASE))

    def row(self, system: int, seed: PreparedSeed, address: Address) -> Mapping[str, Any] | None:
        """Return the record of a case in the folders of a system; None if no run has it.

        Args:
            system: The system's place in the suite.
            seed: The prepared source case.
            address: The case.
        """
        further = self.more.get((system, address.relation), ())
        folders = dict.fromkeys((*self.folders[system : system + 1], *further))
        return next(filter(None, (self._record(folder, seed, address) for folder in folders)), None)

    def find(self, system: int, seed: PreparedSeed, address: Address) -> FollowUp | str | None:
        """Return the follow-up shown to a system, the reason why there is none, or None if nothing is stored.

        Args:
            system: The system's place in the suite.
            seed: The prepared source case.
            address: The case.
        """
        stored = self.look(system, seed, address)
        if stored is None:
            return None
        row = stored.record
        if not row["followup_sha256"]:
            return str(row["reason"]) or "the follow-up could not be made"
        if stored.image is None:
            return None
        return FollowUp(
            image=stored.image,
            params=json.loads(row["params"] or "{}"),
            scale=float(row["scale"] or 0.0),
            crafting=Crafting(),
        )


def _kept_case(folder: Path, row: Mapping[str, Any], seed: PreparedSeed) -> KeptCase:
    sha256, files = row["followup_sha256"], PictureFiles(folder / FOLDER)
    if not sha256:
        return KeptCase(folder=folder, record=row)
    try:
        image = files.read("images", sha256)
    except DamagedFile:
        missing = files.size("images", sha256) is None
        defect = "is not there" if missing else "was altered: it holds other pixels than the record names"
        return KeptCase(folder=folder, record=row, problem=f"{FOLDER}/{relative_path('images', sha256)} {defect}")
    return KeptCase(folder=folder, record=row, image=image)


def rows_of(folder: Path, conditions: Mapping[str, str], columns: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return records with the given column values, the newest of each case last; none from an unreadable file.

    Args:
        folder: A system's folder.
        conditions: Values by column.
        columns: Columns to read, absent ones left out; None for all.
    """
    records: list[dict[str, Any]] = []
    whole = folder / RECORDS
    for file in (*((whole,) if whole.is_file() else ()), *sorted((folder / SHARDS).glob("shard-*.parquet"))):
        try:
            with pq.ParquetFile(file) as opened:
                present = opened.schema_arrow.names
                names = present if columns is None else [name for name in columns if name in present]
                for group in range(opened.num_row_groups):
                    table = opened.read_row_group(group, columns=names)
                    for name, value in conditions.items():
                        table = table.filter(pc.equal(table[name], value))
                    records += table.to_pylist()
        except (pa.ArrowException, OSError):
            continue
    return records
