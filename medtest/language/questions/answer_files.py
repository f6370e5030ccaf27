"""Tables of answers from elsewhere: question, answer and optionally the expected reading.

The table is CSV with the columns ``question``, ``answer`` and optionally ``expected``: the value in the answer, in
words (``5-10 mm``) or in canonical form (``..5``), or ``refusal``, ``unparsed``, ``not relevant``. Cells are separated
by commas, semicolons or tabs, whichever is most frequent in the first line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.core.files import decoded
from medtest.core.files.images import BadFileError, read_bytes
from medtest.language.questions.answers.kinds import KINDS
from medtest.language.questions.answers.lexicon.words import sections
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.question_files import (
    LONGEST_ANSWER,
    LONGEST_QUESTION,
    MOST_PIXELS_WORTH,
    MOST_ROWS,
    csv_cells,
    raise_all,
)
from medtest.language.questions.questions import Question, by_name, question_of, wording
from medtest.language.questions.values import Ranges, is_canonical, ranges, read_value
from medtest.language.questions.wording import NOT_RELEVANT

COLUMNS = ("question", "answer", "expected")
RULES = "rules"
"""Stage of an answer read by medtest's rules."""
RIGHT, UNPARSED, REFUSED, OTHER = "right", "unparsed", "refusal", "other value"
"""Result of comparing a reading with the expected one: equal, or the kind of difference."""
_STATES = {
    "refusal": State.REFUSAL,
    "refused": State.REFUSAL,
    "unparsed": State.UNPARSED,
    NOT_RELEVANT: State.NOT_RELEVANT,
    "not_relevant": State.NOT_RELEVANT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAnswer:
    """One row of a table of answers.

    Attributes:
        line: Line in the file.
        question: The question.
        asked: Wording of the question in the file.
        answer: Text of the answer.
        expected: Expected reading; None if unknown.
        expected_text: Expected reading as written in the file.
    """

    line: int
    question: Question
    asked: str
    answer: str
    expected: Answer | None = None
    expected_text: str = ""


def read_answers(path: Path, where: str = "") -> tuple[TableAnswer, ...]:
    """Read a table of answers.

    Args:
        path: A CSV file in UTF-8, or in UTF-16 with a byte order mark.
        where: Name of the file for messages; by default its own.

    Raises:
        UserMistakes: The file cannot be read, lacks a column, or has an expected value that does not fit its question;
            one
            report.
    """
    name = where or path.name
    try:
        text = decoded(read_bytes(path, max_pixels=MOST_PIXELS_WORTH))
    except BadFileError as error:
        raise _stop(name, str(error)) from error
    except ValueError as error:
        raise _stop(
            name,
            str(error),
            "CSV in UTF-8, or in UTF-16 with a byte order mark",
            "save it as UTF-8 (in a spreadsheet: CSV UTF-8)",
        ) from error
    cells = csv_cells(text, partial(_columns, where=name), partial(_stop, name))
    cells_of_rows = ((line, row["question"], row["answer"], row.get("expected", "")) for line, row in cells)
    rows = list(islice(cells_of_rows, MOST_ROWS + 1))
    if len(rows) > MOST_ROWS:
        raise _stop(name, f"has more than {MOST_ROWS:,} answers", f"at most {MOST_ROWS:,}")
    if not rows:
        raise _stop(name, "has no answer", "a header and one line per answer")
    mistakes = [mistake for row in rows for mistake in _mistakes_of(*row, name)]
    if not mistakes:
        answers = _given(rows)
        mistakes = [_no_value(row, name) for row in answers if row.expected_text and row.expected is None]
    raise_all(mistakes, name)
    return tuple(answers)


def beside(read: Answer, expected: Answer) -> str:
    """Return :data:`RIGHT` if a reading equals the expected one, or else the kind of difference.

    "About 8 mm" and 8 mm are equal, because people who write down an answer rarely note its precision.
    """
    if (read.state, _plain(read)) == (expected.state, _plain(expected)):
        return RIGHT
    return {State.UNPARSED: UNPARSED, State.REFUSAL: REFUSED}.get(read.state, OTHER)


def _plain(answer: Answer) -> str:
    value = answer.value
    if isinstance(value, Ranges):
        value = ranges(*(replace(interval, about=False) for interval in value.ranges))
    return "" if value is None else str(value)


def _columns(names: list[str], line: int, *, where: str) -> dict[str, int]:
    columns = {name: names.index(name) for name in COLUMNS if name in names}
    absent = [name for name in COLUMNS[:2] if name not in columns]
    doubled = [name for name in COLUMNS if names.count(name) > 1]
    if absent or doubled:
        unused = [name for name in names if name and name not in COLUMNS]
        raise Mistake(
            where=where,
            line=line,
            key=f"column {(absent or doubled)[0]}",
            found=(", ".join(names)[:120] or "no header") + ("" if absent else " (one of them twice)"),
            allowed="question, answer and, if known, expected",
            nearest=nearest_name(absent[0], unused) if absent else None,
            fix="name the columns question, answer, expected in the first line",
        ).as_error()
    return columns


def _mistakes_of(line: int, question: str, answer: str, expected: str, where: str) -> Iterator[Mistake]:
    if not question:
        yield Mistake(where=where, line=line, key="question", found="nothing", allowed="the question's words or name")
    longest = {"question": LONGEST_QUESTION, "answer": LONGEST_ANSWER, "expected": LONGEST_QUESTION}
    for key, text in zip(COLUMNS, (question, answer, expected), strict=True):
        if len(text) > longest[key]:
            length = f"{len(text):,} characters"
            yield Mistake(where=where, line=line, key=key, found=length, allowed=f"at most {longest[key]:,}")


def _given(rows: Sequence[tuple[int, str, str, str]]) -> list[TableAnswer]:
    expected_of: dict[str, list[str]] = {}
    for _, text, _, expected in rows:
        expected_of.setdefault(wording(text), []).extend(
            [expected] if expected and expected.lower() not in _STATES else []
        )
    questions = {words: tuple(answers) for words, answers in expected_of.items()}
    questions_by_wording: dict[str, Question] = {}
    table_answers: list[TableAnswer] = []
    for line, text, answer, expected in rows:
        words = wording(text)
        question = questions_by_wording.setdefault(words, by_name(text.lower()) or question_of(text, questions[words]))
        table_answers.append(
            TableAnswer(
                line=line,
                question=question,
                asked=text,
                answer=answer,
                expected=_expected(expected, question) if expected else None,
                expected_text=expected,
            )
        )
    return table_answers


def _expected(text: str, question: Question) -> Answer | None:
    """Return the expected answer in a text; None if it is not a value of the question."""
    if text.startswith("'="):
        text = text[1:]  # written by medtest so that spreadsheets do not read a formula
    state = _STATES.get(text.lower())
    if state is not None:
        return Answer(kind=question.kind, state=state)
    if (KINDS[question.kind].intervals and is_canonical(text)) or _are_names(text, question):
        return Answer(kind=question.kind, state=State.VALUE, value=read_value(question.kind, text))
    parsed = question.parse_truth((text,))
    return None if parsed.state in (State.UNPARSED, State.REFUSAL) else parsed


def _are_names(text: str, question: Question) -> bool:
    """Return True if a text consists of canonical names, "iia" or "biopsy_forceps;metal_clip"."""
    lexicon_sections = sections()
    return set(text.split(";")) <= {
        name for section in KINDS[question.kind].sections for name in lexicon_sections.get(section, ())
    }


def _no_value(answer: TableAnswer, where: str) -> Mistake:
    return Mistake(
        where=where,
        line=answer.line,
        key="expected",
        found=repr(answer.expected_text[:80]),
        allowed=f"a possible answer to {answer.question.text!r}, or refusal, unparsed, not relevant",
        fix="write a short answer, or leave it empty if it is unknown",
    )


def _stop(where: str, found: str, allowed: str = "", fix: str = "", line: int | None = None) -> UserMistakes:
    return Mistake(where=where, line=line, key="answers", found=found, allowed=allowed, fix=fix).as_error()
