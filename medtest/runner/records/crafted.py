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

from medtest.cases import Address, FollowUp, Image, PreparedSeed
from medtest.files.by_content import DamagedFile, PictureFiles, relative_path
from medtest.probes import Crafting
from medtest.runner.folder import RECORDS, output_problems
from medtest.runner.privacy import ShownNames
from medtest.runner.records.shards import SHARDS

FOLDER = "crafted"
_COLUMNS = (
    *("dataset", "seed_id", "relation", "severity", "frame", "repeat"),
    *("params", "scale", "verdict", "reason", "source_sha256", "followup_sha256"),
)
_CASE = ("relation", "severity", "frame", "repeat")


def keep(folder: Path, sha256: str, image: Image) -> None:
    """Keep a crafted follow-up in a run's folder; once this returns it is on disk.

    Args:
        folder: The run's folder.
        sha256: Of the image, :func:`medtest.cases.image_sha256`.
        image: uint8 H×W×3 RGB.

    Raises:
        OutputProblem: It cannot be written.
    """  # noqa: RUF002
    with output_problems(folder / FOLDER / relative_path("images", sha256)):
        PictureFiles(folder / FOLDER, durable=True).put("images", sha256, image)


def kept(folder: Path, sha256: str) -> Image | None:
    """Return a crafted follow-up that a run's folder keeps; None where it is missing or was altered."""
    try:
        return PictureFiles(folder / FOLDER).read("images", sha256)
    except DamagedFile:
        return None


@dataclass
class CraftedCases:
    """Crafted follow-ups of runs, found by their records; goes to workers by pickle.

    Attributes:
        folders: The systems' folders, in the suite's order.
        names: How ids are shown in records.
    """

    folders: Sequence[Path]
    names: ShownNames
    _rows: dict[tuple[int, str, str], Mapping[tuple[Any, ...], Mapping[str, Any]]] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": {}}

    def record(self, system: int, seed: PreparedSeed, address: Address) -> Mapping[str, Any] | None:
        """Return what a run recorded of a case: the columns that say how it was made; None where it has no record."""
        shown = self.names.seed_id(address.dataset, address.seed_id)
        key = (system, address.dataset, shown)
        if key not in self._rows:
            self._rows.clear()  # one seed after another: nothing holds a whole data set
            rows = _rows_of(self.folders[system], address.dataset, shown)
            self._rows[key] = {tuple(row[name] for name in _CASE): row for row in rows}
        found = self._rows[key].get(tuple(getattr(address, name) for name in _CASE))
        return found if found is not None and found["source_sha256"] == seed.sha256 else None

    def find(self, system: int, seed: PreparedSeed, address: Address) -> FollowUp | str | None:
        """Return the follow-up as it was shown to a system, why there is none, or None where nothing is kept of it.

        Args:
            system: The system's place in the suite.
            seed: The prepared source case.
            address: The case.
        """
        row = self.record(system, seed, address)
        if row is None:
            return None
        if not row["followup_sha256"]:
            return str(row["reason"]) or "it could not be made"
        image = kept(self.folders[system], row["followup_sha256"])
        if image is None or image.shape != seed.image.shape:
            return None
        return FollowUp(
            image=image, params=json.loads(row["params"] or "{}"), scale=float(row["scale"] or 0.0), crafting=Crafting()
        )


def _rows_of(folder: Path, dataset: str, shown_id: str) -> list[dict[str, Any]]:
    """Return a seed's records, the newest of each case last; of a file that cannot be read none."""
    found: list[dict[str, Any]] = []
    whole = folder / RECORDS
    for file in (*((whole,) if whole.is_file() else ()), *sorted((folder / SHARDS).glob("shard-*.parquet"))):
        try:
            with pq.ParquetFile(file) as opened:
                for group in range(opened.num_row_groups):
                    table = opened.read_row_group(group, columns=list(_COLUMNS))
                    own = pc.and_(pc.equal(table["dataset"], dataset), pc.equal(table["seed_id"], shown_id))
                    found += table.filter(own).to_pylist()
        except (pa.ArrowException, OSError):
            continue
    return found
