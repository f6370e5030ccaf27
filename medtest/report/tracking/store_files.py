"""The files of the local MLflow store: whole or not there, whatever dies meanwhile. Imports no MLflow.

:mod:`medtest.report.tracking` makes and upgrades databases under a draft name; here is what tells whether one is up to
date and puts a draft in its place.
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
    """Remove drafts that processes which died left; the lock says that nobody works on them."""
    for draft in database.parent.glob(f".{database.name}.draft*"):
        draft.unlink(missing_ok=True)


def publish(draft: Path, database: Path) -> None:
    """Put a draft in the database's place, durably."""
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
    """Copy a database through SQLite, which takes a journal that a dead process left into account."""
    with contextlib.closing(_opened(database)) as source, contextlib.closing(_opened(draft)) as target:
        source.backup(target)


def _opened(database: Path) -> sqlite3.Connection:
    """Open a store to write it; its journal is MLflow's matter."""
    return sqlite.connect(database, durable=True, implicit=True, wal=False)


def drop_journals(database: Path) -> None:
    """Remove journals that belonged to a database which is no longer there."""
    for suffix in ("-journal", "-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)


def is_current(database: Path) -> bool:
    """Whether the database has the newest schema, without importing mlflow's stores.

    Raises:
        sqlite3.OperationalError: Others held it all the while, so that it cannot be told.
    """
    try:
        rows = sqlite.read(database, lambda it: it.execute("SELECT version_num FROM alembic_version").fetchall())
    except sqlite3.Error as error:
        if sqlite.is_held(error):
            raise
        return False
    return {row[0] for row in rows} == heads()


def follow(database: Path) -> None:
    """Let the artifacts of a store that was moved be found, and new ones be written, where it lies now.

    MLflow notes whole addresses. That of its first experiment says where the store was made; what lay below that folder
    lies below this one.
    """
    here = database.parent.resolve().as_uri()
    with contextlib.closing(_opened(database)) as connection:
        row = connection.execute("SELECT artifact_location FROM experiments WHERE experiment_id = 0").fetchone()
        there = str(row[0] or "").removesuffix("/0") if row else ""
        if there == here or not re.fullmatch(rf"file:///.*/{re.escape(database.parent.name)}", there):
            return
        for table, column in (("experiments", "artifact_location"), ("runs", "artifact_uri")):
            connection.execute(
                f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",  # noqa: S608
                (here, len(there) + 1, len(there) + 1, f"{there}/"),
            )
        connection.commit()


def heads() -> set[str]:
    """Return the newest revisions of MLflow's migrations, read from the scripts that it ships."""
    spec = importlib.util.find_spec("mlflow")
    if spec is None or spec.origin is None:
        raise NotTracked("mlflow is not installed")
    folder = Path(spec.origin).parent / "store" / "db_migrations" / "versions"
    revisions: set[str] = set()
    below: set[str] = set()
    for script in folder.glob("*.py"):
        text = script.read_text(encoding="utf-8")
        revisions |= set(re.findall(r'^revision\s*(?::\s*\w+\s*)?=\s*["\']([^"\']+)', text, re.M))
        below |= set(re.findall(r'^down_revision\s*(?::[^=]+)?=\s*["\']([^"\']+)', text, re.M))
    return revisions - below


def has_runs(database: Path) -> bool:
    """Whether anything was ever tracked in a database; True where that cannot be told."""
    try:
        return sqlite.read(database, lambda it: it.execute("SELECT 1 FROM runs LIMIT 1").fetchone()) is not None
    except sqlite3.OperationalError as error:
        return sqlite.is_held(error)  # else there is not even a table of runs
    except sqlite3.Error:
        return True  # not a database, or a damaged one: never replace what may hold somebody's runs
