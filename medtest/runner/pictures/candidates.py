"""Candidates for samples: relevant columns of a run's records, and whole rows of a few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from medtest.core.cases import SOURCE, UNCHANGED
from medtest.core.records import ANSWER, KEY_COLUMNS
from medtest.core.tasks.base import TaskDrawing
from medtest.runner.folder import RECORDS
from medtest.runner.records.case_set import CaseSet

_LOOKED_AT = 200
"""Number of a relation's worst cases that are searched for another seed."""
CASE_COLUMNS = ["dataset", "seed_id", "relation", "severity", "frame", "repeat", "item", "verdict", "reason", "scale"]
"""Columns read for every chosen case."""


class Candidates:
    """Relevant columns of all records, in compact form.

    Args:
        folder: A system's folder with merged records.
        names: Columns of the source's score (None if it is 1) and of the follow-up's.
        tied: Columns of the follow-up's and of the source's score that rank cases of equal loss; None to rank them by
            place.
        asked: The cases to consider; None for all.
        task: Converts records to text.
    """

    def __init__(
        self,
        folder: Path,
        names: tuple[str | None, str],
        tied: tuple[str, str | None] | None,
        asked: CaseSet | None,
        drawing: TaskDrawing,
    ) -> None:
        self._path = folder / RECORDS
        self._drawing = drawing
        self._before, self._after = names
        candidates = ["relation", "verdict", "seed_id", self._after, self._before, *(tied or ())]
        columns = list(dict.fromkeys(name for name in candidates if name))
        with pq.ParquetFile(self._path, read_dictionary=["relation", "verdict", "seed_id"]) as file:
            self._groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            table = file.read(columns=columns, use_threads=False)
            names = file.schema_arrow.names
            searched = file.read(columns=["search"], use_threads=False)["search"] if "search" in names else None
            keys = None if asked is None else file.read(columns=list(KEY_COLUMNS), use_threads=False)
        looked_at = np.ones(table.num_rows, dtype=np.bool_)
        if asked is not None and keys is not None:
            looked_at = np.zeros(table.num_rows, dtype=np.bool_)
            looked_at[asked.rows(keys)] = True
        if searched is not None:  # which pictures a search shows depends on the answers: they are no sample
            looked_at &= searched.is_null().to_numpy()
        relation, self.relations = _codes(table["relation"])
        verdict, verdicts = _codes(table["verdict"])
        self._seed, _ = _codes(table["seed_id"])
        self.drop = _drop(table, self._after, self._before)
        self._second = np.zeros_like(self.drop) if tied is None else _drop(table, *tied)
        code_of = {name: number for number, name in enumerate(verdicts)}
        self._relation = relation
        self._error = looked_at & (verdict == code_of.get("ERROR", -1))
        self._failed = verdict == code_of.get("FAIL", -1)
        judged = np.isin(verdict, [code_of.get("PASS", -1), code_of.get("FAIL", -1)]) & np.isfinite(self.drop)
        plain = [self.relations.index(name) for name in (SOURCE, UNCHANGED) if name in self.relations]
        self._judged = looked_at & judged & ~np.isin(relation, plain)
        self.ranked = set(np.flatnonzero(self._judged).tolist())

    def rank(self, row: int) -> tuple[float, float]:
        """Return the sort key of a row, the worst first; rows without a verdict are equal."""
        return (-float(self.drop[row]), -float(self._second[row])) if row in self.ranked else (0.0, 0.0)

    def _by_relation(self) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
        """Return the judged rows of every relation, worst first."""
        lists = []
        for number in range(len(self.relations)):
            rows = np.flatnonzero(self._judged & (self._relation == number))
            if rows.size:
                lists.append(rows[np.lexsort((rows, -self._second[rows], -self.drop[rows]))])
        return sorted(lists, key=lambda rows: self.rank(int(rows[0])))

    def worst(self, count: int) -> list[int]:
        """Return the worst cases, one of each relation in turn: violations first, and different seeds first.

        Every relation with a violation begins with one; passed cases are used only when no violations remain.
        """
        lists = self._by_relation()
        failed = [rows[self._failed[rows]] for rows in lists]
        first = [non_empty if non_empty.size else rows for non_empty, rows in zip(failed, lists, strict=True)]
        chosen: list[int] = []
        self._in_turn(first, chosen, min(count, len(first)))
        for queues in (failed, lists):
            self._in_turn(queues, chosen, count)
        return chosen

    def _in_turn(self, queues: Sequence[np.ndarray[Any, np.dtype[np.int64]]], chosen: list[int], count: int) -> None:
        """Append one row of each queue in turn up to ``count``, preferring seeds not yet shown for the relation."""
        remaining = [[row for row in rows[: _LOOKED_AT + count].tolist() if row not in chosen] for rows in queues]
        seeds = {(int(self._relation[row]), int(self._seed[row])) for row in chosen}
        while len(chosen) < count and any(remaining):
            for rows in remaining:
                if not rows or len(chosen) >= count:
                    continue
                pick = next((r for r in rows if (int(self._relation[r]), int(self._seed[r])) not in seeds), rows[0])
                rows.remove(pick)
                chosen.append(pick)
                seeds.add((int(self._relation[pick]), int(self._seed[pick])))

    def median(self, count: int, excluded: set[int]) -> list[int]:
        """Return the median case of each relation."""
        chosen: list[int] = []
        for rows in self._by_relation():
            remaining = [int(r) for r in rows if int(r) not in excluded]
            if remaining and len(chosen) < count:
                chosen.append(remaining[len(remaining) // 2])
        return chosen

    def errors(self, count: int) -> list[int]:
        """Return errors, different relations first."""
        rows = np.flatnonzero(self._error)
        _, first = np.unique(self._relation[rows], return_index=True)
        order = [*rows[np.sort(first)].tolist(), *rows.tolist()]
        return list(dict.fromkeys(order))[:count]

    def source(self, row: int, record: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the record of a case's source, which precedes it in the order of the plan, if it exists."""
        number = self.relations.index(SOURCE) if SOURCE in self.relations else -1
        before = np.flatnonzero(self._relation[:row] == number)
        source = self.read([int(before[-1])], (*self._drawing.word_columns, ANSWER))[0] if before.size else None
        is_source = source is not None and all(source[name] == record[name] for name in ("dataset", "seed_id", "item"))
        return source if is_source else None

    def read(self, rows: list[int], more: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return whole records of a few rows, with additional columns."""
        requested = dict.fromkeys([*CASE_COLUMNS, self._after, *([self._before] if self._before else []), *more])
        starts = np.cumsum([0, *self._groups])
        records: dict[int, dict[str, Any]] = {}
        with pq.ParquetFile(self._path) as file:
            columns = [name for name in requested if name in file.schema_arrow.names]
            for group in sorted({int(np.searchsorted(starts, row, side="right")) - 1 for row in rows}):
                group_rows = [row for row in rows if starts[group] <= row < starts[group + 1]]
                table = file.read_row_group(group, columns=columns, use_threads=False)
                picked = table.take(pa.array([int(row - starts[group]) for row in group_rows])).to_pylist()
                records |= dict(zip(group_rows, picked, strict=True))
        return [records[row] for row in rows]


def _drop(table: pa.Table, after: str, before: str | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the decrease of each row's score, -inf if unknown."""
    score_after = table[after].to_numpy().astype(np.float64)
    score_before = np.ones_like(score_after) if before is None else table[before].to_numpy().astype(np.float64)
    return np.asarray(np.nan_to_num(score_before - score_after, nan=-np.inf), dtype=np.float64)


def _codes(column: pa.ChunkedArray) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[str]]:
    combined = column.unify_dictionaries().combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        combined = combined.chunk(0) if combined.num_chunks else pa.array([], pa.dictionary(pa.int32(), pa.string()))
    return combined.indices.to_numpy(zero_copy_only=False).astype(np.int64), combined.dictionary.to_pylist()
