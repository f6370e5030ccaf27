"""A study's folder: ``study.db`` (SQLite) and ``images/`` under opaque names.

An answer is an appended row, committed with ``synchronous=FULL`` in WAL mode before it is confirmed, so that it
survives a crash of the process and, with a reliable disk, of the machine. The latest row of a place counts; earlier
ones are kept as a history.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from medtest.core.errors import Mistake, UserMistakes, typed_error, typed_mistake
from medtest.core.files import sqlite
from medtest.study.database import (
    ANSWER_COLUMNS,
    IMAGE_NAME,
    ITEM_COLUMNS,
    PLACE_COLUMNS,
    SCHEMA,
    answer_of,
    database_problems,
    item_of,
    now,
    plain,
)
from medtest.study.model import MAX_ELAPSED_MS, Item, NewAnswer, Phase, Place, SavedAnswer
from medtest.study.questions import StudyKind

DATABASE = "study.db"
IMAGES = "images"
FORMAT = 1
"""Incremented when older versions of medtest cannot read what newer ones write."""


class StudyStore:
    """Database of one study; thread-safe.

    Args:
        folder: The study's folder.

    Raises:
        UserMistakes: The folder holds no study, or one written by a newer medtest.
        OutputProblem: The database cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / DATABASE).is_file():
            fix = "medtest study make suite=… writes one"
            raise typed_error("folder", f"{folder.name}, which holds no study", fix=fix)
        self._lock = threading.RLock()
        with database_problems(self.folder):
            self._connection = sqlite.connect(folder / DATABASE, durable=True, implicit=True)
            self.meta: dict[str, Any] = {k: json.loads(v) for k, v in self._rows("SELECT key, value FROM meta")}
        if self.meta.get("format") != FORMAT:
            self.close()
            problem = f"a study of format {self.meta.get('format')}"
            raise Mistake(where=folder.name, found=problem, allowed=f"format {FORMAT}").as_error()

    @classmethod
    def create(cls, folder: Path, meta: Mapping[str, Any], annotators: int) -> StudyStore:
        """Write an empty study into an existing folder, readable only by its owner."""
        with database_problems(folder):
            connection = sqlite.connect(folder / DATABASE, durable=True, implicit=True)
            with connection:
                connection.executescript(SCHEMA)
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
    def kind(self) -> StudyKind:
        """Kind of the study."""
        return StudyKind(self.meta["kind"])

    # --- writing a study ---------------------------------------------------------------------------------------------

    def add_items(self, items: Iterable[Item]) -> None:
        """Add items."""
        marks = ", ".join("?" for _ in ITEM_COLUMNS)
        with database_problems(self.folder), self._lock, self._connection:
            self._connection.executemany(
                f"INSERT INTO items({', '.join(ITEM_COLUMNS)}) VALUES ({marks})",  # noqa: S608 - constant names
                [tuple(plain(getattr(item, name)) for name in ITEM_COLUMNS) for item in items],
            )

    def add_places(self, annotator: int, phase: Phase, slots: Sequence[tuple[int, int]]) -> None:
        """Write one annotator's list: (item, showing) in order. Every place gets its own image ids."""
        rows = [
            (annotator, phase, number, item, showing, secrets.token_hex(16), secrets.token_hex(16))
            for number, (item, showing) in enumerate(slots, start=1)
        ]
        with database_problems(self.folder), self._lock, self._connection:
            self._connection.executemany("INSERT INTO slots VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    # --- annotators ----------------------------------------------------------------------------------------------

    def annotators(self) -> list[tuple[int, bool]]:
        """Return every annotator's number and whether they have a link."""
        return [(i, bool(t)) for i, t in self._rows("SELECT id, token_sha256 FROM annotators ORDER BY id")]

    def new_tokens(self, annotators: Sequence[int]) -> list[str]:
        """Create new links for annotators, which invalidate the old ones; all or none. The tokens are not stored.

        Raises:
            UserMistakes: There is no annotator with such a number; all links are unchanged.
        """
        self.check_annotators("--for", annotators)
        tokens = [secrets.token_urlsafe(32) for _ in annotators]
        rows = [(_hash(token), number) for token, number in zip(tokens, annotators, strict=True)]
        with database_problems(self.folder), self._lock, self._connection:
            self._connection.executemany("UPDATE annotators SET token_sha256 = ? WHERE id = ?", rows)
        return tokens

    def check_annotators(self, key: str, numbers: Sequence[int]) -> None:
        """Check typed annotator numbers.

        Raises:
            UserMistakes: There is no annotator with such a number.
        """
        existing = [number for number, _ in self.annotators()]
        mistakes = [
            typed_mistake(key, str(number), f"1 to {len(existing)}")
            for number in dict.fromkeys(numbers)
            if number not in existing
        ]
        if mistakes:
            raise UserMistakes(mistakes)

    def annotator_of(self, token: str) -> int | None:
        """Return the annotator of a token, or None; all hashes are compared, each in constant time."""
        hashed = _hash(token)
        annotator: int | None = None
        for number, stored in self._rows("SELECT id, token_sha256 FROM annotators"):
            if hmac.compare_digest(hashed, stored or "-" * 64):
                annotator = number
        return annotator

    def seal(self, annotator: int, token: str) -> str:
        """Return the CSRF token of an annotator's pages, derived from the study's secret and their link."""
        key = bytes.fromhex(self.meta["secret"])
        return hmac.new(key, f"csrf\0{annotator}\0{_hash(token)}".encode(), sha256).hexdigest()

    # --- reading -------------------------------------------------------------------------------------------------

    def items(self) -> list[Item]:
        """Return all items."""
        query = f"SELECT {', '.join(ITEM_COLUMNS)} FROM items ORDER BY id"  # noqa: S608 - constant names
        return [item_of(row) for row in self._rows(query)]

    def item(self, number: int) -> Item:
        """Return one item."""
        query = f"SELECT {', '.join(ITEM_COLUMNS)} FROM items WHERE id = ?"  # noqa: S608 - constant names
        return item_of(self._rows(query, (number,))[0])

    def places(self) -> list[Place]:
        """Return every place of the lists."""
        query = f"SELECT {', '.join(PLACE_COLUMNS)} FROM slots ORDER BY annotator, phase, position"  # noqa: S608
        return [Place(**dict(zip(PLACE_COLUMNS, row, strict=True))) for row in self._rows(query)]

    def place(self, annotator: int, phase: Phase, position: int) -> Place | None:
        """Return one place, or None if the list has no such place."""
        query = f"SELECT {', '.join(PLACE_COLUMNS)} FROM slots WHERE annotator=? AND phase=? AND position=?"  # noqa: S608
        rows = self._rows(query, (annotator, phase, position))
        return Place(**dict(zip(PLACE_COLUMNS, rows[0], strict=True))) if rows else None

    def picture(self, annotator: int, key: str) -> Path | None:
        """Return the file of an opaque image id of this annotator, or None."""
        query = (
            "SELECT CASE WHEN s.source_key = ?2 THEN i.source_file ELSE i.followup_file END FROM slots s "
            "JOIN items i ON i.id = s.item WHERE s.annotator = ?1 AND (s.source_key = ?2 OR s.followup_key = ?2)"
        )
        rows = self._rows(query, (annotator, key))
        return self.folder / IMAGES / rows[0][0] if rows and IMAGE_NAME.fullmatch(rows[0][0]) else None

    def answers(self, annotator: int | None = None, *, history: bool = False) -> list[SavedAnswer]:
        """Return answers in the order in which they were saved; only the latest of each place unless ``history``."""
        newest = "" if history else "AND id IN (SELECT MAX(id) FROM answers GROUP BY annotator, phase, position)"
        query = (
            f"SELECT {', '.join(ANSWER_COLUMNS)} FROM answers WHERE (?1 IS NULL OR annotator = ?1) {newest} "  # noqa: S608
            "ORDER BY id"
        )
        return [answer_of(row) for row in self._rows(query, (annotator,))]

    def answer(self, annotator: int, phase: Phase, position: int) -> SavedAnswer | None:
        """Return the latest answer of one place, or None."""
        query = (
            f"SELECT {', '.join(ANSWER_COLUMNS)} FROM answers WHERE annotator=? AND phase=? AND position=? "  # noqa: S608
            "ORDER BY id DESC LIMIT 1"
        )
        rows = self._rows(query, (annotator, phase, position))
        return answer_of(rows[0]) if rows else None

    def progress(self, annotator: int, phase: Phase) -> tuple[int, list[int]]:
        """Return the length of a list, and the answered positions."""
        total = self._rows("SELECT COUNT(*) FROM slots WHERE annotator=? AND phase=?", (annotator, phase))[0]
        query = "SELECT DISTINCT position FROM answers WHERE annotator=? AND phase=? ORDER BY position"
        return int(total[0]), [int(row[0]) for row in self._rows(query, (annotator, phase))]

    # --- answering -----------------------------------------------------------------------------------------------

    def save(self, annotator: int, phase: Phase, position: int, answer: NewAnswer) -> SavedAnswer:
        """Save an answer durably. The same request saved twice gives the same row.

        Raises:
            OutputProblem: The disk is full, or the database cannot be written.
        """
        marks = None if answer.marks is None else json.dumps(list(answer.marks))
        row = (
            annotator,
            phase,
            position,
            answer.diagnosis,
            answer.realism,
            marks,
            answer.comment,
            min(max(0, answer.elapsed_ms), MAX_ELAPSED_MS),
            now(),
            answer.request,
        )
        query = f"SELECT {', '.join(ANSWER_COLUMNS)} FROM answers WHERE annotator=? AND request=?"  # noqa: S608
        with database_problems(self.folder), self._lock:
            with self._connection:
                self._connection.execute(
                    "INSERT INTO answers(annotator, phase, position, diagnosis, realism, marks, comment, elapsed_ms, "
                    "saved_at, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                    "ON CONFLICT(annotator, request) DO NOTHING",
                    row,
                )
            return answer_of(self._rows(query, (annotator, answer.request))[0])

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with database_problems(self.folder), self._lock:
            return self._connection.execute(query, values).fetchall()


def _hash(token: str) -> str:
    # 256 random bits need neither salt nor a slow hash.
    return sha256(token.encode("utf-8", "replace")).hexdigest()
