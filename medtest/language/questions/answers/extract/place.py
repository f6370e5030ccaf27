"""Places on the 3 x 3 grid, as sets of cells."""

from __future__ import annotations

import itertools
import re

from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.scope import clauses, negated
from medtest.language.questions.answers.values.readings import Found, without
from medtest.language.questions.values import names

ROWS, COLUMNS = ("upper", "center", "lower"), ("left", "center", "right")
CELLS: tuple[str, ...] = tuple(
    "center" if row == column == "center" else f"{row}-{column}" for row in ROWS for column in COLUMNS
)
"""Cells row by row; the middle one is ``center``."""

_TEXTS = texts(__file__)
_UPPER = _TEXTS["upper"]
_LOWER = _TEXTS["lower"]
_MIDDLE = _TEXTS["middle"]
_LEFT = _TEXTS["left"]
_RIGHT = _TEXTS["right"]
PART = re.compile(_TEXTS["part"])
_BETWEEN = re.compile(_TEXTS["between"])
_TO = re.compile(_TEXTS["to"])
_COMMA = re.compile(r"\s*[,/]\s*")
_ELSEWHERE = re.compile(_TEXTS["elsewhere"])
"""Places of other objects, and words that qualify a single row or column."""
_LABEL = re.compile(rf"(?<![a-z])(?:{_UPPER}|{_LOWER}|{_LEFT}|{_RIGHT}|{_MIDDLE})\s*[:=](?=\s*\w)")
"""Label before a colon: "box centre: upper left"."""
_ANATOMY = re.compile(_TEXTS["anatomy"])
_ALL = re.compile(_TEXTS["all"])
_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_HOUR = rf"(?:1[0-2]|[1-9]|{'|'.join(_HOURS)})"
CLOCK = re.compile(
    rf"\b(?:(?P<from>{_HOUR})\s*(?:-|to|or|and|/)\s*)?(?P<hour>{_HOUR})[\s-]*(?:o\s?'?\s?clock|uhr"
    r"|heures?|\u70b9)\b"
)
_OF_CLOCK = (
    *("upper-right", "upper-right", "center-right", "lower-right", "lower-right", "lower-center"),
    *("lower-left", "lower-left", "center-left", "upper-left", "upper-left", "upper-center"),
)
"""Cells of the hours, starting with one."""


def place(low: str) -> Found | None:
    """Return the cells named in a text.

    A single row ("at the top") is its middle cell, as is a single column; the distance shows how close that was. Clock
    hours, which endoscopists use, are cells of the border.
    """
    cells: list[tuple[str, int, int]] = []
    for everywhere in _ALL.finditer(low):
        cells += [(cell, *everywhere.span()) for cell in CELLS]
    for hour in CLOCK.finditer(low):
        if not negated(low, *hour.span()):
            cells += [(_OF_CLOCK[_hour(number) - 1], *hour.span()) for number in (hour["from"], hour["hour"]) if number]
    masked = without(_ELSEWHERE, low)
    masked = without(_LABEL, masked)
    masked = without(_ANATOMY, masked)
    for first, last in clauses(masked):
        cells += _with_extents(masked, _in_clause(masked, first, last))
    if not cells:
        return None
    cells.sort(key=lambda cell: cell[1])
    return names(*(name for name, _, _ in cells)), cells[0][1], max(end for _, _, end in cells)


def _hour(text: str) -> int:
    return _HOURS.index(text) + 1 if text in _HOURS else int(text)


def _in_clause(low: str, first: int, last: int) -> list[tuple[str, int, int]]:
    """Return the cells of one clause: adjacent words form one cell."""
    cells: list[tuple[str, int, int]] = []
    parts = [(str(match.lastgroup), *match.span()) for match in PART.finditer(low, first, last)]
    number = 0
    pair = len(parts) == 2 and {_side(word) for word, _, _ in parts} == {"row", "column"}
    while number < len(parts):
        word, start, end = parts[number]
        number += 1
        row, column = (
            (word, "") if word in ("upper", "lower") else ("", word) if word in ("left", "right") else ("", "")
        )
        middle = word == "center"
        while number < len(parts) and (
            _BETWEEN.fullmatch(low, end, parts[number][1]) or (pair and _COMMA.fullmatch(low, end, parts[number][1]))
        ):
            next_word = parts[number][0]
            if next_word in ("upper", "lower") and not row:
                row = next_word
            elif next_word in ("left", "right") and not column:
                column = next_word
            elif next_word == "center" and not middle and not (row and column):
                middle = True
            else:
                break
            end = parts[number][2]
            number += 1
        if not negated(low, start, end):
            cells.append((_cell(row, column), start, end))
    return cells


def _with_extents(low: str, cells: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Return the cells of a clause, including those between two of them: "from top to bottom", "along the left"."""
    for (cell, start, end), (next_cell, begin, last) in itertools.pairwise(cells):
        if not _TO.fullmatch(low, end, begin):
            continue
        (row, column), (row_2, column_2) = (row_and_column(cell_name) for cell_name in (cell, next_cell))
        if abs(row - row_2) not in (0, 2) or abs(column - column_2) not in (0, 2):
            continue
        sides = [row_and_column(cell_name) for cell_name, at, _ in cells if at not in (start, begin)]
        if len(sides) == 1 and {row, row_2} == {0, 2} and column == column_2 == sides[0][0] == 1:
            return [(_cell_at(index, sides[0][1]), start, last) for index in range(3)]
        if len(sides) == 1 and {column, column_2} == {0, 2} and row == row_2 == sides[0][1] == 1:
            return [(_cell_at(sides[0][0], index), start, last) for index in range(3)]
        return [*cells, (_cell_at((row + row_2) // 2, (column + column_2) // 2), start, last)]
    return cells


def row_and_column(cell: str) -> tuple[int, int]:
    """Return row and column of a cell, each 0 to 2."""
    row, _, column = cell.partition("-")
    return ROWS.index(row), COLUMNS.index(column or "center")


def _cell_at(row: int, column: int) -> str:
    return _cell(ROWS[row], COLUMNS[column])


def _side(word: str) -> str:
    return "row" if word in ("upper", "lower") else "column" if word in ("left", "right") else ""


def _cell(row: str, column: str) -> str:
    name = f"{row or 'center'}-{column or 'center'}"
    return "center" if name == "center-center" else name
