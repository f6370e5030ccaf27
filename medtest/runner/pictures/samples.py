"""Choice of sample cases: the worst, the median and errors, spread over all relations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from medtest.core.address import address_text
from medtest.core.cases import Output
from medtest.core.files.written import WrittenFiles
from medtest.core.oracles import criteria
from medtest.core.oracles.base import Oracle
from medtest.core.records import ANSWER, text_in
from medtest.core.tasks.base import TaskDrawing, task_of
from medtest.runner.folder import output_problems, writing_text
from medtest.runner.pictures.candidates import CASE_COLUMNS, Candidates
from medtest.runner.records.case_set import CaseSet
from medtest.runner.records.ledger import CasePlaces
from medtest.suite.model import Criterion

Words: TypeAlias = tuple[tuple[str, str], ...]
Answers: TypeAlias = "tuple[Output | None, Output | None]"
"""Answers to source and follow-up, None if unknown."""

FOLDER = "samples"
INDEX = "index.json"
_ERRORS = 3
_MOST_WORDS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Case chosen for a strip.

    Attributes:
        kind: ``worst``, ``median`` or ``error``; "" for a requested case.
        place: Its place in the plan.
        file: Name of the picture in ``samples/``.
        dataset: Data set, as in the record, like the following attributes.
        seed_id: Id of the seed as shown in records.
        relation: Relation.
        severity: Severity.
        frame: Frame.
        repeat: Repeat.
        item: Question, "" if there is none.
        verdict: Verdict.
        reason: Reason.
        score_name: Name of the score that the next two attributes hold.
        source_score: Score of the source case (1 when answers are compared with the source's).
        score: Score of the follow-up.
        scale: Physical distance from identity.
        compared: Reference of ``source_score``: the ``source``, or the ``input`` given to the system.
        words: For questions: question, answer and expected answer, as headings and texts.
        answers: The answers to source and follow-up, if records hold them (:meth:`TaskDrawing.recorded`).
        stored: Names of the answers to source and follow-up in the folder, "" for none.
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
    stored: tuple[str, str] = ("", "")

    @property
    def address(self) -> str:
        """The case's address as in the report and ``medtest replay``."""
        return address_text(
            self.dataset, self.seed_id, self.relation, self.severity, self.frame, self.repeat, self.item
        )

    def caption(self, system: str) -> tuple[str, str]:
        """Return title and detail of the strip."""
        shown_seed = f"{self.dataset}/{self.seed_id}"
        level = f"severity {self.severity}" if self.severity else f"draw {self.repeat}"
        level += f", frame {self.frame}" if self.frame else ""
        title = f"{self.relation}, {level}  ·  {self.verdict}  ·  {shown_seed}  ·  {system}"
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
        names = {1.0: "right", 0.0: "wrong"}
        return f"{self.item}: {names.get(self.source_score)} on the source, {names.get(self.score)} here"

    def _label_words(self) -> str:
        if self.score_name.startswith("self_"):
            return "the same label as on the source" if self.score else "another label than on the source"
        names = {1.0: "right", 0.0: "wrong"}
        return f"the label is {names.get(self.source_score or 0.0)} on the source, {names.get(self.score or 0.0)} here"


