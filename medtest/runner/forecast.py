"""Preview of the records that a run would judge again after a new oracle revision; nothing is run or written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from medtest.core.errors import MedtestError
from medtest.core.records import REVISION
from medtest.runner.folder import OUTPUTS, RECORDS
from medtest.runner.prepared import PreparedRun, prepare_run
from medtest.runner.records.judged_by import JudgedBy
from medtest.runner.records.ledger import CasePlaces
from medtest.runner.records.shard_scan import scan
from medtest.runner.records.shards import SHARDS
from medtest.runner.records.standing import standing
from medtest.suite.model import Invocation, Suite


@dataclass(frozen=True, kw_only=True)
class JudgingForecast:
    """Preview for one system's finished cases.

    Attributes:
        system: Its name in records.
        judged: Cases whose stored answers would be judged again, without asking the system.
        asked: Chosen cases without a suitable answer, which would run again.
        left: Cases without one that are not chosen: their records would stay.
        revision: Revision of the oracle.
    """

    system: str
    judged: int
    asked: int
    left: int
    revision: int

    @property
    def line(self) -> str:
        """Line for the user."""
        text = f"{self.system}: {self.judged:,} finished cases would be judged again from stored answers"
        text += f", {self.asked:,} without a fitting answer would run again" if self.asked else ""
        text += f", {self.left:,} more without one were not chosen and would stay" if self.left else ""
        return f"{text} (oracle revision {self.revision})."


def forecast(suite: Suite, invocation: Invocation) -> list[JudgingForecast]:
    """Preview the cases that a run would judge or ask again, by affected system; empty if unknown.

    Args:
        suite: The suite under its own oracle.
        invocation: How it would be run.
    """
    suite_folder = invocation.home / OUTPUTS / suite.name
    oracle = suite.build_oracle()
    if invocation.fresh or oracle.from_records or not _any_stale(suite_folder, JudgedBy.of(oracle)):
        return []
    try:
        return list(_preview_run(prepare_run(suite, invocation)))
    except (MedtestError, OSError):  # the run itself reports the error
        return []


def _any_stale(above: Path, judged: JudgedBy) -> bool:
    """Return True if any records below a suite's folder were judged otherwise; reads at most one column."""
    for path in (*above.glob(f"*/*/{RECORDS}"), *above.glob(f"*/*/**/{SHARDS}/shard-*.parquet")):
        with suppress(pa.ArrowException, OSError, KeyError), pq.ParquetFile(path) as file:
            names = set(file.schema_arrow.names)
            if not names.issuperset(judged.columns):
                return True
            if REVISION in names and judged.stale(file.read(columns=[REVISION]), names).any():
                return True
    return False


def _preview_run(prepared: PreparedRun) -> Iterator[JudgingForecast]:
    oracle, plan = prepared.suite.build_oracle(), prepared.plan
    judged, places = JudgedBy.of(oracle), CasePlaces(plan, prepared.names)
    maps = prepared.suite.needs_maps
    for system, digest, folder in zip(prepared.systems, prepared.digests, prepared.folders, strict=True):
        if not folder.is_dir():
            continue
        parts = scan(folder, prepared.schema, digest.value, places.find, judged, look=True).parts
        state = standing(folder, parts, judged, chosen=prepared.chosen, row=places.row, maps=maps)
        if state is None:
            continue
        to_ask = int(np.count_nonzero(state.ask & prepared.chosen))
        yield JudgingForecast(
            system=system.record_name,
            judged=int(np.count_nonzero(state.judge)),
            asked=to_ask,
            left=int(np.count_nonzero(state.ask)) - to_ask,
            revision=oracle.revision,
        )
