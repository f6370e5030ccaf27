"""Question files: a suite's development set, a run's submission, and tables of answers with their readings."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from medtest.cli.terminal import say
from medtest.cli.typed import split_tokens
from medtest.core.cases import SOURCE, Ask, Seed
from medtest.core.errors import typed_error
from medtest.core.files.written import check_out, claim, note_out
from medtest.language.questions.answer_files import (
    OTHER,
    REFUSED,
    RIGHT,
    RULES,
    UNPARSED,
    TableAnswer,
    beside,
    read_answers,
)
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.judging import said
from medtest.language.questions.question_files import QuestionRow, to_development, to_submission
from medtest.language.questions.questions import Question, by_name, official
from medtest.language.questions.values import Kind
from medtest.readers.typed import ANSWERED, MOST_EVIDENCE, clean, reading
from medtest.results.cube.intervals import wilson_ends
from medtest.results.records.records_io import read_table
from medtest.results.records.wanted import RUN_FILE, Wanted
from medtest.runner.folder import output_problems, writing_text
from medtest.runner.records.spreadsheets import text_cell
from medtest.runner.replaying.export import check_privacy
from medtest.seeds.needed import first_places
from medtest.session.runs import invocation_of
from medtest.suite.compose import Loaded, load
from medtest.systems.adapters.image_files import write_image

QUESTIONS = "gt.json"
IMAGES = "images"


def write_development(tokens: Sequence[str], *, console: Console) -> None:
    """Write the images of a suite with their questions and true answers as the contest's development set.

    Images are written as in their seeds, before preparation, so that reading them again gives the same seeds.

    Args:
        tokens: ``suite=NAME to=DIR`` and tokens that choose seeds: ``data=PATH``, ``limit=N``, settings.
        console: Console for the result.

    Raises:
        UserMistakes: The suite has mistakes, asks no questions or forbids writing images, or ``to`` is missing.
        OutputProblem: The folder cannot be written.
    """
    name, overrides, own, _ = split_tokens(tokens, "to")
    if not own.get("to"):
        raise typed_error("to", "none", "to=DIR", f"medtest data questions suite={name} to=questions")
    loaded = load(name, _with_model(name, overrides))
    if not loaded.suite.task.stream:
        problem = f"{name}, whose seeds expect no answers to questions"
        raise typed_error(
            "suite", problem, "a suite that asks questions", "medtest data questions suite=medvqa to=questions"
        )
    check_privacy(loaded.suite)
    folder = Path(own["to"]).expanduser()
    rows: list[QuestionRow] = []
    images = 0
    with output_problems(folder / IMAGES):
        claim(folder, "to")
        (folder / IMAGES).mkdir(parents=True, exist_ok=True)
        for image, seed in _seeds(loaded):
            write_image(folder / IMAGES / f"{image}.png", seed.image, seed.spec)
            rows += [QuestionRow(image=image, question=_question(ask), answers=ask.truth or ()) for ask in seed.asks]
            images += 1
    with writing_text(folder / QUESTIONS) as file:
        file.write(to_development(rows))
    say(console, f"{folder}: {images:,} images and {len(rows):,} questions in {QUESTIONS}.")


def _with_model(name: str, overrides: list[str]) -> list[str]:
    """Return overrides with a system, since a suite must have one even if it is not queried."""
    if any(token.startswith(("model=", "systems")) for token in overrides) or name != "medvqa_clef":
        return overrides
    return [*overrides, "model=openai_compatible"]


def _seeds(loaded: Loaded) -> Iterator[tuple[str, Seed]]:
    """Yield the seeds of a suite, each with the name of its image."""
    invocation = invocation_of(loaded)
    sources = loaded.suite.build_seeds(invocation.data)
    several = len(sources) > 1
    for source in sources:
        for ref in first_places(source, invocation.limit):
            yield (f"{ref.dataset}_{ref.seed_id}" if several else ref.seed_id), source.load(ref)


def _question(ask: Ask) -> Question:
    official_question = by_name(ask.item)
    return official_question or Question(id=ask.id, name=ask.item, text=ask.text, kind=Kind(ask.kind))


def write_submission(run: Path, out: Path, *, console: Console) -> None:
    """Write a model's answers to the source images of a run as the contest's submission.

    Args:
        run: The run's folder.
        out: The JSON file.
        console: Console for the result and for answers that the contest's checker would miss.

    Raises:
        UserMistakes: The folder holds no run on the contest's questions, or its seed ids are hashed.
        OutputProblem: Records cannot be read, or the file cannot be written.
    """
    folder = run.expanduser()
    if not (folder / RUN_FILE).is_file():
        raise typed_error("RUN", str(run), f"a run folder with {RUN_FILE} and records", "see outputs/<suite>/<system>/")
    table = read_table(folder, ["seed_id", "item", "relation", "answer"])
    if "answer" not in table.column_names:
        raise typed_error("RUN", str(run), "the folder of a run on questions", "run suite=medvqa_clef first")
    if Wanted.from_folder(folder).hashed:
        fix = "run with privacy.seed_ids=plain: the contest identifies images by name"
        raise typed_error("RUN", f"{run}, whose seed ids are hashed", "plain seed ids", fix)
    rows = [
        QuestionRow(image=row["seed_id"], question=question, answers=(row["answer"] or "",))
        for row in table.to_pylist()
        if row["relation"] == SOURCE and (question := by_name(row["item"] or ""))
    ]
    if not rows:
        raise typed_error("RUN", str(run), "answers to questions of MEDVQA-GI", "run suite=medvqa_clef first")
    check_out([out], "--out")
    with writing_text(out) as file:
        file.write(to_submission(rows))
    with output_problems(out):
        note_out([out])
    images = {row.image for row in rows}
    say(console, f"{out}: {len(rows):,} answers of {len(images):,} images.")
    missing = len(images) * len(official()) - len(rows)
    if missing:
        say(console, f"The contest expects 18 answers per image: {missing:,} are missing.")


# --- answers from elsewhere, read in the same way as in a run --------------------------------------------------------

_STATES = (ANSWERED, REFUSED, UNPARSED)
_RESULTS = (RIGHT, UNPARSED, REFUSED, OTHER)
_MOST_QUESTIONS = 30


@dataclass(frozen=True, slots=True)
class _Read:
    entry: TableAnswer
    answer: Answer

    @property
    def state(self) -> str:
        settled = self.answer.state in (State.VALUE, State.NOT_RELEVANT)
        return ANSWERED if settled else self.answer.state.value

    @property
    def result(self) -> str:
        """The reading compared with the expected value; "" without one."""
        return "" if self.entry.expected is None else beside(self.answer, self.entry.expected)


def write_readings(file: Path, out: Path, *, console: Console) -> None:
    """Read a table of answers and write it with the value, state and stage of each.

    Args:
        file: The table; see :mod:`medtest.language.questions.answer_files`.
        out: The CSV file to write; its texts are protected against formula injection.
        console: Console for the counts.

    Raises:
        UserMistakes: The table has mistakes, or ``out`` is the table itself.
        OutputProblem: The file cannot be written.
    """
    path, target = file.expanduser(), out.expanduser()
    if target.exists() and path.exists() and target.samefile(path):
        raise typed_error("--out", f"{out}, the table itself", "another file", f"--out {path.stem}_read.csv")
    check_out([target], "--out")
    rows = [
        _Read(entry, reading(entry.answer, ANSWERED, entry.question.kind.value, entry.question.id))
        for entry in read_answers(path, str(file))
    ]
    expecting = any(row.entry.expected is not None for row in rows)
    with writing_text(target) as written:
        writer = csv.writer(written, lineterminator="\n")
        extra = ("expected", "result") if expecting else ()
        writer.writerow(("question", "answer", "value", "state", "stage", "evidence", *extra))
        for row in rows:
            writer.writerow([text_cell(cell) for cell in _cells(row, expecting=expecting)])
    with output_problems(target):
        note_out([target])
    _print_counts(console, rows, out, expecting=expecting)


def _cells(row: _Read, *, expecting: bool) -> tuple[str, ...]:
    start, end = row.answer.span
    entry = row.entry
    cells = (
        entry.asked,
        entry.answer,
        said(row.answer),
        row.state,
        "" if row.state == UNPARSED else RULES,
        clean(entry.answer[start:end], MOST_EVIDENCE),
    )
    return (*cells, entry.expected_text, row.result) if expecting else cells


def _print_counts(console: Console, rows: Sequence[_Read], out: Path, *, expecting: bool) -> None:
    by_name: dict[str, list[_Read]] = {}
    for row in rows:
        by_name.setdefault(row.entry.question.name, []).append(row)
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
    say(console, f"{out}: {len(rows):,} answers: {counts}.")
    if expecting:
        results = Counter(row.result for row in rows if row.result)
        total = sum(results.values())
        right, other = (_share(results[name], total) for name in (RIGHT, OTHER))
        others = f"{results[UNPARSED]:,} unparsed, {results[REFUSED]:,} read as a refusal"
        say(console, f"Of {total:,} with an expected value: {right} right, {others}, {other} another value.")


def _share(count: int, total: int) -> str:
    low, high = wilson_ends(count, total)
    return f"{count:,} ({100 * count / total:.1f} %; 95 % interval {100 * low:.1f} to {100 * high:.1f})"


def _counts(rows: Sequence[_Read], *, expecting: bool) -> list[str]:
    if expecting:
        results = Counter(row.result for row in rows if row.result)
        return [f"{count:,}" for count in (sum(results.values()), *(results[name] for name in _RESULTS))]
    states = Counter(row.state for row in rows)
    return [f"{count:,}" for count in (len(rows), *(states[name] for name in _STATES))]
