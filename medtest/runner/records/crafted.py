"""Follow-ups that were crafted on a system: their pixels are data, kept by content beside the records that name them.

What a network's gradients make of an image depends on batches, threads and processors, so that it is not made again
where it is wanted: the run keeps it, losslessly, below ``crafted/`` of its folder, and the record (``followup_sha256``,
``params``, ``scale``) is its index.
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

from medtest.core.cases import Address, FollowUp, Image, PreparedSeed
from medtest.core.crafting import Crafting
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
    """Keep a crafted follow-up in a run's folder; once this returns it is on disk.

    Args:
        folder: The run's folder.
        sha256: Of the image, :func:`medtest.core.cases.image_sha256`.
        image: uint8 H×W×3 RGB.

    Raises:
        OutputProblem: It cannot be written.
    """
    with output_problems(folder / FOLDER / relative_path("images", sha256)):
        PictureFiles(folder / FOLDER, durable=True).put("images", sha256, image)


def kept(folder: Path, sha256: str) -> Image | None:
    """Return a crafted follow-up that a run's folder keeps; None where it is missing or was altered."""
    try:
        return PictureFiles(folder / FOLDER).read("images", sha256)
    except DamagedFile:
        return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptCase:
    """What a run holds of a crafted case.

    Attributes:
        folder: The run's folder.
        record: The columns that say how it was made.
        image: uint8 H×W×3 RGB; None where it has none, or its file is missing or was altered.
        problem: What is wrong with its file; "" where nothing is.
    """

    folder: Path
    record: Mapping[str, Any]
    image: Image | None = None
    problem: str = ""


@dataclass
class CraftedCases:
    """Crafted follow-ups of runs, found by their records; goes to workers by pickle.

    Attributes:
        folders: The systems' folders, in the suite's order.
        names: How ids are shown in records.
        more: Further folders to look into, by system and relation: of runs in which it was crafted alike.
        by_source: Cases are found by the pixels of their source alone, under whichever name a run knew it.
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
        """Return what runs hold of a case: the first that has its pixels whole, else the first that recorded it.

        Args:
            system: The system's place in the suite.
            seed: The prepared source case.
            address: The case.

        Returns:
            None where no run has a record of it.
        """
        first: KeptCase | None = None
        more = self.more.get((system, address.relation), ())
        for folder in dict.fromkeys((*self.folders[system : system + 1], *more)):
            row = self._record(folder, seed, address)
            if row is None:
                continue
            found = _kept_case(folder, row, seed)
            if not found.problem:
                return found
            first = first or found
        return first

    def _record(self, folder: Path, seed: PreparedSeed, address: Address) -> Mapping[str, Any] | None:
        if self._seed != seed.sha256:  # one seed after another: nothing holds a whole data set
            self._rows.clear()
            self._seed = seed.sha256
        named = {"dataset": address.dataset, "seed_id": self.names.seed_id(address.dataset, address.seed_id)}
        wanted = {"source_sha256": seed.sha256, **({} if self.by_source else named)}
        key = (folder, *wanted.values())
        if key not in self._rows:
            self._rows[key] = {tuple(row[name] for name in _CASE): row for row in _rows_of(folder, wanted)}
        return self._rows[key].get(tuple(getattr(address, name) for name in _CASE))

    def find(self, system: int, seed: PreparedSeed, address: Address) -> FollowUp | str | None:
        """Return the follow-up as it was shown to a system, why there is none, or None where nothing is kept of it.

        Args:
            system: The system's place in the suite.
            seed: The prepared source case.
            address: The case.
        """
        found = self.look(system, seed, address)
        if found is None:
            return None
        row = found.record
        if not row["followup_sha256"]:
            return str(row["reason"]) or "it could not be made"
        if found.image is None:
            return None
        return FollowUp(
            image=found.image,
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
        gone = files.size("images", sha256) is None
        what = "is not there" if gone else "was altered: it holds other pixels than the record names"
        return KeptCase(folder=folder, record=row, problem=f"{FOLDER}/{relative_path('images', sha256)} {what}")
    return KeptCase(folder=folder, record=row, image=image)


def _rows_of(folder: Path, wanted: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return records whose columns are as wanted, the newest of each case last; of a file that cannot be read none."""
    found: list[dict[str, Any]] = []
    whole = folder / RECORDS
    for file in (*((whole,) if whole.is_file() else ()), *sorted((folder / SHARDS).glob("shard-*.parquet"))):
        try:
            with pq.ParquetFile(file) as opened:
                for group in range(opened.num_row_groups):
                    table = opened.read_row_group(group, columns=list(_COLUMNS))
                    for name, value in wanted.items():
                        table = table.filter(pc.equal(table[name], value))
                    found += table.to_pylist()
        except (pa.ArrowException, OSError):
            continue
    return found
