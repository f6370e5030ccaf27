"""Data of the browser: columns of cases as JSON, and the pictures that fit into the page."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from medtest.core.files.written import WrittenFiles
from medtest.core.records import ADDRESS
from medtest.report.pages.browser.pictures import FOLDER, JPEG, ShownPictures
from medtest.report.pages.browser.rows import BrowsedCase, Side, chosen_cases, read_cases
from medtest.report.pages.browser.strips import replay_command
from medtest.report.pages.material import SAMPLES, Material, sample_index
from medtest.report.pages.words import counted, score_words
from medtest.results.records.records_io import Records
from medtest.runner.folder import output_problems
from medtest.runner.records.thumbnails import Marks

if TYPE_CHECKING:
    from markupsafe import Markup

BUDGET = 6_300_000
"""Bytes of the browser's data inside a page; with strips and charts a page of 2,000 cases stays below 8 MB."""
_ROW = 160
"""Approximate bytes of a row's numbers."""
_MOST_TEXT = 2_000
"""Characters of one text."""
_FACTOR = "factor_"


@dataclass
class _Columns:
    """Columns of the rows taken so far; texts that repeat are numbers into a list."""

    names: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, list[Any]] = field(default_factory=dict)
    _numbers: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, column: str, value: Any) -> None:
        self.values.setdefault(column, []).append(value)

    def text(self, column: str, text: str) -> None:
        """Append a text that repeats in a column."""
        self.add(column, self.number(column, text))

    def cost(self, column: str, text: str) -> int:
        """Return the bytes by which a text would enlarge a list of texts."""
        return 0 if text in self._numbers.get(column, {}) else len(text) + 3

    def number(self, column: str, text: str) -> int:
        """Return the number of a text in a list of texts."""
        numbers = self._numbers.setdefault(column, {})
        if text not in numbers:
            numbers[text] = len(numbers)
            self.names.setdefault(column, []).append(text)
        return numbers[text]


@dataclass(frozen=True, kw_only=True)
class Browser:
    """The browser of a page.

    Attributes:
        data: JSON of its cases, for a ``script`` element; "" if there are no cases.
        note: What it leaves out, and why; in the data as well.
        beside: True if its pictures are files beside the page.
        cases: Number of its cases.
    """

    data: str | Markup
    note: str
    beside: bool = False
    cases: int = 0


NO_BROWSER = Browser(data="", note="")


