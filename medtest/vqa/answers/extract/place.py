"""Places on the 3 x 3 grid, as sets of cells."""

from __future__ import annotations

import itertools
import re

from medtest.vqa.answers.found import Found, without
from medtest.vqa.answers.scope import clauses, negated
from medtest.vqa.values import names

ROWS, COLUMNS = ("upper", "center", "lower"), ("left", "center", "right")
CELLS: tuple[str, ...] = tuple(
    "center" if row == column == "center" else f"{row}-{column}" for row in ROWS for column in COLUMNS
)
"""Row by row; the middle one is ``center``."""

_COMPASS = r"(?=(?:west|east)(?![a-z])|(?![a-z]))"
_UPPER = (
    r"(?:upper(?:most)?|top(?:most)?|superior(?:ly)?|(?<=right )up|(?<=left )up|up(?= (?:in the )?(?:left"
    r"|right|corner))"
    r"|arriba|oben|obere[nrs]?|en haut|haut|sup\u00e9rieure?|acima|alto|\u4e0a"
    rf"|north(?:ern)?{_COMPASS})"
)
_LOWER = (
    r"(?:lower(?:most)?|bottom(?:most)?|inferior(?:ly)?|(?<=right )down|(?<=left )down|down(?= (?:left|right"
    r"|corner))|abajo|unten|untere[nrs]?|en bas|bas|inf\u00e9rieure?|abaixo"
    rf"|basso|\u4e0b|south(?:ern)?{_COMPASS})"
)
_MIDDLE = (
    r"(?:cent(?:er|re)(?!ed)|central(?:ly)?|middle|mid|centro|centrad[ao]|centrales?|zentrum|mitte|mittig|zentral\w*"
    r"|mittlere[nrs]?|milieu|medio|meio|\u4e2d\u592e|\u4e2d\u5fc3|\u4e2d)"
)
_LEFT = r"(?:left(?:most)?|izquierda|izquierdo|links|linken?|linke[rs]|gauche|esquerd[ao]|sinistra|west(?:ern)?|\u5de6)"
_RIGHT = r"(?:right(?:most)?|derecha|derecho|rechts|rechten?|rechte[rs]|droite?|direit[ao]|destra|east(?:ern)?|\u53f3)"
PART = re.compile(
    rf"(?P<upper>(?<![a-z]){_UPPER}(?:(?<=north)|(?![a-z])))|(?P<lower>(?<![a-z]){_LOWER}(?:(?<=south)|(?![a-z])))"
    rf"|(?P<left>(?:(?<![a-z])|(?<=north)|(?<=south)){_LEFT}(?![a-z]))"
    rf"|(?P<right>(?:(?<![a-z])|(?<=north)|(?<=south)){_RIGHT}(?![a-z]))|(?P<center>(?<![a-z]){_MIDDLE}(?![a-z]))"
)
_PICTURE = r"(?:images?|pictures?|frames?|views?|field|screen|photo\w*|scene|bild\w*|imagen|imagem)"
_REGION = r"(?:sides?|parts?|portion|third|half|region|area|edge|border|margin|corner|quadrant|rim|end|section|sector)"
_BETWEEN = re.compile(
    rf"[\s-]*(?:(?:of the image|part|side|portion|region|area|hand|a la|\u00e0|au|the|to|and slightly|de(?: la"
    rf"| el)?|der|des|and to the|of|\u90e8|\u4fa7|\u65b9|\u8fb9)[\s-]*|,\s*(?:in|at|on) the\s+"
    rf"|(?:hand )?{_REGION}?(?:\s*of (?:the|this) {_PICTURE})?"
    rf",?\s*(?:and |but )?(?:slightly |somewhat |a (?:bit|little) )?(?:near|towards?|close to|by|at|in|on"
    rf"|along) the\s+"
    r"|(?:in der|im|in dem|an der|am|en el|en la|dans le|dans la|au|no|na|nel|nella)\s+"
    r"|,?\s*(?:and |but )?(?:slightly|somewhat|a (?:bit|little)) to the\s+)?"
)
_TO = re.compile(
    rf"(?:\s*{_REGION})?(?:\s*of (?:the|this) {_PICTURE})?,?\s*(?:down |up |over |across |all the way "
    rf"|on )*to\s+(?:the\s+)?"
)
_COMMA = re.compile(r"\s*[,/]\s*")
_ELSEWHERE = re.compile(
    rf"\b(?:point|fac|aim|direct|orient|angl|tilt)(?:s|es|ing|ed)? (?:in)?to(?:wards?)? (?:the )?"
    rf"(?:{_UPPER}|{_LOWER}|{_LEFT}|{_RIGHT}|{_MIDDLE})\b"
    rf"|(?<=left )of (?:the )?{_MIDDLE}\b|(?<=right )of (?:the )?{_MIDDLE}\b|\b(?:away|far|distant|removed"
    rf"|distinct) from the\s+(?:{_UPPER}|{_LOWER}|{_LEFT}|{_RIGHT}|{_MIDDLE})\b"
    rf"|\b(?:to|on) the (?:immediate )?(?:{_LEFT}|{_RIGHT}) of (?:an?|the|another|its|this|that)\s+(?!{_PICTURE}"
    rf"|{_MIDDLE}|lumen|midline|endoscop\w+|circular|visible|whole|entire)"
    rf"|\bmid[\s-]?(?:height|level|way)\b|\bhalf[\s-]?way (?:up|down)\b"
    rf"|\b(?:vertical|horizontal)ly cent\w+|\b(?:vertical|horizontal) (?:cent\w+|middle)\b"
)
"""Places of other things, and what says of a row or a column alone that it is meant."""
_LABEL = re.compile(rf"(?<![a-z])(?:{_UPPER}|{_LOWER}|{_LEFT}|{_RIGHT}|{_MIDDLE})\s*[:=](?=\s*\w)")
"""What stands before a colon names what follows: "box centre: upper left"."""
_ANATOMY = re.compile(
    rf"\b(?:{_UPPER}|{_LOWER}|{_LEFT}|{_RIGHT}|{_MIDDLE})\s+(?:colon|o?esophagus|gi\b|gastro\w*|endoscopy"
    r"|rectum|third(?!s? of (?:the|this) (?:image|picture|frame|view|field)|\W*\Z|\s*[,.;])|lobe|abdomen"
    r"|intestine|bowel|body|digestive|now|away)\b|(?<!the )\bright (?:in|at|here|there|now)\b"
)
_ALL = re.compile(
    r"\b(?:throughout|diffuse(?:ly)?|entire (?:image|field|view|mucosa)|whole (?:image|field|view)|all over"
    r"|everywhere|widespread|all (?:areas|quadrants|regions))\b"
)
_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_HOUR = rf"(?:1[0-2]|[1-9]|{'|'.join(_HOURS)})"
CLOCK = re.compile(
    rf"\b(?:(?P<from>{_HOUR})\s*(?:-|to|or|and|/)\s*)?(?P<hour>{_HOUR})[\s-]*(?:o\s?'?\s?clock|uhr"
    r"|heures?|\u70b9)\b"
)
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
    for hour in CLOCK.finditer(low):
        if not negated(low, *hour.span()):
            found += [(_OF_CLOCK[_hour(one)], *hour.span()) for one in (hour["from"], hour["hour"]) if one]
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
