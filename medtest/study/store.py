"""A study's folder: ``study.db`` (SQLite) and ``images/`` under names that say nothing.

An answer is an appended row, committed with ``synchronous=FULL`` in WAL mode before anybody is told that it is saved:
it then survives the death of the process and, with a disk that keeps its word, of the machine. The newest row of a
place counts; earlier ones stay, so that every change of mind can be seen.
"""

from __future__ import annotations

import hmac
import json
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

from medtest.errors import Mistake, OutputProblem, UserMistakes
from medtest.study.questions import Kind, Role

DATABASE = "study.db"
IMAGES = "images"
FORMAT = 1
"""Raised when a newer medtest writes what an older one cannot read."""

Phase: TypeAlias = Literal["training", "main"]
PHASES: tuple[Phase, ...] = ("training", "main")
MAX_COMMENT = 2000
MAX_ELAPSED_MS = 3_600_000

_SCHEMA = """
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


@dataclass(frozen=True, kw_only=True)
class Item:
    """One thing to judge.

    Attributes:
        id: Its number in the study.
        phase: training or main.
        role: What it is there for; annotators never see it.
        dataset: Data set of the seed.
        seed_id: The seed (hashed where the suite wants it).
        relation: The relation's id in the suite; "source" for a frame as it is.
        severity: Its severity.
        frame: Its frame.
        repeat: Its draw.
        part: Name of the relation's part (``blur`` for a relation called ``mild_blur``).
        source_sha256: Of the source image's pixels.
        followup_sha256: Of the shown follow-up's pixels.
        source_file: File of the source below ``images/``.
        followup_file: File of the follow-up (or of the single frame).
        width: Pixels.
        height: Pixels.
        outlines: Contours of the lesion on source and follow-up: ``{"source": [[[x, y] …] …], "followup": …}``.
        expected: What a right answer looks like and what training says of it: ``{"diagnosis": [4, 5], "words": …}``.
    """

    id: int
    phase: Phase = "main"
    role: Role = Role.ITEM
    dataset: str
    seed_id: str
    relation: str
    severity: int = 0
    frame: int = 0
    repeat: int = 0
    part: str = ""
    source_sha256: str = ""
    followup_sha256: str = ""
    source_file: str
    followup_file: str
    width: int
    height: int
    outlines: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The case's address, as records and reports write it."""
        return f"{self.dataset}/{self.seed_id}/{self.relation}_s{self.severity}_f{self.frame}_r{self.repeat}"

    @property
    def source(self) -> str:
        """The source case's address."""
        return f"{self.dataset}/{self.seed_id}"


@dataclass(frozen=True, kw_only=True)
class Place:
    """One place in an annotator's list.

    Attributes:
        annotator: Whose.
        phase: training or main.
        position: From 1.
        item: The item's number.
        showing: 1, or 2 where the item comes back.
        source_key: Opaque id of the source image at this place.
        followup_key: Opaque id of the follow-up at this place.
    """

    annotator: int
    phase: Phase
    position: int
    item: int
    showing: int
    source_key: str
    followup_key: str


