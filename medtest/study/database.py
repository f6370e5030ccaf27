"""Tables of ``study.db``, and conversion of rows to items and answers."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from medtest.core.errors import OutputProblem
from medtest.study.model import Item, Place, SavedAnswer
from medtest.study.questions import Role

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE annotators (id INTEGER PRIMARY KEY, token_sha256 TEXT UNIQUE);
CREATE TABLE items (
  id INTEGER PRIMARY KEY, phase TEXT NOT NULL, role TEXT NOT NULL,
  dataset TEXT NOT NULL, seed_id TEXT NOT NULL, relation TEXT NOT NULL, severity INTEGER NOT NULL,
  frame INTEGER NOT NULL, repeat INTEGER NOT NULL, part TEXT NOT NULL,
  source_sha256 TEXT NOT NULL, followup_sha256 TEXT NOT NULL,
  source_file TEXT NOT NULL, followup_file TEXT NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
  outlines TEXT NOT NULL, expected TEXT NOT NULL);
CREATE TABLE slots (
  annotator INTEGER NOT NULL REFERENCES annotators(id), phase TEXT NOT NULL, position INTEGER NOT NULL,
  item INTEGER NOT NULL REFERENCES items(id), showing INTEGER NOT NULL,
  source_key TEXT NOT NULL, followup_key TEXT NOT NULL,
  PRIMARY KEY (annotator, phase, position)) WITHOUT ROWID;
CREATE UNIQUE INDEX slot_source ON slots(source_key);
CREATE UNIQUE INDEX slot_followup ON slots(followup_key);
CREATE TABLE answers (
  id INTEGER PRIMARY KEY AUTOINCREMENT, annotator INTEGER NOT NULL, phase TEXT NOT NULL, position INTEGER NOT NULL,
  diagnosis INTEGER, realism INTEGER, marks TEXT, comment TEXT NOT NULL, elapsed_ms INTEGER NOT NULL,
  saved_at TEXT NOT NULL, request TEXT NOT NULL,
  UNIQUE (annotator, request),
  FOREIGN KEY (annotator, phase, position) REFERENCES slots(annotator, phase, position));
CREATE INDEX answer_place ON answers(annotator, phase, position, id);
"""

IMAGE_NAME = re.compile(r"[0-9a-f]{32}\.png")
ITEM_COLUMNS = tuple(Item.__dataclass_fields__)
PLACE_COLUMNS = tuple(Place.__dataclass_fields__)
ANSWER_COLUMNS = tuple(SavedAnswer.__dataclass_fields__)


@contextmanager
def database_problems(folder: Path) -> Iterator[None]:
    """Convert errors of SQLite and the operating system.

    Raises:
        OutputProblem: They raised an error.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise OutputProblem(f"the study in {folder.name} cannot be read or written: {error}") from error


def now() -> str:
    """Return the current time as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain(value: Any) -> Any:
    """Return a value of an item for SQLite: text, an integer, else JSON."""
    if isinstance(value, Role):
        return value.value
    return value if isinstance(value, str | int) else json.dumps(value)


def item_of(row: Sequence[Any]) -> Item:
    """Return the item of a row in the order of ``ITEM_COLUMNS``.

    Raises:
        OutputProblem: Its image names are not valid names of a study.
    """
    values = dict(zip(ITEM_COLUMNS, row, strict=True))
    values["role"] = Role(values["role"])
    for name in (values["source_file"], values["followup_file"]):
        # An untrusted folder must not cause other files to be read, copied or served.
        if not IMAGE_NAME.fullmatch(name):
            raise OutputProblem(f"{name!r} is no image of a study")
    values["outlines"] = json.loads(values["outlines"])
    values["expected"] = json.loads(values["expected"])
    return Item(**values)


def answer_of(row: Sequence[Any]) -> SavedAnswer:
    """Return the answer of a row in the order of ``ANSWER_COLUMNS``."""
    values = dict(zip(ANSWER_COLUMNS, row, strict=True))
    values["marks"] = None if values["marks"] is None else tuple(json.loads(values["marks"]))
    return SavedAnswer(**values)
