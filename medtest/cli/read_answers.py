"""``medtest data answers``: answers that were given elsewhere, read as a run reads them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from medtest.errors import Mistake
from medtest.readers.typed import ANSWERED, MOST_EVIDENCE, clean, reading
from medtest.results.cube.intervals import wilson_ends
from medtest.runner.folder import writing_text
from medtest.runner.records.spreadsheets import text_cell
from medtest.vqa.answer_files import OTHER, REFUSED, RIGHT, RULES, UNPARSED, TableAnswer, beside, read_answers
from medtest.vqa.answers.answer import Answer, State
from medtest.vqa.judging import said

_STATES = (ANSWERED, REFUSED, UNPARSED)
_RESULTS = (RIGHT, UNPARSED, REFUSED, OTHER)
_MOST_QUESTIONS = 30


@dataclass(frozen=True, slots=True)
class _Read:
    given: TableAnswer
    answer: Answer

    @property
    def state(self) -> str:
        settled = self.answer.state in (State.VALUE, State.NOT_RELEVANT)
        return ANSWERED if settled else self.answer.state.value

    @property
    def result(self) -> str:
        """What the reading is beside what was expected; "" where nothing was."""
        return "" if self.given.expected is None else beside(self.answer, self.given.expected)


def write_readings(file: Path, out: Path, *, console: Console) -> None:
    """Read a table of answers and write it with the value, state and stage of each.

    Args:
        file: The table; see :mod:`medtest.vqa.answer_files`.
        out: The CSV file to write; texts in it are no formulas.
        console: Where the counts are said.

    Raises:
        UserMistakes: The table has mistakes, or ``out`` is the table itself.
        OutputProblem: The file cannot be written.
    """
    path, target = file.expanduser(), out.expanduser()
    if target.exists() and path.exists() and target.samefile(path):
        fix = f"--out {path.stem}_read.csv"
        allowed = "another file"
        raise Mistake(
            where="command line", key="--out", found=f"{out}, the table itself", allowed=allowed, fix=fix
        ).as_error()
    rows = [
        _Read(one, reading(one.answer, ANSWERED, one.question.kind.value, one.question.id))
        for one in read_answers(path, str(file))
    ]
    expecting = any(row.given.expected is not None for row in rows)
    with writing_text(target) as written:
        writer = csv.writer(written, lineterminator="\n")
        extra = ("expected", "result") if expecting else ()
        writer.writerow(("question", "answer", "value", "state", "stage", "evidence", *extra))
        for row in rows:
            writer.writerow([text_cell(cell) for cell in _cells(row, expecting=expecting)])
    _tell(console, rows, out, expecting=expecting)


def _cells(row: _Read, *, expecting: bool) -> tuple[str, ...]:
    start, end = row.answer.span
    given = row.given
    cells = (
        given.asked,
        given.answer,
        said(row.answer),
        row.state,
        "" if row.state == UNPARSED else RULES,
        clean(given.answer[start:end], MOST_EVIDENCE),
    )
    return (*cells, given.expected_text, row.result) if expecting else cells


def _tell(console: Console, rows: Sequence[_Read], out: Path, *, expecting: bool) -> None:
    by_name: dict[str, list[_Read]] = {}
    for row in rows:
        by_name.setdefault(row.given.question.name, []).append(row)
    columns = ("expected", *_RESULTS) if expecting else ("answers", *_STATES)
    shown = Table("question", *columns, box=None)
    for column in shown.columns[1:]:
        column.justify = "right"
    for name, own in list(by_name.items())[:_MOST_QUESTIONS]:
        shown.add_row(name, *_counts(own, expecting=expecting))
    if len(by_name) > _MOST_QUESTIONS:
        rest = [row for own in list(by_name.values())[_MOST_QUESTIONS:] for row in own]
        shown.add_row(f"{len(by_name) - _MOST_QUESTIONS:,} more", *_counts(rest, expecting=expecting))
    shown.add_row("all", *_counts(rows, expecting=expecting))
    console.print(shown)
    states = Counter(row.state for row in rows)
    counts = f"{states[ANSWERED]:,} answered, {states[REFUSED]:,} refused, {states[UNPARSED]:,} unparsed"
    console.print(f"{out}: {len(rows):,} answers: {counts}.", soft_wrap=True)
    if expecting:
        results = Counter(row.result for row in rows if row.result)
        total = sum(results.values())
        right, other = (_share(results[name], total) for name in (RIGHT, OTHER))
        others = f"{results[UNPARSED]:,} unparsed, {results[REFUSED]:,} read as a refusal"
        console.print(
            f"Of {total:,} with an expected value {right} right, {others}, {other} another value.", soft_wrap=True
        )


def _share(count: int, total: int) -> str:
    low, high = wilson_ends(count, total)
    return f"{count:,} ({100 * count / total:.1f} %; 95 % interval {100 * low:.1f} to {100 * high:.1f})"


def _counts(rows: Sequence[_Read], *, expecting: bool) -> list[str]:
    if expecting:
        results = Counter(row.result for row in rows if row.result)
        return [f"{count:,}" for count in (sum(results.values()), *(results[name] for name in _RESULTS))]
    states = Counter(row.state for row in rows)
    return [f"{count:,}" for count in (len(rows), *(states[name] for name in _STATES))]
