"""Labels and scores from files: tables with a line per case, or a small file per case.

A table (``.csv``) names the case in a column ``address`` (``set/seed/blur_s3_f0_r0``, as in exports; a source case is
``set/seed``) or ``file`` (the name of the exported image). Its other columns are ``label`` (several joined by ``|``,
empty for none) or one column of numbers per class. A file of one case is ``.json`` (an object of name and number, or a
list of labels), ``.txt`` (one label per line) or ``.npy`` (numbers in the order of the classes).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from medtest.core.errors import BadOutput, MedtestError
from medtest.systems.base import Missing, RawAnswer

SUFFIXES = (".npy", ".json", ".txt")
"""Suffixes of files of one case, in search order."""
TABLE = ".csv"
KEYS = ("address", "file")
LABEL = "label"
MOST_BYTES = 1 << 20
"""Size limit of a file of one case."""
_MANIFEST = frozenset({*KEYS, "params", "scale", "sha256", "skipped"})
"""Columns of an export's manifest, which a table may contain."""

Row: TypeAlias = Mapping[str, str]


class LabelsFile:
    """Answers by case, from every table in a folder.

    Args:
        folder: The folder; tables are directly in it.
        labels: Whether labels are expected instead of numbers.

    Raises:
        MedtestError: A table cannot be read, or lacks the expected columns.
    """

    def __init__(self, folder: Path, *, labels: bool) -> None:
        self._rows: dict[str, RawAnswer] = {}
        for path in tables_in(folder):
            try:
                with path.open(encoding="utf-8-sig", newline="") as file:
                    self._read(csv.DictReader(file), path.name, labels=labels)
            except (OSError, UnicodeDecodeError, csv.Error) as error:
                raise MedtestError(f"{path.name} cannot be read as a table: {error}") from error

    def _read(self, rows: csv.DictReader[str], name: str, *, labels: bool) -> None:
        problem = header_problem(list(rows.fieldnames or ()), labels=labels)
        if problem:
            raise MedtestError(f"{name} {problem}")
        for row in rows:
            self._rows[case_of(row)] = _labels(row) if labels else _numbers(row)

    def find(self, names: tuple[str, ...]) -> RawAnswer | None:
        """Return the answer of the first matching name of a case, or None."""
        return next((self._rows[name] for name in names if name in self._rows), None)


def tables_in(folder: Path) -> list[Path]:
    """Return the tables of a folder, sorted by name."""
    return sorted(path for path in folder.glob("*") if path.suffix.lower() == TABLE and path.is_file())


def table_problem(path: Path, *, labels: bool) -> str:
    """Return the problem of a table's header, or ""."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return header_problem(list(csv.DictReader(file).fieldnames or ()), labels=labels)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        return f"cannot be read as a table: {error}"


def header_problem(columns: list[str], *, labels: bool) -> str:
    """Return the problem of a table with these columns, or ""."""
    if not any(key in columns for key in KEYS):
        return f"names no case: a column {' or '.join(KEYS)} is needed; it has {', '.join(columns[:12]) or 'none'}"
    others = [name for name in columns if name not in _MANIFEST]
    if labels and LABEL not in others:
        return f"has no column {LABEL}; with numbers for each class set values=probability or values=logits"
    if not labels and not [name for name in others if name != LABEL]:
        return "has no column of numbers for a class; with a column label set values=labels"
    return ""


def case_of(row: Row) -> str:
    """Return a row's name of a case, without file suffix."""
    if row.get("address"):
        return str(row["address"]).strip().removesuffix("/source_s0_f0_r0")
    return str(Path(str(row.get("file") or "")).with_suffix("").as_posix())


def _labels(row: Row) -> list[str]:
    return [name.strip() for name in (row.get(LABEL) or "").split("|") if name.strip()]


def _numbers(row: Row) -> dict[str, float] | Missing:
    named = {name: text for name, text in row.items() if name and name not in _MANIFEST and name != LABEL}
    if all(text in (None, "") for text in named.values()):
        return Missing("no prediction: the line holds no number")
    try:
        return {name: float(text) for name, text in named.items()}
    except (TypeError, ValueError):
        # float("nan") becomes the case's ERROR, with the reason, when the answer is checked
        return dict.fromkeys(named, float("nan"))


def read_case(path: Path) -> Any:
    """Return the answer in a file of one case.

    Raises:
        BadOutput: It cannot be read.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadOutput(f"{path.name} is larger than the answer for one image can be")
        if path.suffix.lower() == ".npy":
            # memory-mapped, so that a header larger than the file is rejected before memory is allocated
            return np.array(np.load(path, allow_pickle=False, mmap_mode="r"))
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text) if path.suffix.lower() == ".json" else _lines(text)
    except (OSError, ValueError, EOFError) as error:
        raise BadOutput(f"{path.name} cannot be read: {error}") from error


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
