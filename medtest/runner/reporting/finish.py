"""Final files of a run: merged records, samples, ``suite.yaml``, ``run.json``, the manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import yaml

from medtest.core.cases import SOURCE
from medtest.core.files import read_object
from medtest.core.oracles.base import Oracle
from medtest.readers.base import KeptReader
from medtest.runner.folder import (
    FORMAT,
    RUN_FILE,
    TABLES_OF,
    tables_are_stale,
    utc_now,
    write_manifest,
    write_run,
    writing_text,
)
from medtest.runner.pictures.choice import Pictures, drawing_tasks
from medtest.runner.pool.layout import Layout, resolve_device
from medtest.runner.pool.messages import StripTask
from medtest.runner.privacy.hidden_words import HiddenWords
from medtest.runner.records import answers
from medtest.runner.records.case_set import CaseSet
from medtest.runner.records.judged_by import revised
from medtest.runner.records.ledger import CasePlaces, RecordLedger
from medtest.runner.records.parts import write_part
from medtest.runner.records.shards import Code
from medtest.runner.reporting.frozen import STATED
from medtest.runner.reporting.outcome import Limits, SystemOutcome
from medtest.runner.reporting.software import versions
from medtest.suite.model import Invocation
from medtest.systems.naming import identity

if TYPE_CHECKING:
    from medtest.runner.prepared import PreparedRun

_SEED = ("dataset", "seed_id", "item")
"""Columns shared by the records of a follow-up and its source."""
SUITE_FILE = "suite.yaml"


@dataclass
class Finisher:
    """Finisher of a run's folders.

    Attributes:
        prepared: The run.
        invocation: Its invocation.
        ledgers: The systems' records.
        places: Places of records in the plan.
        limits: Limits, e.g. the number of samples.
        asked: The requested cases, if a folder also holds others.
        view: Digest of their view.
    """

    prepared: PreparedRun
    invocation: Invocation
    ledgers: Sequence[RecordLedger]
    places: CasePlaces
    limits: Limits
    asked: CaseSet | None = None
    view: str = ""
    _counts: dict[int, np.ndarray[Any, np.dtype[np.int64]]] = field(default_factory=dict)
    _pictures: list[Pictures] = field(default_factory=list)
    _reader: KeptReader[Any, Any] | None = None
    _sources: dict[int, dict[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)

    def merge(self) -> list[StripTask]:
        """Merge every system's records and return the sample strips to draw."""
        for number, ledger in enumerate(self.ledgers):
            name = self.prepared.systems[number].record_name
            before = read_object(ledger.folder / RUN_FILE).get("system", name)
            self._counts[number] = ledger.merge(partial(self._judge, number), system=name, rewrite=before != name)
            answers.tidy(ledger.folder)
        self._pictures = [self._pictures_of(None, "")]
        if self.asked is not None:
            self._pictures.append(self._pictures_of(self.asked, self.view))
        return list(drawing_tasks(self.prepared, self._pictures))

    def _pictures_of(self, asked: CaseSet | None, view: str) -> Pictures:
        return Pictures(
            prepared=self.prepared,
            ledgers=self.ledgers,
            places=self.places,
            home=self.invocation.home,
            count=self.limits.samples
            if self.invocation.shard is None
            else 0,  # samples of a shard are not those of the run
            asked=asked,
            view=view,
        )

    def close(self, *, device: str, layout: Layout) -> None:
        """Write the last files, the manifest last of all."""
        if self._reader is not None:
            self._reader.close()
        for pictures in self._pictures:
            pictures.write_indices()
        for number, (ledger, digest) in enumerate(zip(self.ledgers, self.prepared.digests, strict=True)):
            folder = ledger.folder
            whole = self.asked is None or tables_are_stale(folder)
            if whole:  # otherwise a view is written, and the folder stays unchanged
                with writing_text(folder / SUITE_FILE) as file:
                    yaml.safe_dump(_plain(self.prepared.suite.composed), file, sort_keys=False, allow_unicode=True)
            outcome = self.outcomes()[number]
            content = self._run_json(outcome, digest.covers, device=device, layout=layout)
            if self.asked is not None:  # its statements about records cover the whole folder
                content |= self._of_folder(number)
            followed = self.prepared.frozen[number] if self.prepared.frozen else None
            earlier = {} if whole else read_object(folder / RUN_FILE)
            if not whole and STATED in earlier:
                content[STATED] = earlier[STATED]
            elif whole and followed is not None:
                content[STATED] = followed.stated()
                followed.write_copy(folder)
            write_run(folder, content)
            shard = self.invocation.shard
            if shard is not None:
                write_part(folder, shard, self.prepared, self.invocation, finished=outcome.asked_finished)
            write_manifest(folder)

    def outcomes(self) -> tuple[SystemOutcome, ...]:
        """Return the outcome of each system."""
        return tuple(self._outcome(number) for number in range(len(self.ledgers)))

    def _outcome(self, number: int) -> SystemOutcome:
        ledger, system = self.ledgers[number], self.prepared.systems[number]
        counts = self._counts.get(number, ledger.counts())
        finished = int(counts.sum() - counts[Code.NONE])
        requested = ledger.chosen_counts()
        asked_finished = int(requested.sum() - requested[Code.NONE])
        return SystemOutcome(
            system=self.prepared.suite.systems[number].id,
            record_name=system.record_name,
            folder=ledger.folder,
            digest=self.prepared.digests[number].value,
            counts={
                "PASS": int(counts[Code.PASS]),
                "FAIL": int(counts[Code.FAIL]),
                "ERROR": int(counts[Code.ERROR]),
                "SKIP": int(counts[Code.SKIP] + counts[Code.SOURCE_FAILED]),
            },
            cases_executed=ledger.executed,
            cases_reused=asked_finished - ledger.executed,
            reused_from=ledger.reused_from if asked_finished > ledger.executed else "",
            finished=finished,
            planned=self.prepared.plan.total,
            error_percent=_error_percent(requested),
            asked=ledger.chosen,
            asked_finished=asked_finished,
            notice=system.notice(),
        )

    def _of_folder(self, number: int) -> dict[str, Any]:
        ledger = self.ledgers[number]
        counts = self._counts.get(number, ledger.counts())
        return {
            "cases_reused": ledger.reused,
            "reused_from": ledger.reused_from if ledger.reused else "",
            "error_percent": _error_percent(counts),
        }

    def _source_columns(self, number: int, row: dict[str, Any], oracle: Oracle) -> dict[str, Any]:
        """Return the columns that a follow-up's record copies from its source's, which may be in another file."""
        if not oracle.judging() or row["relation"] == SOURCE:
            return {}
        if number not in self._sources:
            columns = [*oracle.texts, *_SEED, "relation"]
            rows = self.ledgers[number].rows(columns)
            source_rows = [source_row for source_row in rows if source_row["relation"] == SOURCE]
            self._sources[number] = {
                tuple(source_row[name] for name in _SEED): oracle.of_source(source_row)
                for source_row in self._read_again(source_rows)
            }
        return self._sources[number].get(tuple(row[name] for name in _SEED), {})

    def _read_again(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Read records again with the suite's reader, whose revision or weights may have changed."""
        if self._reader is None:
            reader = self.prepared.suite.build_reader()
            if reader is None:
                return rows
            reader.keep_in(ledger.folder for ledger in self.ledgers)
            self._reader = KeptReader(reader, shared=self.invocation.shared, cache=self.invocation.cache)
            device = "cpu" if reader.of_oracle else resolve_device(self.invocation.device)
            self._reader.open(device=device, threads=self.invocation.threads or 1)
        words = HiddenWords.of(self.prepared.suite, self.prepared.names.word_key)
        columns = self._reader.columns(rows)
        return [{**row, **words.texts(texts)} for row, texts in zip(rows, columns, strict=True)]

    def _judge(self, number: int, table: pa.Table) -> pa.Table:
        """Recompute verdicts under the suite's criterion; rows not judged by scores stay unchanged."""
        oracle = self.prepared.suite.build_oracle()
        names = oracle.judged_columns
        recomputed = ["verdict", "reason_code", "reason", *([*names, *oracle.texts] if oracle.judging() else [])]
        rows = table.select([*names, *oracle.texts, *_SEED, "relation", "verdict", "reason_code", "reason"]).to_pylist()
        rows = [{**row, **self._source_columns(number, row, oracle)} for row in self._read_again(rows)]
        rows = [{**row, **oracle.judged_again(row)} for row in rows]
        for name in recomputed:
            index, field = table.schema.get_field_index(name), table.schema.field(name)
            table = table.set_column(index, field, pa.array([row[name] for row in rows], field.type))
        return revised(table, oracle.revision) if oracle.from_records else table

    def _run_json(
        self, outcome: SystemOutcome, covers: Mapping[str, Any], *, device: str, layout: Layout
    ) -> dict[str, Any]:
        suite, reader = self.prepared.suite, self.prepared.suite.build_reader()
        system = next(system for system in self.prepared.systems if system.name == outcome.system)
        earlier = read_object(outcome.folder / RUN_FILE)
        ran = outcome.cases_executed > 0
        return {
            "format": FORMAT,
            "suite": suite.name,
            "suite_version": suite.version,
            "system": outcome.record_name,
            "system_id": outcome.system,
            "model": identity(system, folders=suite.privacy.seed_ids == "plain"),
            "digest": outcome.digest,
            "covers": covers,
            "finished_at": utc_now(),
            "cases_executed": outcome.cases_executed,
            "cases_reused": outcome.cases_reused,
            "reused_from": outcome.reused_from,
            "cases_finished": outcome.finished,
            "cases_planned": outcome.planned,
            "partial": outcome.partial,
            "verdicts": dict(outcome.counts),
            "error_percent": outcome.error_percent,
            "seeds": len(self.prepared.plan.refs),
            "classes": {name: asdict(classes) for name, classes in self.prepared.classes.items()},
            **({} if reader is None or reader.of_oracle else {"reader": reader.about()}),
            "notice": outcome.notice,
            "command": earlier.get("command", ""),
            "device": device if ran else earlier.get("device", device),
            "workers": layout.workers if ran else earlier.get("workers", 0),
            "threads": layout.threads if ran else earlier.get("threads", 0),
            "batch_size": self.invocation.batch_size,
            "versions": versions(),
            "mlflow_run_id": None,
            **{key: value for key, value in earlier.items() if key.startswith("mlflow_")},
            TABLES_OF: earlier.get(TABLES_OF, ""),
        }


def _error_percent(counts: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    """Return ERROR records and follow-ups whose source failed, per hundred records."""
    finished = int(counts.sum() - counts[Code.NONE])
    failed = int(counts[Code.ERROR] + counts[Code.SOURCE_FAILED])
    return 100.0 * failed / finished if finished else 0.0


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
