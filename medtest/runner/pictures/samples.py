"""Which cases a person would want to look at: the worst, the ordinary, and what failed, over all relations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from medtest.address import address_text
from medtest.cases import SOURCE, UNCHANGED, Output
from medtest.oracles import criteria
from medtest.oracles.base import Oracle
from medtest.records import KEY_COLUMNS
from medtest.runner.folder import RECORDS, output_problems, writing_text
from medtest.runner.records.case_set import CaseSet
from medtest.runner.records.ledger import CasePlaces
from medtest.suite.model import Criterion
from medtest.tasks.base import Task, task_of

Words: TypeAlias = tuple[tuple[str, str], ...]
Answers: TypeAlias = "tuple[Output | None, Output | None]"
"""Headings and texts, in order."""

FOLDER = "samples"
INDEX = "index.json"
_ERRORS = 3
_MOST_WORDS = 240
_LOOKED_AT = 200
"""How many of a relation's worst cases are searched for another seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A case worth a strip.

    Attributes:
        kind: ``worst``, ``median`` or ``error``; "" of a case that was asked for.
        place: Its place in the plan.
        file: Name of the picture in ``samples/``.
        dataset: Data set, as in the record, and likewise the following.
        seed_id: Id of the seed as the records show it.
        relation: Relation.
        severity: Severity.
        frame: Frame.
        repeat: Repeat.
        item: Question, "" where none was asked.
        verdict: Verdict.
        reason: Reason.
        score_name: Which score the next two are.
        source_score: Score of the source case (1 when answers are compared with the source's).
        score: Score of the follow-up.
        scale: Physical distance from identity.
        compared: What ``source_score`` is of: the ``source``, or the ``input`` that the system was given.
        words: Of questions: what was asked, answered and expected, as headings and texts.
        answers: The answers to source and follow-up, where records hold them (:meth:`Task.recorded`).
    """

    kind: str
    place: int
    file: str
    dataset: str
    seed_id: str
    relation: str
    severity: int
    frame: int
    repeat: int
    verdict: str
    reason: str
    score_name: str
    source_score: float | None
    score: float | None
    scale: float | None
    compared: str = "source"
    item: str = ""
    words: Words = ()
    answers: Answers = (None, None)

    @property
    def address(self) -> str:
        """The case's address as the report and ``medtest replay`` write it."""
        return address_text(
            self.dataset, self.seed_id, self.relation, self.severity, self.frame, self.repeat, self.item
        )

    def caption(self, system: str) -> tuple[str, str]:
        """Return title and detail of the strip."""
        where = f"{self.dataset}/{self.seed_id}"
        level = f"severity {self.severity}" if self.severity else f"draw {self.repeat}"
        level += f", frame {self.frame}" if self.frame else ""
        title = f"{self.relation}, {level}  ·  {self.verdict}  ·  {where}  ·  {system}"
        words = self._words()
        return title, f"{self.kind}: {words}" if self.kind and words != self.reason else words

    def _words(self) -> str:
        if self.item:
            return self._answer_words()
        if self.score is None or self.source_score is None:
            return self.reason
        name = self.score_name.removeprefix("self_")
        if name == "agreement":
            return self._label_words()
        if self.compared == "input":
            return f"{name} {self.source_score:.3f} of the input, {self.score:.3f} of the answer"
        against = " (compared with its own answer to the source)" if self.score_name.startswith("self_") else ""
        return f"{name} {self.source_score:.3f} on the source, {self.score:.3f} on the follow-up{against}"

    def _answer_words(self) -> str:
        if self.score is None or self.source_score is None or self.score_name not in ("self_agreement", "agreement"):
            return f"{self.item}: {self.reason or 'not judged'}"
        if self.score_name == "self_agreement":
            return f"{self.item}: the answer {'stands' if self.score else 'flipped'}"
        said = {1.0: "right", 0.0: "wrong"}
        return f"{self.item}: {said.get(self.source_score)} on the source, {said.get(self.score)} here"

    def _label_words(self) -> str:
        if self.score_name.startswith("self_"):
            return "the same label as on the source" if self.score else "another label than on the source"
        said = {1.0: "right", 0.0: "wrong"}
        return f"the label is {said.get(self.source_score or 0.0)} on the source, {said.get(self.score or 0.0)} here"


_COLUMNS = ["dataset", "seed_id", "relation", "severity", "frame", "repeat", "item", "verdict", "reason", "scale"]


def choose(
    folder: Path, places: CasePlaces, *, oracle: Oracle, primary: Criterion, count: int, asked: CaseSet | None = None
) -> list[Sample]:
    """Choose about ``count`` cases from the records of a folder: worst, median and errors, spread over relations.

    Args:
        folder: A system's folder with merged records.
        places: Where records stand in the plan.
        oracle: Whose scores there are.
        primary: The criterion whose score is looked at.
        count: How many, at most.
        asked: The cases that are looked at; None for all.
    """
    names = score_columns(oracle, primary)
    tied = criteria.TIE_BREAKERS.get(primary.score)
    task = task_of(oracle.task)
    told = bool(task.word_columns) and set(task.word_columns) <= set(oracle.texts)
    second = None if tied is None else criteria.compared_columns(tied, primary.against)
    found = _Candidates(folder, names, second, asked, task)
    chosen: dict[int, str] = {}
    errors = found.errors(_ERRORS if count > 2 * _ERRORS else count // 4)
    rest = count - len(errors)
    for row in found.worst(rest - rest // 3):
        chosen[row] = "worst"
    for row in found.median(rest - len(chosen), set(chosen)):
        chosen[row] = "median"
    for row in found.worst(rest):  # few relations: fill up with the worst
        if len(chosen) >= rest:
            break
        chosen.setdefault(row, "worst")
    for row in errors:
        chosen[row] = "error"
    order = {"worst": 0, "median": 1, "error": 2}
    rows = sorted(chosen, key=lambda row: (order[chosen[row]], *found.rank(row), row))
    records = found.read(rows, task.word_columns if told else ())
    told_of = [
        _told(task, record, found.source(row, record)) if told else ((), (None, None))
        for row, record in zip(rows, records, strict=True)
    ]
    located = places.find({name: [r[name] for r in records] for name in _COLUMNS})
    return [
        replace(_sample(number, chosen[row], int(place), record, names), words=words, answers=answers)
        for number, (row, record, place, (words, answers)) in enumerate(
            zip(rows, records, located, told_of, strict=True), start=1
        )
    ]


def score_columns(oracle: Oracle, primary: Criterion) -> tuple[str | None, str]:
    """Return the columns of the source's score (None where it is 1 by definition) and of the follow-up's."""
    name = criteria.components(primary.score)[0]
    name = name if name in oracle.scores else oracle.scores[0]
    if primary.against == "source" and name not in oracle.self_scores:
        name = oracle.self_scores[0]
    after, before = criteria.compared_columns(name, primary.against)
    return before, after


class _Candidates:
    """The columns that matter of all records, compact.

    Args:
        folder: A system's folder with merged records.
        names: Columns of the source's score (None where it is 1) and of the follow-up's.
        tied: Columns of the follow-up's and of the source's score by which cases of equal loss are ranked; None where
            they are ranked by their place alone.
        asked: The cases that are looked at; None for all.
        task: Puts records into words.
    """

    def __init__(
        self,
        folder: Path,
        names: tuple[str | None, str],
        tied: tuple[str, str | None] | None,
        asked: CaseSet | None,
        task: Task,
    ) -> None:
        self._path = folder / RECORDS
        self._task = task
        self._before, self._after = names
        wanted = ["relation", "verdict", "seed_id", self._after, self._before, *(tied or ())]
        columns = list(dict.fromkeys(name for name in wanted if name))
        with pq.ParquetFile(self._path, read_dictionary=["relation", "verdict", "seed_id"]) as file:
            self._groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            table = file.read(columns=columns, use_threads=False)
            keys = None if asked is None else file.read(columns=list(KEY_COLUMNS), use_threads=False)
        looked_at = np.ones(table.num_rows, dtype=np.bool_)
        if asked is not None and keys is not None:
            looked_at = np.zeros(table.num_rows, dtype=np.bool_)
            looked_at[asked.rows(keys)] = True
        relation, self.relations = _codes(table["relation"])
        verdict, verdicts = _codes(table["verdict"])
        self._seed, _ = _codes(table["seed_id"])
        self.drop = _drop(table, self._after, self._before)
        self._second = np.zeros_like(self.drop) if tied is None else _drop(table, *tied)
        of = {name: number for number, name in enumerate(verdicts)}
        self._relation = relation
        self._error = looked_at & (verdict == of.get("ERROR", -1))
        self._failed = verdict == of.get("FAIL", -1)
        judged = np.isin(verdict, [of.get("PASS", -1), of.get("FAIL", -1)]) & np.isfinite(self.drop)
        plain = [self.relations.index(name) for name in (SOURCE, UNCHANGED) if name in self.relations]
        self._judged = looked_at & judged & ~np.isin(relation, plain)
        self.ranked = set(np.flatnonzero(self._judged).tolist())

    def rank(self, row: int) -> tuple[float, float]:
        """Return what rows sort by, the worst first; rows that were not judged are alike."""
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
        """Return the worst of each relation in turn: violations while there are any, of other seeds first.

        The first of a relation is a violation where it has one; only when no violation of any relation is left do cases
        that held fill up.
        """
        lists = self._by_relation()
        failed = [rows[self._failed[rows]] for rows in lists]
        first = [own if own.size else rows for own, rows in zip(failed, lists, strict=True)]
        chosen: list[int] = []
        self._in_turn(first, chosen, min(count, len(first)))
        for queues in (failed, lists):
            self._in_turn(queues, chosen, count)
        return chosen

    def _in_turn(self, queues: Sequence[np.ndarray[Any, np.dtype[np.int64]]], chosen: list[int], count: int) -> None:
        """Append one row of each queue in turn up to ``count``, of a seed that its relation does not show yet first."""
        left = [[row for row in rows[: _LOOKED_AT + count].tolist() if row not in chosen] for rows in queues]
        seeds = {(int(self._relation[row]), int(self._seed[row])) for row in chosen}
        while len(chosen) < count and any(left):
            for rows in left:
                if not rows or len(chosen) >= count:
                    continue
                pick = next((r for r in rows if (int(self._relation[r]), int(self._seed[r])) not in seeds), rows[0])
                rows.remove(pick)
                chosen.append(pick)
                seeds.add((int(self._relation[pick]), int(self._seed[pick])))

    def median(self, count: int, taken: set[int]) -> list[int]:
        """Return the median case of each relation."""
        chosen: list[int] = []
        for rows in self._by_relation():
            left = [int(r) for r in rows if int(r) not in taken]
            if left and len(chosen) < count:
                chosen.append(left[len(left) // 2])
        return chosen

    def errors(self, count: int) -> list[int]:
        """Return errors, of different relations first."""
        rows = np.flatnonzero(self._error)
        _, first = np.unique(self._relation[rows], return_index=True)
        order = [*rows[np.sort(first)].tolist(), *rows.tolist()]
        return list(dict.fromkeys(order))[:count]

    def source(self, row: int, record: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the record of a case's source, which stands before it in the plan's order, if it is there."""
        number = self.relations.index(SOURCE) if SOURCE in self.relations else -1
        before = np.flatnonzero(self._relation[:row] == number)
        source = self.read([int(before[-1])], self._task.word_columns)[0] if before.size else None
        same = source is not None and all(source[name] == record[name] for name in ("dataset", "seed_id", "item"))
        return source if same else None

    def read(self, rows: list[int], more: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return whole records of a few rows, further columns with them."""
        columns = list(dict.fromkeys([*_COLUMNS, self._after, *([self._before] if self._before else []), *more]))
        starts = np.cumsum([0, *self._groups])
        found: dict[int, dict[str, Any]] = {}
        with pq.ParquetFile(self._path) as file:
            for group in sorted({int(np.searchsorted(starts, row, side="right")) - 1 for row in rows}):
                here = [row for row in rows if starts[group] <= row < starts[group + 1]]
                table = file.read_row_group(group, columns=columns, use_threads=False)
                picked = table.take(pa.array([int(row - starts[group]) for row in here])).to_pylist()
                found |= dict(zip(here, picked, strict=True))
        return [found[row] for row in rows]


def _told(task: Task, record: Mapping[str, Any], source: Mapping[str, Any] | None) -> tuple[Words, Answers]:
    """Return what a task tells of a record and its source's: words, and the answers that both hold."""
    held = (None if source is None else task.recorded(source), task.recorded(record))
    return _clipped(task.words(record, source), _MOST_WORDS), held


def _clipped(words: Sequence[Sequence[str]], most: int) -> Words:
    """Return words with every text cut to ``most`` characters."""
    return tuple((name, text if len(text) <= most else f"{text[: most - 1].rstrip()}…") for name, text in words)


def _drop(table: pa.Table, after: str, before: str | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return by how much each row's score fell, -inf where that is not known."""
    now = table[after].to_numpy().astype(np.float64)
    then = np.ones_like(now) if before is None else table[before].to_numpy().astype(np.float64)
    return np.asarray(np.nan_to_num(then - now, nan=-np.inf), dtype=np.float64)


def _codes(column: pa.ChunkedArray) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[str]]:
    combined = column.unify_dictionaries().combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        combined = combined.chunk(0) if combined.num_chunks else pa.array([], pa.dictionary(pa.int32(), pa.string()))
    return combined.indices.to_numpy(zero_copy_only=False).astype(np.int64), combined.dictionary.to_pylist()


def _sample(number: int, kind: str, place: int, record: Mapping[str, Any], names: tuple[str | None, str]) -> Sample:
    seed = re.sub(r"[^A-Za-z0-9_-]+", "-", str(record["seed_id"]))[:40]
    name = (
        f"{number:02d}-{kind}-{record['relation']}-s{record['severity']}{_frame(record)}-r{record['repeat']}-{seed}.png"
    )
    return sample_of(record, names, kind=kind, place=place, file=name)


def sample_of(record: Mapping[str, Any], names: tuple[str | None, str], *, kind: str, place: int, file: str) -> Sample:
    """Return a record as a strip shows it.

    Args:
        record: The record's columns by name.
        names: What :func:`score_columns` gave.
        kind: Why it is shown; "" where it was asked for.
        place: Its place in the plan.
        file: Name of its picture.
    """
    before, after = names
    return Sample(
        kind=kind,
        place=place,
        file=file,
        score_name=after,
        source_score=1.0 if before is None else record[before],
        score=record[after],
        compared="input" if before is not None and before.startswith("input_") else "source",
        **{key: record[key] for key in _COLUMNS},
    )


def _frame(record: Mapping[str, Any]) -> str:
    return f"-f{record['frame']}" if record["frame"] else ""


def kept(folder: Path, samples: list[Sample]) -> bool:
    """Whether the pictures of these samples lie in the folder already."""
    try:
        content = json.loads((folder / FOLDER / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    same = content == index(samples)
    return same and all((folder / FOLDER / sample.file).is_file() for sample in samples)


def index(samples: list[Sample]) -> list[dict[str, Any]]:
    """Return what ``samples/index.json`` holds: a list of samples with their address."""
    hidden = {"place", "compared", "words", "answers"}
    entries = [{**{k: v for k, v in asdict(s).items() if k not in hidden}, "address": s.address} for s in samples]
    for entry, sample in zip(entries, samples, strict=True):
        if sample.words:
            entry["words"] = [list(pair) for pair in sample.words]
    return entries


def clear(folder: Path) -> None:
    """Remove pictures that an earlier run drew and that no longer show the records."""
    with output_problems(folder / FOLDER):
        for path in (folder / FOLDER).glob("*"):
            if path.name == INDEX or path.suffix in {".png", ".tmp"}:
                path.unlink()


def write_index(folder: Path, samples: list[Sample]) -> None:
    """Write ``samples/index.json``, leaving out what was not drawn; last, for it says that the pictures are whole."""
    drawn = [sample for sample in samples if (folder / FOLDER / sample.file).is_file()]
    with writing_text(folder / FOLDER / INDEX) as file:
        json.dump(index(drawn), file, indent=1, ensure_ascii=False)
