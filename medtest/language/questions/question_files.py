"""Files of questions and answers: four input layouts, and the contest's output layout.

- ``clef``: the contest's development file, a list of ``{ImageID, Labels: [{Question, AnswerType, Answer: [...]}]}``, or
  its submission, ``{image id: [{QuestionID, Question, Answer}]}``; ``Answer`` may be one text or a list.
- ``kvasir_vqa``: rows of image, question and answer (``img_id``, ``question``, ``answer``; one row per answer), CSV or
  JSON (a list, or one object per line).
- ``vqa_rad``: a list of ``{image_name, question, answer, answer_type, ...}``.
- ``table``: any CSV with columns for image, question and, if known, answer.

Files are untrusted: sizes are bounded, an invalid file gives one message with its first mistakes, and image names must
not be absolute paths or leave the folder.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.core.files import decoded
from medtest.core.files.images import BadFileError, read_bytes
from medtest.language.questions.questions import Question, asks_for_mask, official, question_of, wording

MOST_PIXELS_WORTH = 3_000_000
"""Bound on a file's size, in the units of :func:`medtest.core.files.images.read_bytes` (64 MB)."""

_SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""Magic bytes of .xlsx and .ods, and of .xls."""

MOST_ROWS = 1_000_000
LONGEST_QUESTION = 2_000
LONGEST_ANSWER = 20_000
MOST_SHOWN = 10
"""Largest number of mistakes listed in a file's message."""

