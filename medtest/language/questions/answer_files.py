"""Tables of answers that were given elsewhere: question, answer and, where it is known, what is to be read from it.

The table is CSV with the columns ``question``, ``answer`` and, where it is known, ``expected``: what a reader of the
answer takes from it, in words (``5-10 mm``) or as records hold it (``..5``), or ``refusal``, ``unparsed``, ``not
relevant``. Commas, semicolons and tabs separate cells, whichever the first line holds most of.
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
"""Stage of an answer that medtest's rules read."""
RIGHT, UNPARSED, REFUSED, OTHER = "right", "unparsed", "refusal", "other value"
"""What a reading is beside what was expected: the same, or why not."""
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
        line: Its line in the file.
        question: The question.
        asked: Its words in the file.
        answer: The answer's words.
        expected: What is to be read from them; None where it is not known.
        expected_text: The same as the file has it.
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
        path: A CSV file in UTF-8, or in UTF-16 with its mark.
        where: The file as the user named it; its name by default.

    Raises:
        UserMistakes: It cannot be read, lacks a column, or expects what no answer to its question can be; one report.
    """
    name = where or path.name
    try:
        text = decoded(read_bytes(path, max_pixels=MOST_PIXELS_WORTH).content)
    except BadFileError as error:
        raise _stop(name, str(error)) from error
    except ValueError as error:
        raise _stop(
            name,
            str(error),
            "CSV in UTF-8, or in UTF-16 with its mark",
            "save it as UTF-8 (in a spreadsheet: CSV UTF-8)",
        ) from error
    cells = csv_cells(text, partial(_columns, where=name), partial(_stop, name))
    read = ((line, one["question"], one["answer"], one.get("expected", "")) for line, one in cells)
    rows = list(islice(read, MOST_ROWS + 1))
    if len(rows) > MOST_ROWS:
        raise _stop(name, f"has more than {MOST_ROWS:,} answers", f"at most {MOST_ROWS:,}")
    if not rows:
        raise _stop(name, "has no answer", "a head and a line for each answer")
    mistakes = [mistake for row in rows for mistake in _mistakes_of(*row, name)]
    if not mistakes:
        given = _given(rows)
        mistakes = [_no_value(one, name) for one in given if one.expected_text and one.expected is None]
    raise_all(mistakes, name)
    return tuple(given)


def beside(read: Answer, expected: Answer) -> str:
    """Return what a reading is beside what was expected: :data:`RIGHT`, or what it is in its place.

    "About 8 mm" and 8 mm are the same, for a person who writes down what an answer says seldom says how sure it is.
    """
    if (read.state, _plain(read)) == (expected.state, _plain(expected)):
        return RIGHT
    return {State.UNPARSED: UNPARSED, State.REFUSAL: REFUSED}.get(read.state, OTHER)


def _plain(answer: Answer) -> str:
    value = answer.value
    if isinstance(value, Ranges):
        value = ranges(*(replace(one, about=False) for one in value.ranges))
    return "" if value is None else str(value)


def _columns(names: list[str], line: int, *, where: str) -> dict[str, int]:
    columns = {name: names.index(name) for name in COLUMNS if name in names}
    missing = [name for name in COLUMNS[:2] if name not in columns]
    doubled = [name for name in COLUMNS if names.count(name) > 1]
    if missing or doubled:
        others = [name for name in names if name and name not in COLUMNS]
        raise Mistake(
            where=where,
            line=line,
            key=f"column {(missing or doubled)[0]}",
            found=(", ".join(names)[:120] or "no head") + ("" if missing else ", one of them twice"),
            allowed="question, answer and, where it is known, expected",
            nearest=nearest_name(missing[0], others) if missing else None,
            fix="name the columns question, answer, expected in the first line",
        ).as_error()
    return columns


def _mistakes_of(line: int, question: str, answer: str, expected: str, where: str) -> Iterator[Mistake]:
    if not question:
        yield Mistake(where=where, line=line, key="question", found="nothing", allowed="the question's words or name")
    longest = {"question": LONGEST_QUESTION, "answer": LONGEST_ANSWER, "expected": LONGEST_QUESTION}
    for key, text in zip(COLUMNS, (question, answer, expected), strict=True):
        if len(text) > longest[key]:
            found = f"{len(text):,} characters"
            yield Mistake(where=where, line=line, key=key, found=found, allowed=f"at most {longest[key]:,}")


def _given(rows: Sequence[tuple[int, str, str, str]]) -> list[TableAnswer]:
    known: dict[str, list[str]] = {}
    for _, asked, _, expected in rows:
        known.setdefault(wording(asked), []).extend([expected] if expected and expected.lower() not in _STATES else [])
    questions = {words: tuple(answers) for words, answers in known.items()}
    made: dict[str, Question] = {}
    given: list[TableAnswer] = []
    for line, asked, answer, expected in rows:
        words = wording(asked)
        question = made.setdefault(words, by_name(asked.lower()) or question_of(asked, questions[words]))
        given.append(
            TableAnswer(
                line=line,
                question=question,
                asked=asked,
                answer=answer,
                expected=_expected(expected, question) if expected else None,
                expected_text=expected,
            )
        )
    return given


def _expected(text: str, question: Question) -> Answer | None:
    """Return what a text expects of the answers to a question; None where that is no value of it."""
    if text.startswith("'="):
        text = text[1:]  # as medtest writes it, so that no spreadsheet takes it for a formula
    state = _STATES.get(text.lower())
    if state is not None:
        return Answer(kind=question.kind, state=state)
    if (KINDS[question.kind].intervals and is_canonical(text)) or _are_names(text, question):
        return Answer(kind=question.kind, state=State.VALUE, value=read_value(question.kind, text))
    read = question.parse_truth((text,))
    return None if read.state in (State.UNPARSED, State.REFUSAL) else read


def _are_names(text: str, question: Question) -> bool:
    """Say whether a text is names as records hold them, "iia" or "biopsy_forceps;metal_clip"."""
    known = sections()
    return set(text.split(";")) <= {
        name for section in KINDS[question.kind].sections for name in known.get(section, ())
    }


def _no_value(one: TableAnswer, where: str) -> Mistake:
    return Mistake(
        where=where,
        line=one.line,
        key="expected",
        found=repr(one.expected_text[:80]),
        allowed=f"what an answer to {one.question.text!r} can be, or refusal, unparsed, not relevant",
        fix="write it as a short answer, and leave it empty where it is not known",
    )


def _stop(where: str, found: str, allowed: str = "", fix: str = "", line: int | None = None) -> UserMistakes:
    return Mistake(where=where, line=line, key="answers", found=found, allowed=allowed, fix=fix).as_error()
