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
"""Row by row; the middle one is ``center``."""

_TEXTS = texts(__file__)
_COMPASS = _TEXTS["compass"]
_UPPER = _TEXTS["upper"]
_LOWER = _TEXTS["lower"]
_MIDDLE = _TEXTS["middle"]
_LEFT = _TEXTS["left"]
_RIGHT = _TEXTS["right"]
PART = re.compile(_TEXTS["part"])
_PICTURE = _TEXTS["picture"]
_REGION = _TEXTS["region"]
_BETWEEN = re.compile(_TEXTS["between"])
_TO = re.compile(_TEXTS["to"])
_COMMA = re.compile(r"\s*[,/]\s*")
_ELSEWHERE = re.compile(_TEXTS["elsewhere"])
"""Places of other things, and what says of a row or a column alone that it is meant."""
_LABEL = re.compile(rf"(?<![a-z])(?:{_UPPER}|{_LOWER}|{_LEFT}|{_RIGHT}|{_MIDDLE})\s*[:=](?=\s*\w)")
"""What stands before a colon names what follows: "box centre: upper left"."""
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
"""Cells of the hours, from one on."""


def place(low: str) -> Found | None:
    """Return the cells that a text names.

    A row alone ("at the top") is its middle cell and so is a column; the distance tells how near that was. Hours of the
    clock, which endoscopists use, are cells of the border.
    """
    found: list[tuple[str, int, int]] = []
    for everywhere in _ALL.finditer(low):
        found += [(cell, *everywhere.span()) for cell in CELLS]
    for hour in CLOCK.finditer(low):
        if not negated(low, *hour.span()):
            found += [(_OF_CLOCK[_hour(one) - 1], *hour.span()) for one in (hour["from"], hour["hour"]) if one]
    shown = without(_ELSEWHERE, low)
    shown = without(_LABEL, shown)
    shown = without(_ANATOMY, shown)
    for first, last in clauses(shown):
        found += _with_extents(shown, _in_clause(shown, first, last))
    if not found:
        return None
    found.sort(key=lambda one: one[1])
    return names(*(name for name, _, _ in found)), found[0][1], max(end for _, _, end in found)


def _hour(said: str) -> int:
    return _HOURS.index(said) + 1 if said in _HOURS else int(said)


def _in_clause(low: str, first: int, last: int) -> list[tuple[str, int, int]]:
    """Return the cells of one clause: words that touch make one cell."""
    cells: list[tuple[str, int, int]] = []
    parts = [(str(one.lastgroup), *one.span()) for one in PART.finditer(low, first, last)]
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
            other = parts[number][0]
            if other in ("upper", "lower") and not row:
                row = other
            elif other in ("left", "right") and not column:
                column = other
            elif other == "center" and not middle and not (row and column):
                middle = True
            else:
                break
            end = parts[number][2]
            number += 1
        if not negated(low, start, end):
            cells.append((_cell(row, column), start, end))
    return cells


def _with_extents(low: str, cells: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Return the cells of a clause with what lies between two of them: "from top to bottom", "along the left" maybe."""
    for (cell, start, end), (other, begin, last) in itertools.pairwise(cells):
        if not _TO.fullmatch(low, end, begin):
            continue
        (row, column), (row_2, column_2) = (row_and_column(one) for one in (cell, other))
        if abs(row - row_2) not in (0, 2) or abs(column - column_2) not in (0, 2):
            continue
        sides = [row_and_column(one) for one, at, _ in cells if at not in (start, begin)]
        if len(sides) == 1 and {row, row_2} == {0, 2} and column == column_2 == sides[0][0] == 1:
            return [(_cell_at(one, sides[0][1]), start, last) for one in range(3)]
        if len(sides) == 1 and {column, column_2} == {0, 2} and row == row_2 == sides[0][1] == 1:
            return [(_cell_at(sides[0][0], one), start, last) for one in range(3)]
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
    found = f"{row or 'center'}-{column or 'center'}"
    return "center" if found == "center-center" else found
