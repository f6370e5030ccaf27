"""Tables of a store's index, and conversion between entries and rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from medtest.core.cases import Address, Effect
from medtest.core.errors import MedtestError
from medtest.runner.followups.entry import Entry

INDEX = "index.sqlite"
"""File name of the index."""

TABLES = """
CREATE TABLE sources (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, dataset TEXT NOT NULL, seed_id TEXT NOT NULL,
  cluster TEXT NOT NULL, strata TEXT NOT NULL, original_sha256 TEXT NOT NULL,
  image_sha256 TEXT NOT NULL, mask_sha256 TEXT NOT NULL
) STRICT;
CREATE TABLE followups (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, source INTEGER NOT NULL REFERENCES sources(id),
  relation TEXT NOT NULL, severity INTEGER NOT NULL, frame INTEGER NOT NULL, repeat INTEGER NOT NULL,
  part TEXT NOT NULL, revision INTEGER NOT NULL, grp TEXT NOT NULL, params TEXT NOT NULL, scale REAL,
  effect TEXT NOT NULL, facts TEXT NOT NULL, image_sha256 TEXT NOT NULL, mask_sha256 TEXT NOT NULL,
  skipped TEXT NOT NULL
) STRICT;
CREATE INDEX followups_of_source ON followups(source);
CREATE INDEX followups_by_image ON followups(image_sha256);
CREATE TABLE suites (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, version TEXT NOT NULL, added TEXT NOT NULL
) STRICT;
CREATE TABLE members (
  suite INTEGER NOT NULL REFERENCES suites(id), place INTEGER NOT NULL,
  followup INTEGER NOT NULL REFERENCES followups(id) ON DELETE CASCADE, PRIMARY KEY (suite, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_of_followup ON members(followup);
CREATE TABLE files (
  kind TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (kind, sha256)
) STRICT, WITHOUT ROWID;
"""
"""Statements that create the tables, each ended by a semicolon and a line feed."""

ENTRY = """
SELECT f.key, s.dataset, s.seed_id, f.relation, f.severity, f.frame, f.repeat, s.cluster, s.strata, f.part,
  f.revision, f.grp, f.params, f.scale, f.effect, f.facts, s.original_sha256, s.image_sha256, s.mask_sha256,
  f.image_sha256, f.mask_sha256, f.skipped
FROM followups f JOIN sources s ON s.id = f.source
"""
"""Selects follow-ups ``f`` of sources ``s`` with the columns for :func:`entry_of`."""


def add_source(connection: sqlite3.Connection, key: str, entry: Entry) -> int:
    """Insert or update the source of a follow-up, and return its row's id.

    Args:
        connection: Connection inside a transaction.
        key: Digest of everything that determines the source.
        entry: One of its follow-ups.
    """
    address = entry.address
    connection.execute(
        "INSERT INTO sources (key, dataset, seed_id, cluster, strata, original_sha256, image_sha256, mask_sha256) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (key) DO UPDATE SET cluster = excluded.cluster, strata = excluded.strata",
        (
            key,
            address.dataset,
            address.seed_id,
            entry.cluster,
            json.dumps(entry.strata, ensure_ascii=False),
            entry.original_sha256,
            entry.source_sha256,
            entry.source_mask_sha256,
        ),
    )
    return int(connection.execute("SELECT id FROM sources WHERE key = ?", (key,)).fetchone()[0])


def add_followup(connection: sqlite3.Connection, source: int, entry: Entry) -> int:
    """Insert or update a follow-up, and return its row's id.

    Args:
        connection: Connection inside a transaction.
        source: Id of the source's row.
        entry: The follow-up.

    Raises:
        TypeError: Its parameters or facts are not JSON values.
        ValueError: They contain NaN or an infinite number.
    """
    address = entry.address
    connection.execute(
        "INSERT INTO followups (key, source, relation, severity, frame, repeat, part, revision, grp, params, scale, "
        "effect, facts, image_sha256, mask_sha256, skipped) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
        "ON CONFLICT (key) DO UPDATE SET source = excluded.source, params = excluded.params, scale = excluded.scale, "
        "effect = excluded.effect, facts = excluded.facts, image_sha256 = excluded.image_sha256, "
        "mask_sha256 = excluded.mask_sha256, skipped = excluded.skipped",
        (
            entry.key,
            source,
            address.relation,
            address.severity,
            address.frame,
            address.repeat,
            entry.part,
            entry.revision,
            entry.group,
            to_json(entry.params),
            entry.scale,
            to_json([entry.effect.kind, dict(entry.effect.data)]),
            to_json(dict(entry.facts)),
            entry.followup_sha256,
            entry.mask_sha256,
            entry.skipped,
        ),
    )
    return int(connection.execute("SELECT id FROM followups WHERE key = ?", (entry.key,)).fetchone()[0])


def to_json(value: object) -> str:
    """Convert a value to JSON text.

    Raises:
        TypeError: The value is not a JSON value.
        ValueError: It contains NaN or an infinite number.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def entry_of(row: Sequence[Any]) -> Entry:
    """Create an entry from a row of :data:`ENTRY`.

    Raises:
        MedtestError: The row has impossible values: the index was altered.
    """
    try:
        return _entry(row)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise MedtestError(
            f"{INDEX} holds a follow-up that cannot be read ({str(error)[:100]}). Move it away and make the follow-ups "
            "again: existing pictures are reused."
        ) from error


def _entry(row: Sequence[Any]) -> Entry:
    kind, data = json.loads(row[14])
    return Entry(
        key=row[0],
        address=Address(dataset=row[1], seed_id=row[2], relation=row[3], severity=row[4], frame=row[5], repeat=row[6]),
        cluster=row[7],
        strata=tuple((str(name), str(value)) for name, value in json.loads(row[8])),
        part=row[9],
        revision=row[10],
        group=row[11],
        params=json.loads(row[12]),
        scale=row[13],
        effect=Effect(kind=kind, data=data),
        facts=json.loads(row[15]),
        original_sha256=row[16],
        source_sha256=row[17],
        source_mask_sha256=row[18],
        followup_sha256=row[19],
        mask_sha256=row[20],
        skipped=row[21],
    )