def browser_of(
    materials: Sequence[Material],
    records: Sequence[Records],
    *,
    names: Sequence[str] = (),
    beside: Path | None = None,
    budget: int = BUDGET,
) -> Browser:
    """Return the browser of one system's follow-ups, or of the cases in which several systems differ.

    Args:
        materials: The systems' materials.
        records: Their records, of the same cases.
        names: Their names on the page; empty for those in records.
        beside: Folder of the page, to show all cases with pictures as files in its ``browser/``; None to put them into
            the page.
        budget: Most bytes of the data inside the page.

    Raises:
        OutputProblem: A picture cannot be written.
    """
    from markupsafe import Markup

    names = names or [material.system for material in materials]
    sides = [Side(*parts) for parts in zip(materials, records, names, strict=True)]
    cases = chosen_cases(sides)
    page = _PageCases(sides, ShownPictures(inside=beside is None), budget if beside is None else None)
    for part in read_cases(sides, cases):
        if not page.take(part):
            break
    if beside is not None:
        write_pictures(beside, page.pictures.files)
    total = sum(materials[0].tables.counts.verdicts.values()) if len(sides) == 1 else len(cases)
    if not page.rows:
        return NO_BROWSER
    note = " ".join(line for line in (_left_out(page, total), _without(page, materials)) if line)
    text = json.dumps(page.as_json(note), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Browser(data=Markup(text), note=note, beside=beside is not None, cases=page.rows)  # noqa: S704 - escaped above


def write_pictures(place: Path, files: Mapping[str, bytes]) -> None:
    """Write the pictures beside a page, and remove those of an earlier page.

    Args:
        place: Folder of the page.
        files: Content by name below ``browser/``.

    Raises:
        OutputProblem: One cannot be written.
    """
    with output_problems(place / FOLDER):
        old = [path.name for path in (place / FOLDER).glob("*.webp")]
        if files or old:
            WrittenFiles(place / FOLDER).write(files, remove=old)


def _left_out(page: _PageCases, total: int) -> str:
    if page.rows >= total:
        return ""
    return (
        f"Shown are {page.rows:,} of {total:,} cases: the worst of each relation, severity and data set, then "
        "violations, errors and other cases by loss. report.browser=folder shows all of them, with their pictures in a "
        "folder beside this page."
    )


def _without(page: _PageCases, materials: Sequence[Material]) -> str:
    if any(material.wanted.images == "none" for material in materials):
        return "The suite's privacy settings keep images out of reports."
    if page.bare == page.rows:
        return (
            "The run's folder holds no thumbnails, as an earlier version of medtest ran its cases. fresh=true runs "
            "them again."
        )
    if page.bare:
        return f"{counted(page.bare, 'case')} of them without pictures, as the run's folder holds no thumbnail."
    return ""


class _PageCases:
    """Cases that a page shows.

    Args:
        sides: The systems.
        pictures: Pictures of the page.
        budget: Most bytes; None for no limit.
    """

    def __init__(self, sides: Sequence[Side], pictures: ShownPictures, budget: int | None) -> None:
        self.sides, self.pictures, self._budget = sides, pictures, budget
        self._shared = _Columns()
        self._own = [_Columns() for _ in sides]
        self._bytes = 0
        self.rows = self.bare = 0

    def take(self, cases: Sequence[BrowsedCase]) -> bool:
        """Append cases while they fit; return False at the first one that does not."""
        stored: dict[str, bytes] = {}
        for number, side in enumerate(self.sides):
            names = [name for case in cases for name in case.named(number).values()]
            stored |= {} if side.store is None else side.store.read_all(names)
        self.pictures.convert({name: data for name, data in stored.items() if data.startswith(JPEG)})
        for case in cases:
            extras = [self._extra(case, number) for number in range(len(self.sides))]
            names = [name for number in range(len(self.sides)) for name in case.named(number).values()]
            size = _ROW + len(json.dumps(extras, ensure_ascii=False)) + self.pictures.cost(names)
            size += sum(
                own.cost("paths", path)
                for number, own in enumerate(self._own)
                for name in case.named(number).values()
                for path in _paths(stored.get(name, b""))
            )
            if self._budget is not None and self._bytes + size > self._budget:
                self.pictures.drop_unused()
                return False
            self._bytes += size
            self._add(case, extras, stored)
        self.pictures.drop_unused()
        return True

    def _extra(self, case: BrowsedCase, number: int) -> dict[str, Any]:
        record, source = case.records[number]
        try:
            shown = self.sides[number].material.wanted.task.drawing.browsed(record, source)
        except Exception:  # noqa: BLE001 - a task may come from a plug-in, and records from strangers
            return {}
        return {name: _clipped(value) for name, value in shown.items() if value}

    def _add(self, case: BrowsedCase, extras: Sequence[Mapping[str, Any]], stored: Mapping[str, bytes]) -> None:
        record = case.records[0][0]
        shared = self._shared
        for name in ("dataset", "seed_id", "relation", "item"):
            shared.text(name, str(record[name] or ""))
        for name in ("severity", "frame", "repeat"):
            shared.add(name, int(record[name]))
        shared.add("scale", _number(record.get("scale")))
        shared.add("address", str(record[ADDRESS]))
        for name, value in record.items():
            if name.startswith(_FACTOR):
                shared.add(name, _number(value))
        names = case.named(0)
        for name in ("picture", "source"):
            shared.add(name, self.pictures.add(names[name]))
        pictures = shared.values["picture"][-1] is not None or shared.values["source"][-1] is not None
        for number, (side, own) in enumerate(zip(self.sides, self._own, strict=True)):
            row, named, (judged, _) = case.rows[number], case.named(number), case.records[number]
            own.text("verdict", side.ranked.verdict[row])
            for name, column in (
                ("before", side.ranked.before),
                ("after", side.ranked.after),
                ("loss", side.ranked.loss),
            ):
                own.add(name, _number(column[row]))
            own.text("reason", str(judged.get("reason") or ""))
            for name in ("drawn", "source_drawn"):
                own.add(name, self.pictures.add(named.get(name, "")))
                pictures = pictures or own.values[name][-1] is not None
            for name in ("marks", "source_marks"):
                own.add(name, self._marks(own, stored.get(named.get(name, ""))))
            own.add("extra", extras[number] or 0)
        self.rows += 1
        self.bare += not pictures

    @staticmethod
    def _marks(own: _Columns, data: bytes | None) -> int | None:
        """Return the number of outlines in a list of ``width height expected answered``, the paths as numbers."""
        marks = None if data is None else Marks.of_bytes(data)
        if marks is None:
            return None
        paths = (own.number("paths", path) for path in (marks.expected, marks.answered))
        return own.number("outlines", " ".join(map(str, (marks.width, marks.height, *paths))))

    def as_json(self, note: str) -> dict[str, Any]:
        """Return the data of the page, with a note on what it leaves out."""
        material = self.sides[0].material
        address = "ADDRESS"
        return {
            "replay": replay_command(material, address).removesuffix(address),
            "score": score_words(material.wanted.primary.score),
            "prompts": material.wanted.task.prompts,
            "expected": material.wanted.task.drawing.outlined,
            "strips": _drawn_strips(material) if len(self.sides) == 1 else {},
            "names": self._shared.names,
            "columns": self._shared.values,
            "systems": [
                {"name": side.name, "names": own.names, "columns": own.values}
                for side, own in zip(self.sides, self._own, strict=True)
            ],
            "pictures": self.pictures.shown,
            "note": note,
        }


def _drawn_strips(material: Material) -> dict[str, str]:
    """Return the paths of sample strips beside the page by address."""
    folder = Path(os.path.relpath(material.strips / SAMPLES, material.target)).as_posix()
    entries = [] if material.wanted.images == "none" else sample_index(material.strips)
    return {str(entry.get("address")): quote(f"{folder}/{entry['file']}") for entry in entries}


def _paths(stored: bytes) -> tuple[str, ...]:
    """Return the paths of stored outlines; none of a picture."""
    marks = None if stored.startswith(JPEG) else Marks.of_bytes(stored)
    return () if marks is None else (marks.expected, marks.answered)


def _number(value: Any) -> float | None:
    """Return a number with five digits; None if it is missing or infinite."""
    if value is None or not isfinite(value):
        return None
    return float(f"{float(value):.5g}")


def _clipped(value: Any) -> Any:
    """Return JSON values with every text cut."""
    if isinstance(value, str):
        return value if len(value) <= _MOST_TEXT else f"{value[: _MOST_TEXT - 1]}…"
    return [_clipped(inner) for inner in value] if isinstance(value, list | tuple) else value