_COLUMNS: dict[str, tuple[str, ...]] = {
    "image": ("image", "img_id", "image_id", "imageid", "image_name", "filename", "file", "image_path"),
    "question": ("question",),
    "answer": ("answer", "answers"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """One question about one image.

    Attributes:
        image: Name of the image in the file, without a suffix if the file has none.
        question: The question.
        answers: Its true answers, all true at once; empty if unknown.
    """

    image: str
    question: Question
    answers: tuple[str, ...]


def read(path: Path, where: str = "") -> tuple[QuestionRow, ...]:
    """Read a file of questions in any supported layout.

    Args:
        path: A ``.json``, ``.jsonl`` or ``.csv`` file.
        where: Name of the file for messages; by default its own.

    Returns:
        One entry for each image and question, in the file's order; rows of the same image and question are merged.
        Questions that require a mask are left out.

    Raises:
        UserMistakes: The file cannot be read, or has another layout; one report for the whole file.
    """
    name = where or path.name
    try:
        content = read_bytes(path, max_pixels=MOST_PIXELS_WORTH)
    except BadFileError as error:
        raise _stop(name, str(error)) from error
    if content.startswith(_SPREADSHEETS):
        raise _stop(name, "is a spreadsheet", "CSV or JSON", fix="save it as CSV (UTF-8)")
    try:
        text = decoded(content)
    except ValueError as error:
        raise _stop(name, str(error), fix="save it as UTF-8") from error
    head = text.lstrip()[:1]
    rows = list(_json_rows(text, name) if head in ("{", "[") else _csv_rows(text, name))
    _check(rows, name)
    return _together(rows)


@dataclass(frozen=True, slots=True)
class _Row:
    place: str
    line: int | None
    image: Any
    question: Any
    answers: Any


def _stop(where: str, found: str, allowed: str = "", fix: str = "", line: int | None = None) -> UserMistakes:
    return Mistake(where=where, line=line, key="questions", found=found, allowed=allowed, fix=fix).as_error()


def _json_rows(text: str, where: str) -> Iterator[_Row]:
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise _stop(where, "is nested too deeply") from error
    except ValueError as error:
        lines = _json_lines(text)
        if lines is None:
            line = getattr(error, "lineno", None)
            raise _stop(where, f"is not JSON ({error})"[:200], line=line) from error
        content = lines
    if isinstance(content, dict):
        yield from _submission(content, where)
        return
    if not isinstance(content, list) or not content:
        raise _stop(where, "is an empty list" if content == [] else "is neither a list nor an object", _LAYOUTS)
    for number, entry in enumerate(content, start=1):
        place = f"entry {number}"
        if not isinstance(entry, dict):
            raise _stop(where, f"{place} is {short(entry)}, which is not an object", _LAYOUTS)
        labels = _get(entry, "labels")
        image = _get(entry, *_COLUMNS["image"])
        if labels is None:
            yield _Row(place, None, image, _get(entry, "question"), _get(entry, "answer", "answers"))
            continue
        if not isinstance(labels, list):
            raise _stop(where, f"{place}: Labels is {short(labels)}", "a list of {Question, Answer}")
        for label in labels:
            if not isinstance(label, dict):
                raise _stop(where, f"{place}: a label is {short(label)}", "{Question, AnswerType, Answer}")
            yield _Row(place, None, image, _get(label, "question"), _get(label, "answer", "answers"))


_LAYOUTS = "the contest's JSON, Kvasir-VQA's or VQA-RAD's JSON, or CSV with image, question, answer"


def _submission(content: dict[str, Any], where: str) -> Iterator[_Row]:
    by_id = {question.id: question.text for question in official()}
    for image, entries in content.items():
        if not isinstance(entries, list):
            raise _stop(where, f"{short(image)} holds {short(entries)}", "a list of {QuestionID, Question, Answer}")
        for number, entry in enumerate(entries, start=1):
            place = f"{str(image)[:60]}, entry {number}"
            if not isinstance(entry, dict):
                raise _stop(where, f"{place} is {short(entry)}", "{QuestionID, Question, Answer}")
            question = _get(entry, "question")
            number_id = _get(entry, "questionid")
            if question is None and isinstance(number_id, int):
                question = by_id.get(number_id)
            yield _Row(place, None, image, question, _get(entry, "answer", "answers"))


def _json_lines(text: str) -> list[Any] | None:
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return None


def _get(entry: dict[str, Any], *names: str) -> Any:
    even = {str(key).lower().replace(" ", "_"): value for key, value in entry.items()}
    return next((even[name] for name in names if name in even), None)


def csv_cells(
    text: str, columns_of: Callable[[list[str], int], dict[str, int]], stop: Callable[..., UserMistakes]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and cells of every row of a CSV text below its header, without empty rows.

    Args:
        text: CSV with commas, semicolons or tabs, whichever is most frequent in the header.
        columns_of: Returns the columns to read, given the header's names in lower case and its line.
        stop: Builds the error for a row: what was found, ``allowed``, ``fix``, ``line``.

    Raises:
        UserMistakes: The text is not CSV, or a row has another number of cells than the header.
    """
    delimiter = max(",;\t", key=text.lstrip("\r\n").split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names: list[str] = []
    columns: dict[str, int] = {}
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if not names:
                names = [cell.strip().lower() for cell in row]
                columns = columns_of(names, reader.line_num)
                continue
            if len(row) != len(names):
                fix = "quote answers that contain the separator or a line break"
                allowed = f"{len(names)} as in the header"
                raise stop(f"{len(row)} values", allowed=allowed, fix=fix, line=reader.line_num)
            yield reader.line_num, {name: row[at].strip() for name, at in columns.items()}
    except csv.Error as error:
        raise stop(f"is not CSV ({error})", line=reader.line_num) from error


def raise_all(mistakes: Sequence[Mistake], where: str) -> None:
    """Raise the first mistakes of a file in one report, if there are any.

    Raises:
        UserMistakes: There are mistakes.
    """
    if mistakes:
        suffix = f", the first {MOST_SHOWN} shown" if len(mistakes) > MOST_SHOWN else ""
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes):,} mistakes"
        raise UserMistakes(list(mistakes[:MOST_SHOWN]), heading=f"{count} in {where}{suffix}")


def _csv_rows(text: str, where: str) -> Iterator[_Row]:
    if not text.strip():
        _columns([], where)
    for line, cells in csv_cells(text, lambda names, line: _columns(names, where, line), partial(_stop, where)):
        yield _Row(f"line {line}", line, cells["image"], cells["question"], cells.get("answer") or None)


def _columns(header: list[str], where: str, line: int = 1) -> dict[str, int]:
    names = [name.replace(" ", "_") for name in header]
    columns = {
        column: next(names.index(alias) for alias in aliases if alias in names)
        for column, aliases in _COLUMNS.items()
        if any(alias in names for alias in aliases)
    }
    absent = [column for column in ("image", "question") if column not in columns]
    if absent:
        listing = ", ".join(names)[:120] or "no header"
        nearest = nearest_name(absent[0], [name for name in names if name])
        raise Mistake(
            where=where,
            line=line,
            key=f"columns.{absent[0]}",
            found=listing,
            allowed="; ".join(f"{column}: {' or '.join(_COLUMNS[column])}" for column in absent),
            nearest=nearest,
            fix="name the columns image, question, answer; leave answer empty if it is unknown",
        ).as_error()
    return columns


def _check(rows: Sequence[_Row], where: str) -> None:
    if not rows:
        raise _stop(where, "has no question", _LAYOUTS)
    if len(rows) > MOST_ROWS:
        raise _stop(where, f"has {len(rows):,} questions", f"at most {MOST_ROWS:,}")
    raise_all([mistake for row in rows for mistake in _mistakes_of(row, where)], where)


def _mistakes_of(row: _Row, where: str) -> Iterator[Mistake]:
    def mistake(key: str, found: str, allowed: str) -> Mistake:
        return Mistake(where=where, line=row.line, key=f"{row.place}: {key}", found=found, allowed=allowed)

    if not isinstance(row.image, str | int) or isinstance(row.image, bool) or not str(row.image).strip():
        yield mistake("image", short(row.image), "the image's name")
    elif not _is_name(str(row.image)):
        yield mistake("image", short(row.image), "a name below the image folder, without .. and not absolute")
    if not isinstance(row.question, str) or not row.question.strip():
        yield mistake("question", short(row.question), "a question")
    elif len(row.question) > LONGEST_QUESTION:
        yield mistake("question", f"{len(row.question):,} characters", f"at most {LONGEST_QUESTION:,}")
    answers = row.answers if isinstance(row.answers, list) else [row.answers]
    for answer in answers:
        if answer is not None and not isinstance(answer, str | int | float | bool):
            yield mistake("answer", short(answer), "a text, a number or a list of them")
        elif isinstance(answer, str) and len(answer) > LONGEST_ANSWER:
            yield mistake("answer", f"{len(answer):,} characters", f"at most {LONGEST_ANSWER:,}")


def _is_name(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return not (path.is_absolute() or ".." in path.parts or ":" in name or "\0" in name or len(name) > 500)


def short(value: Any) -> str:
    """Return a value in the form of messages."""
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _texts(answers: Any) -> tuple[str, ...]:
    values = answers if isinstance(answers, list) else [answers]
    texts = (
        ("yes" if value else "no") if isinstance(value, bool) else str(value).strip()
        for value in values
        if value is not None
    )
    return tuple(dict.fromkeys(text for text in texts if text))


def _together(rows: Sequence[_Row]) -> tuple[QuestionRow, ...]:
    """Merge rows of the same image and question; a question's type depends on all its answers."""
    textual = [row for row in rows if not asks_for_mask(row.question)]
    by_wording: dict[str, tuple[str, set[str]]] = {}
    for row in textual:
        by_wording.setdefault(wording(row.question), (row.question, set()))[1].update(_texts(row.answers))
    questions = {words: question_of(text, tuple(answers)) for words, (text, answers) in by_wording.items()}
    merged: dict[tuple[str, str], tuple[Question, list[str]]] = {}
    for row in textual:
        question = questions[wording(row.question)]
        _, answers = merged.setdefault((str(row.image).strip(), question.name), (question, []))
        answers += [text for text in _texts(row.answers) if text not in answers]
    return tuple(
        QuestionRow(image=image, question=question, answers=tuple(answers))
        for (image, _), (question, answers) in merged.items()
    )


def to_submission(rows: Sequence[QuestionRow]) -> str:
    """Return the contest's submission as JSON: image id to a list of ``{QuestionID, Question, Answer}``.

    Several answers to one question are joined by "; ". The official questions of every image are in the order of their
    ids; other questions are left out.
    """
    images: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        if row.question.id is not None:
            entry = {"QuestionID": row.question.id, "Question": row.question.text, "Answer": "; ".join(row.answers)}
            images.setdefault(row.image, []).append(entry)
    for entries in images.values():
        entries.sort(key=lambda entry: int(str(entry["QuestionID"])))
    return json.dumps(images, indent=1, ensure_ascii=False) + "\n"


def to_development(rows: Sequence[QuestionRow]) -> str:
    """Return questions and true answers as the contest's development file."""
    images: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        images.setdefault(row.image, []).append(
            {"Question": row.question.text, "AnswerType": row.question.kind.value, "Answer": list(row.answers)}
        )
    content = [{"ImageID": image, "Labels": labels} for image, labels in images.items()]
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