def choose(
    folder: Path, places: CasePlaces, *, oracle: Oracle, primary: Criterion, count: int, asked: CaseSet | None = None
) -> list[Sample]:
    """Choose about ``count`` cases from the records of a folder: worst, median and errors, spread over relations.

    Args:
        folder: A system's folder with merged records.
        places: Places of records in the plan.
        oracle: Oracle of the scores.
        primary: The criterion whose score ranks the cases.
        count: Maximum number.
        asked: The cases to consider; None for all.
    """
    names = score_columns(oracle, primary)
    tied = criteria.TIE_BREAKERS.get(primary.score)
    drawing = task_of(oracle.task).drawing
    has_words = bool(drawing.word_columns) and set(drawing.word_columns) <= set(oracle.texts)
    second = None if tied is None else criteria.compared_columns(tied, primary.against)
    candidates = Candidates(folder, names, second, asked, drawing)
    chosen: dict[int, str] = {}
    errors = candidates.errors(_ERRORS if count > 2 * _ERRORS else count // 4)
    others = count - len(errors)
    for row in candidates.worst(others - others // 3):
        chosen[row] = "worst"
    for row in candidates.median(others - len(chosen), set(chosen)):
        chosen[row] = "median"
    for row in candidates.worst(others):  # few relations: fill up with the worst
        if len(chosen) >= others:
            break
        chosen.setdefault(row, "worst")
    for row in errors:
        chosen[row] = "error"
    order = {"worst": 0, "median": 1, "error": 2}
    rows = sorted(chosen, key=lambda row: (order[chosen[row]], *candidates.rank(row), row))
    records = candidates.read(rows, (*(drawing.word_columns if has_words else ()), ANSWER))
    sources = [candidates.source(row, record) for row, record in zip(rows, records, strict=True)]
    pairs = list(zip(records, sources, strict=True))
    texts_and_answers = [
        _recorded_texts(drawing, record, source) if has_words else ((), (None, None)) for record, source in pairs
    ]
    located = places.find({name: [r[name] for r in records] for name in CASE_COLUMNS})
    return [
        replace(
            _sample(number, chosen[row], int(place), record, names),
            words=words,
            answers=answers,
            stored=(text_in(source or {}, ANSWER), text_in(record, ANSWER)),
        )
        for number, (row, (record, source), place, (words, answers)) in enumerate(
            zip(rows, pairs, located, texts_and_answers, strict=True), start=1
        )
    ]


def score_columns(oracle: Oracle, primary: Criterion) -> tuple[str | None, str]:
    """Return the columns of the source's score (None if it is 1 by definition) and of the follow-up's."""
    name = criteria.components(primary.score)[0]
    name = name if name in oracle.scores else oracle.scores[0]
    if primary.against == "source" and name not in oracle.self_scores:
        name = oracle.self_scores[0]
    after, before = criteria.compared_columns(name, primary.against)
    return before, after


def _recorded_texts(
    drawing: TaskDrawing, record: Mapping[str, Any], source: Mapping[str, Any] | None
) -> tuple[Words, Answers]:
    """Return a task's texts of a record and its source's, cut to some length, and the answers in both."""
    words = tuple(
        (name, text if len(text) <= _MOST_WORDS else f"{text[: _MOST_WORDS - 1].rstrip()}…")
        for name, text in drawing.words(record, source)
    )
    return words, (None if source is None else drawing.recorded(source), drawing.recorded(record))


def _sample(number: int, kind: str, place: int, record: Mapping[str, Any], names: tuple[str | None, str]) -> Sample:
    seed = re.sub(r"[^A-Za-z0-9_-]+", "-", str(record["seed_id"]))[:40]
    frame = f"-f{record['frame']}" if record["frame"] else ""
    name = f"{number:02d}-{kind}-{record['relation']}-s{record['severity']}{frame}-r{record['repeat']}-{seed}.png"
    return sample_of(record, names, kind=kind, place=place, file=name)


def sample_of(record: Mapping[str, Any], names: tuple[str | None, str], *, kind: str, place: int, file: str) -> Sample:
    """Create a sample from a record.

    Args:
        record: The record's columns by name.
        names: The result of :func:`score_columns`.
        kind: Reason for showing it; "" if it was requested.
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
        **{key: record[key] for key in CASE_COLUMNS},
    )


def _entries(folder: Path) -> list[dict[str, Any]] | None:
    """Return the entries of a folder's index, None without one."""
    try:
        content = json.loads((folder / FOLDER / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_valid = isinstance(content, list) and all(isinstance(entry, dict) for entry in content)
    return content if is_valid else None


def kept(folder: Path, samples: list[Sample]) -> bool:
    """Return True if the folder already has the pictures of these samples."""
    return _entries(folder) == index(samples) and all((folder / FOLDER / sample.file).is_file() for sample in samples)


def index(samples: list[Sample]) -> list[dict[str, Any]]:
    """Return the content of ``samples/index.json``: a list of samples with their addresses."""
    hidden = {"place", "compared", "words", "answers", "stored"}
    entries = [{**{k: v for k, v in asdict(s).items() if k not in hidden}, "address": s.address} for s in samples]
    for entry, sample in zip(entries, samples, strict=True):
        if sample.words:
            entry["words"] = [list(pair) for pair in sample.words]
    return entries


def clear(folder: Path) -> None:
    """Remove pictures of earlier runs that no longer match the records; a user's files stay.

    Raises:
        OutputProblem: One cannot be removed.
    """
    target = folder / FOLDER
    with output_problems(target):
        ledger = WrittenFiles(target)
        ledger.adopt([INDEX, *(str(entry.get("file")) for entry in _entries(folder) or ())])
        ledger.remove(path.name for path in target.glob("*") if path.name == INDEX or path.suffix == ".png")
        for draft in target.glob(".*.tmp"):
            draft.unlink()


def expect(folder: Path, samples: list[Sample]) -> None:
    """Announce pictures that are about to be drawn.

    Raises:
        OutputProblem: The folder cannot be written.
    """
    with output_problems(folder / FOLDER):
        WrittenFiles(folder / FOLDER).expect(sample.file for sample in samples)


def write_index(folder: Path, samples: list[Sample]) -> None:
    """Write ``samples/index.json`` with the drawn samples; called last, because it marks the pictures as complete."""
    complete = [sample for sample in samples if (folder / FOLDER / sample.file).is_file()]
    with writing_text(folder / FOLDER / INDEX) as file:
        json.dump(index(complete), file, indent=1, ensure_ascii=False)
    with output_problems(folder / FOLDER):
        WrittenFiles(folder / FOLDER).note([INDEX, *(sample.file for sample in complete)])
