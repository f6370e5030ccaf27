"""Atomic file operations on the local MLflow store, without importing MLflow.

:mod:`medtest.report.tracking` creates and upgrades databases under a draft name; this module checks whether one is up
to date and moves a draft into place.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sqlite3
from pathlib import Path

from medtest.core.errors import NotTracked
from medtest.core.files import sqlite


def sweep(database: Path) -> None:
    """Remove drafts left by dead processes; the lock guarantees that no other process uses them."""
    for draft in database.parent.glob(f".{database.name}.draft*"):
        draft.unlink(missing_ok=True)


def publish(draft: Path, database: Path) -> None:
    """Move a draft into the database's place, durably."""
    handle = os.open(draft, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    draft.replace(database)
    folder = os.open(database.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def copy(database: Path, draft: Path) -> None:
    """Copy a database through SQLite, which applies a journal left by a dead process."""
    with contextlib.closing(_opened(database)) as source, contextlib.closing(_opened(draft)) as target:
        source.backup(target)


def _opened(database: Path) -> sqlite3.Connection:
    """Open a store for writing; its journal mode is left to MLflow."""
    return sqlite.connect(database, durable=True, implicit=True, wal=False)


def drop_journals(database: Path) -> None:
    """Remove the journals of a database that no longer exists."""
    for suffix in ("-journal", "-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)


def is_current(database: Path) -> bool:
    """Return True if the database has the newest schema, without importing mlflow's stores.

    Raises:
        sqlite3.OperationalError: Other processes held it the whole time.
    """
    try:
        rows = sqlite.read(
            database, lambda connection: connection.execute("SELECT version_num FROM alembic_version").fetchall()
        )
    except sqlite3.Error as error:
        if sqlite.is_held(error):
            raise
        return False
    return {row[0] for row in rows} == heads()


def follow(database: Path) -> None:
    """Update the artifact addresses of a store that was moved.

    MLflow records absolute addresses. That of its first experiment tells where the store was created; everything below
    that folder is now below this one.
    """
    location = database.parent.resolve().as_uri()
    with contextlib.closing(_opened(database)) as connection:
        row = connection.execute("SELECT artifact_location FROM experiments WHERE experiment_id = 0").fetchone()
        recorded = str(row[0] or "").removesuffix("/0") if row else ""
        if recorded == location or not re.fullmatch(rf"file:///.*/{re.escape(database.parent.name)}", recorded):
            return
        for table, column in (("experiments", "artifact_location"), ("runs", "artifact_uri")):
            connection.execute(
                f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",  # noqa: S608
                (location, len(recorded) + 1, len(recorded) + 1, f"{recorded}/"),
            )
        connection.commit()


def heads() -> set[str]:
    """Return the newest revisions of MLflow's migrations, read from its scripts."""
    spec = importlib.util.find_spec("mlflow")
    if spec is None or spec.origin is None:
        raise NotTracked("mlflow is not installed")
    folder = Path(spec.origin).parent / "store" / "db_migrations" / "versions"
    revisions: set[str] = set()
    superseded: set[str] = set()
    for script in folder.glob("*.py"):
        text = script.read_text(encoding="utf-8")
        revisions |= set(re.findall(r'^revision\s*(?::\s*\w+\s*)?=\s*["\']([^"\']+)', text, re.M))
        superseded |= set(re.findall(r'^down_revision\s*(?::[^=]+)?=\s*["\']([^"\']+)', text, re.M))
    return revisions - superseded


def has_runs(database: Path) -> bool:
    """Return True if anything was ever tracked in a database, or if that is unknown."""
    try:
        return (
            sqlite.read(database, lambda connection: connection.execute("SELECT 1 FROM runs LIMIT 1").fetchone())
            is not None
        )
    except sqlite3.OperationalError as error:
        return sqlite.is_held(error)  # otherwise there is no table of runs
    except sqlite3.Error:
        return True  # Not a database, or a damaged one: never replace what may hold runs.
