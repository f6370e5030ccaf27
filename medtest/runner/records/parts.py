"""Metadata of a run's shard, so that shards can be joined without the data and the suite's parts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from medtest.core.errors import OutputProblem
from medtest.core.files import read_object
from medtest.runner.folder import RUN_FILE, write_run, writing
from medtest.suite.digest import digest_of
from medtest.suite.sharding import Shard

if TYPE_CHECKING:
    from medtest.runner.prepared import PreparedRun
    from medtest.suite.model import Invocation

SEEDS = "seeds.parquet"
"""The seeds of a shard and their positions in the full plan, in its folder."""
KEY = "shard"
"""Key in ``run.json`` of shards only."""
_CHOOSING = ("relations", "severities", "datasets", "questions")
_SCHEMA = pa.schema([("index", pa.int64()), ("dataset", pa.string()), ("seed_id", pa.string())])


@dataclass(frozen=True, kw_only=True)
class PartAccount:
    """Metadata of a shard in ``run.json``.

    Attributes:
        number: Number of the shard, from 1.
        of: Number of shards.
        seeds: Seeds of the full plan.
        cases: Cases of the full plan, including sources.
        asked: Cases of this shard requested by its last command.
        finished: Records of those.
        chosen: Digest of the choice of ``limit=`` and ``only=`` in the full plan: the same in all shards of one run.
        limit: ``limit=`` of its last command.
        command: That command.
    """

    number: int
    of: int
    seeds: int
    cases: int
    asked: int
    finished: int
    chosen: str
    limit: int | None
    command: str

    @classmethod
    def read(cls, folder: Path) -> PartAccount | None:
        """Read the metadata from ``run.json`` of a folder; None unless it is a finished shard."""
        content = read_object(folder / RUN_FILE).get(KEY)
        try:
            return cls(**content) if isinstance(content, dict) else None
        except TypeError:
            return None

    @property
    def shard(self) -> Shard:
        """The shard's number and division."""
        return Shard(of=self.of, number=self.number)


def write_part(folder: Path, shard: Shard, prepared: PreparedRun, invocation: Invocation, *, finished: int) -> None:
    """Write a shard's metadata beside its records.

    Args:
        folder: The shard's folder of one system, which has ``run.json``.
        shard: The shard.
        prepared: The run.
        invocation: Its invocation.
        finished: Records of the cases it requested.

    Raises:
        OutputProblem: It cannot be written.
    """
    plan = prepared.plan
    rows = [
        {"index": index, "dataset": ref.dataset, "seed_id": prepared.names.seed_id(ref.dataset, ref.seed_id)}
        for index, ref in enumerate(plan.refs)
        if shard.holds(index)
    ]
    with writing(folder / SEEDS) as file:
        pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), file, compression="zstd")
    choice = {name: sorted(getattr(invocation.only, name)) for name in _CHOOSING}
    plain_ids = {prepared.names.seed_id(ref.dataset, ref.seed_id): ref.seed_id for ref in plan.refs}
    chosen_seeds = sorted(seed for seed, plain in plain_ids.items() if {seed, plain} & invocation.only.seeds)
    account = PartAccount(
        number=shard.number,
        of=shard.of,
        seeds=len(plan.refs),
        cases=plan.total,
        asked=int(prepared.chosen.sum()),
        finished=finished,
        chosen=digest_of({"limit": invocation.limit, "only": {**choice, "seeds": chosen_seeds}}),
        limit=invocation.limit,
        command=invocation.command,
    )
    write_run(folder, {**read_object(folder / RUN_FILE), KEY: asdict(account)})


def read_seeds(folder: Path) -> dict[tuple[str, str], int]:
    """Return the positions in the full plan of a shard's seeds, by data set and id as in records.

    Raises:
        OutputProblem: The list is missing or invalid.
    """
    try:
        with pq.ParquetFile(folder / SEEDS) as file:
            columns: dict[str, list[Any]] = file.read(columns=_SCHEMA.names).cast(_SCHEMA).to_pydict()
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise OutputProblem(f"{folder.name}/{SEEDS} cannot be read: {error}") from error
    return dict(zip(zip(columns["dataset"], columns["seed_id"], strict=True), columns["index"], strict=True))
