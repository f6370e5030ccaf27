"""Places on the 3 x 3 grid, as sets of cells."""

from __future__ import annotations

import re

from medtest.vqa.answers.found import Found
from medtest.vqa.answers.scope import clauses, negated
from medtest.vqa.values import names

ROWS, COLUMNS = ("upper", "center", "lower"), ("left", "center", "right")
CELLS: tuple[str, ...] = tuple(
    "center" if row == column == "center" else f"{row}-{column}" for row in ROWS for column in COLUMNS
)
"""Row by row; the middle one is ``center``."""

_UPPER = r"(?:upper(?:most)?|top(?:most)?|superior|arriba|oben|obere[nrs]?|en haut|haut|\u4e0a)"
_LOWER = r"(?:lower(?:most)?|bottom(?:most)?|inferior|abajo|unten|untere[nrs]?|en bas|bas|\u4e0b)"
_MIDDLE = (
    r"(?:cent(?:er|re)(?!ed)|central(?:ly)?|middle|mid|centro|zentrum|mitte|zentral|\u4e2d\u592e|\u4e2d\u5fc3|\u4e2d)"
)
_LEFT = r"(?:left(?:most)?|izquierda|izquierdo|links|linken?|linke|gauche|esquerda|\u5de6)"
_RIGHT = r"(?:right(?:most)?|derecha|derecho|rechts|rechten?|rechte|droite|direita|\u53f3)"
_PART = re.compile(
    rf"(?P<upper>(?<![a-z]){_UPPER}(?![a-z]))|(?P<lower>(?<![a-z]){_LOWER}(?![a-z]))"
    rf"|(?P<left>(?<![a-z]){_LEFT}(?![a-z]))"
    rf"|(?P<right>(?<![a-z]){_RIGHT}(?![a-z]))|(?P<center>(?<![a-z]){_MIDDLE}(?![a-z]))"
)
_BETWEEN = re.compile(
    r"[\s-]*(?:(?:of the image|part|side|portion|region|area|hand|a la|\u00e0|au|the|to|and slightly"
    r"|of)[\s-]*|,\s*(?:in|at|on) the\s+"
    r"|(?:hand )?(?:side|part|portion|third|half|region|area)?(?:\s*of the (?:image|picture|frame|view|field))?"
    r",?\s*(?:near|towards?|close to|by|at|in|on) the\s+)?"
)
_ANATOMY = re.compile(
    rf"\b(?:{_UPPER}|{_LOWER}|{_LEFT}|{_RIGHT}|{_MIDDLE})\s+(?:colon|o?esophagus|gi\b|gastro\w*|endoscopy"
    r"|rectum|third(?!s? of the (?:image|picture|frame|view|field))|lobe|abdomen|intestine|bowel|body|digestive|now"
    r"|away)\b|\bright (?:in|at|here|there|now)\b"
)
_ALL = re.compile(
    r"\b(?:throughout|diffuse(?:ly)?|entire (?:image|field|view|mucosa)|whole (?:image|field|view)|all over"
    r"|everywhere|widespread|all (?:areas|quadrants|regions))\b"
)
_CLOCK = re.compile(r"\b(1[0-2]|[1-9])\s*o'?\s?clock\b")
_OF_CLOCK: dict[int, str] = {
    12: "upper-center",
    1: "upper-right",
    2: "upper-right",
    3: "center-right",
    4: "lower-right",
    5: "lower-right",
    6: "lower-center",
    7: "lower-left",
    8: "lower-left",
    9: "center-left",
    10: "upper-left",
    11: "upper-left",
}


def place(low: str) -> Found | None:
    """Return the cells that a text names.

    A row alone ("at the top") is its middle cell and so is a column; the distance tells how near that was. Hours of the
    clock, which endoscopists use, are cells of the border.
    """
    found: list[tuple[str, int, int]] = []
    for everywhere in _ALL.finditer(low):
        found += [(cell, *everywhere.span()) for cell in CELLS]
    found += [(_OF_CLOCK[int(hour[1])], *hour.span()) for hour in _CLOCK.finditer(low)]
    shown = _ANATOMY.sub(lambda one: " " * len(one[0]), low)
    for first, last in clauses(shown):
        found += _in_clause(shown, first, last)
    if not found:
        return None
    found.sort(key=lambda one: one[1])
    return names(*(name for name, _, _ in found)), found[0][1], max(end for _, _, end in found)


def _in_clause(low: str, first: int, last: int) -> list[tuple[str, int, int]]:
    """Return the cells of one clause: words that touch make one cell."""
    cells: list[tuple[str, int, int]] = []
    parts = [(str(one.lastgroup), *one.span()) for one in _PART.finditer(low, first, last)]
    number = 0
    while number < len(parts):
        word, start, end = parts[number]
        number += 1
        row, column = (
            (word, "") if word in ("upper", "lower") else ("", word) if word in ("left", "right") else ("", "")
        )
        middle = word == "center"
        while number < len(parts) and _BETWEEN.fullmatch(low, end, parts[number][1]) is not None:
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


def _cell(row: str, column: str) -> str:
    found = f"{row or 'center'}-{column or 'center'}"
    return "center" if found == "center-center" else found