@dataclass(frozen=True, kw_only=True)
class Given:
    """What an annotator answers; checked by who makes it.

    Attributes:
        diagnosis: 1–5, None in a study of artefacts.
        realism: 1–5, None in a study of artefacts.
        marks: Ids of the artefacts marked, None in a study of pairs.
        comment: Free text.
        elapsed_ms: Time that the item was in view.
        request: The browser's own id of this request: sent twice, it is saved once.
    """

    diagnosis: int | None = None
    realism: int | None = None
    marks: tuple[str, ...] | None = None
    comment: str = ""
    elapsed_ms: int = 0
    request: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A saved answer."""

    id: int
    annotator: int
    phase: Phase
    position: int
    diagnosis: int | None
    realism: int | None
    marks: tuple[str, ...] | None
    comment: str
    elapsed_ms: int
    saved_at: str


_ITEM_COLUMNS = tuple(Item.__dataclass_fields__)
_PLACE_COLUMNS = tuple(Place.__dataclass_fields__)
_ANSWER_COLUMNS = tuple(Answer.__dataclass_fields__)


class StudyStore:
    """One study's database; safe to share between threads.

    Args:
        folder: The study's folder.

    Raises:
        UserMistakes: The folder holds no study, or one that a newer medtest wrote.
        OutputProblem: The database cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / DATABASE).is_file():
            fix = "medtest study make suite=… writes one"
            raise UserMistakes(
                [Mistake(where="command line", key="folder", found=f"{folder.name}, which holds no study", fix=fix)]
            )
        self._lock = threading.RLock()
        self._connection = _connect(folder / DATABASE)
        with self._problems():
            self.meta: dict[str, Any] = {k: json.loads(v) for k, v in self._rows("SELECT key, value FROM meta")}
        if self.meta.get("format") != FORMAT:
            self.close()
            found = f"a study of format {self.meta.get('format')}"
            raise UserMistakes([Mistake(where=folder.name, found=found, allowed=f"format {FORMAT}")])

    @classmethod
    def create(cls, folder: Path, meta: Mapping[str, Any], annotators: int) -> StudyStore:
        """Write an empty study into a folder that exists; only its owner may read it."""
        with _database_problems(folder):
            connection = _connect(folder / DATABASE)
            with connection:
                connection.executescript(_SCHEMA)
                full = {"format": FORMAT, "secret": secrets.token_hex(32), **meta}
                connection.executemany("INSERT INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in full.items()])
                connection.executemany("INSERT INTO annotators(id) VALUES (?)", [(n + 1,) for n in range(annotators)])
            connection.close()
            (folder / DATABASE).chmod(0o600)
        return cls(folder)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> StudyStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def kind(self) -> Kind:
        """What the study asks."""
        return Kind(self.meta["kind"])

    # --- writing a study ---------------------------------------------------------------------------------------------

    def add_items(self, items: Iterable[Item]) -> None:
        """Add items."""
        marks = ", ".join("?" for _ in _ITEM_COLUMNS)
        with self._problems(), self._lock, self._connection:
            self._connection.executemany(
                f"INSERT INTO items({', '.join(_ITEM_COLUMNS)}) VALUES ({marks})",  # noqa: S608 - our own names
                [tuple(_plain(getattr(item, name)) for name in _ITEM_COLUMNS) for item in items],
            )

    def add_places(self, annotator: int, phase: Phase, slots: Sequence[tuple[int, int]]) -> None:
        """Write one annotator's list: (item, showing) in order. Every place gets image ids of its own."""
        rows = [
            (annotator, phase, number, item, showing, secrets.token_hex(16), secrets.token_hex(16))
            for number, (item, showing) in enumerate(slots, start=1)
        ]
        with self._problems(), self._lock, self._connection:
            self._connection.executemany("INSERT INTO slots VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    # --- who -----------------------------------------------------------------------------------------------------

    def annotators(self) -> list[tuple[int, bool]]:
        """Return every annotator's number and whether he has a link."""
        with self._problems():
            return [(i, bool(t)) for i, t in self._rows("SELECT id, token_sha256 FROM annotators ORDER BY id")]

    def new_token(self, annotator: int) -> str:
        """Give an annotator a new link, which ends his old one; the token itself is kept nowhere."""
        token = secrets.token_urlsafe(32)
        with self._problems(), self._lock, self._connection:
            changed = self._connection.execute(
                "UPDATE annotators SET token_sha256 = ? WHERE id = ?", (_hash(token), annotator)
            ).rowcount
        if not changed:
            allowed = f"1 to {len(self.annotators())}"
            raise UserMistakes([Mistake(where="command line", key="for", found=str(annotator), allowed=allowed)])
        return token

    def annotator_of(self, token: str) -> int | None:
        """Return whose token this is, or None; every annotator's hash is compared, each in constant time."""
        given = _hash(token)
        found: int | None = None
        with self._problems():
            for number, known in self._rows("SELECT id, token_sha256 FROM annotators"):
                if hmac.compare_digest(given, known or "-" * 64):
                    found = number
        return found

    def seal(self, annotator: int, token: str) -> str:
        """Return the CSRF token of an annotator's pages: only this study and his own link give it."""
        key = bytes.fromhex(self.meta["secret"])
        return hmac.new(key, f"csrf\0{annotator}\0{_hash(token)}".encode(), sha256).hexdigest()

    # --- reading -------------------------------------------------------------------------------------------------

    def items(self, phase: Phase | None = None) -> list[Item]:
        """Return all items, or those of one phase."""
        with self._problems():
            rows = self._rows(f"SELECT {', '.join(_ITEM_COLUMNS)} FROM items ORDER BY id")  # noqa: S608
            found = [_item(row) for row in rows]
        return [item for item in found if phase is None or item.phase == phase]

    def item(self, number: int) -> Item:
        """Return one item."""
        with self._problems():
            rows = self._rows(f"SELECT {', '.join(_ITEM_COLUMNS)} FROM items WHERE id = ?", (number,))  # noqa: S608
            return _item(rows[0])

    def places(self, annotator: int | None = None) -> list[Place]:
        """Return every place of the lists, or those of one annotator."""
        where = "" if annotator is None else "WHERE annotator = ?"
        query = f"SELECT {', '.join(_PLACE_COLUMNS)} FROM slots {where} ORDER BY annotator, phase, position"  # noqa: S608
        with self._problems():
            rows = self._rows(query, () if annotator is None else (annotator,))
            return [Place(**dict(zip(_PLACE_COLUMNS, row, strict=True))) for row in rows]

    def place(self, annotator: int, phase: Phase, position: int) -> Place | None:
        """Return one place, or None where the list has none."""
        query = f"SELECT {', '.join(_PLACE_COLUMNS)} FROM slots WHERE annotator=? AND phase=? AND position=?"  # noqa: S608
        with self._problems():
            rows = self._rows(query, (annotator, phase, position))
        return Place(**dict(zip(_PLACE_COLUMNS, rows[0], strict=True))) if rows else None

    def picture(self, annotator: int, key: str) -> Path | None:
        """Return the file behind an opaque image id of this annotator, or None."""
        query = (
            "SELECT CASE WHEN s.source_key = ?2 THEN i.source_file ELSE i.followup_file END FROM slots s "
            "JOIN items i ON i.id = s.item WHERE s.annotator = ?1 AND (s.source_key = ?2 OR s.followup_key = ?2)"
        )
        with self._problems():
            rows = self._rows(query, (annotator, key))
        return self.folder / IMAGES / rows[0][0] if rows else None

    def answers(self, annotator: int | None = None, *, history: bool = False) -> list[Answer]:
        """Return answers in the order in which they were saved; of each place the newest alone, unless ``history``."""
        newest = "" if history else "AND id IN (SELECT MAX(id) FROM answers GROUP BY annotator, phase, position)"
        query = (
            f"SELECT {', '.join(_ANSWER_COLUMNS)} FROM answers WHERE (?1 IS NULL OR annotator = ?1) {newest} "  # noqa: S608
            "ORDER BY id"
        )
        with self._problems():
            return [_answer(row) for row in self._rows(query, (annotator,))]

    def answer(self, annotator: int, phase: Phase, position: int) -> Answer | None:
        """Return the newest answer of one place, or None."""
        query = (
            f"SELECT {', '.join(_ANSWER_COLUMNS)} FROM answers WHERE annotator=? AND phase=? AND position=? "  # noqa: S608
            "ORDER BY id DESC LIMIT 1"
        )
        with self._problems():
            rows = self._rows(query, (annotator, phase, position))
        return _answer(rows[0]) if rows else None

    def progress(self, annotator: int, phase: Phase) -> tuple[int, list[int]]:
        """Return how many places a list has, and the positions that are answered."""
        with self._problems():
            total = self._rows("SELECT COUNT(*) FROM slots WHERE annotator=? AND phase=?", (annotator, phase))[0]
            query = "SELECT DISTINCT position FROM answers WHERE annotator=? AND phase=? ORDER BY position"
            return int(total[0]), [int(row[0]) for row in self._rows(query, (annotator, phase))]

    # --- answering -----------------------------------------------------------------------------------------------

    def save(self, annotator: int, phase: Phase, position: int, given: Given) -> Answer:
        """Save an answer; when this returns it is on disk. The same request saved twice gives the same row.

        Raises:
            OutputProblem: The disk is full, or the database cannot be written.
        """
        marks = None if given.marks is None else json.dumps(list(given.marks))
        row = (
            annotator,
            phase,
            position,
            given.diagnosis,
            given.realism,
            marks,
            given.comment,
            min(max(0, given.elapsed_ms), MAX_ELAPSED_MS),
            now(),
            given.request,
        )
        query = f"SELECT {', '.join(_ANSWER_COLUMNS)} FROM answers WHERE annotator=? AND request=?"  # noqa: S608
        with self._problems(), self._lock:
            with self._connection:
                self._connection.execute(
                    "INSERT INTO answers(annotator, phase, position, diagnosis, realism, marks, comment, elapsed_ms, "
                    "saved_at, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                    "ON CONFLICT(annotator, request) DO NOTHING",
                    row,
                )
            return _answer(self._rows(query, (annotator, given.request))[0])

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _problems(self) -> Iterator[None]:
        with _database_problems(self.folder):
            yield


@contextmanager
def _database_problems(folder: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise OutputProblem(f"the study in {folder.name} cannot be read or written: {error}") from error


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30.0, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _hash(token: str) -> str:
    # 256 random bits need no salt and no slow hash
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def now() -> str:
    """Return the time as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    if isinstance(value, Role):
        return value.value
    return value if isinstance(value, str | int) else json.dumps(value)


def _item(row: Sequence[Any]) -> Item:
    values = dict(zip(_ITEM_COLUMNS, row, strict=True))
    values["role"] = Role(values["role"])
    values["outlines"] = json.loads(values["outlines"])
    values["expected"] = json.loads(values["expected"])
    return Item(**values)


def _answer(row: Sequence[Any]) -> Answer:
    values = dict(zip(_ANSWER_COLUMNS, row, strict=True))
    values["marks"] = None if values["marks"] is None else tuple(json.loads(values["marks"]))
    return Answer(**values)
