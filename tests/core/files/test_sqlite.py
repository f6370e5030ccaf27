"""Every store waits for other holders of its file: SQLite's own timeout does not do so everywhere."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from medtest.api.store.cache import Cache
from medtest.api.store.ledger import Ledger
from medtest.core.files import sqlite
from medtest.report.tracking import store_files
from medtest.runner.followups.index import Index
from medtest.study.store import StudyStore


def opened(path: Path) -> None:
    sqlite.connect(path).close()


def index(path: Path) -> None:
    Index(path.parent, readonly=False).close()


def cache(path: Path) -> None:
    Cache(path).close()


def ledger(path: Path) -> None:
    Ledger(path).close()


NAMES: dict[str, Callable[[Path], None]] = {
    "index.sqlite": index,
    "answers.sqlite": cache,
    "ledger.sqlite": ledger,
    "any.db": opened,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_fresh_file_that_another_is_writing_is_waited_for(tmp_path: Path, name: str) -> None:
    """Two processes meet at a fresh store: one holds the lock while the other switches the file to WAL."""
    path = tmp_path / name
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    thread = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    thread.start()
    NAMES[name](path)
    assert not other.in_transaction  # it has waited
    thread.join()
    other.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_wait_ends(tmp_path: Path) -> None:
    path = tmp_path / "held.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            sqlite.connect(path, wait=0.05)


def test_a_file_that_is_no_database_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "no.db"
    path.write_bytes(b"no database at all, and long enough to be read as a page of one" * 20)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        sqlite.connect(path)


def test_a_store_of_runs_that_is_being_written_is_not_taken_for_an_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.executescript("CREATE TABLE alembic_version (version_num TEXT); CREATE TABLE runs (a TEXT)")
        other.executemany("INSERT INTO alembic_version VALUES (?)", [(head,) for head in store_files.heads()])
        other.execute("BEGIN EXCLUSIVE")
        thread = threading.Timer(0.2, lambda: other.execute("COMMIT"))
        thread.start()
        assert store_files.is_current(path)
        thread.join()
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(sqlite.read, "__kwdefaults__", {"wait": 0.05})
        assert store_files.has_runs(path)  # this is unknown, so the file may not be replaced
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            store_files.is_current(path)


def test_a_store_of_runs_keeps_its_journal_where_it_is_copied_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "mlruns" / "mlflow.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as original:
        original.executescript(
            "CREATE TABLE experiments (experiment_id INTEGER, artifact_location TEXT);"
            "CREATE TABLE runs (artifact_uri TEXT);"
            "INSERT INTO experiments VALUES (0, 'file:///before/mlruns/0');"
            "INSERT INTO runs VALUES ('file:///before/mlruns/0/a')"
        )
    store_files.follow(path)
    store_files.copy(path, tmp_path / "copy.db")
    for file in (path, tmp_path / "copy.db"):
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
            assert connection.execute("SELECT artifact_uri FROM runs").fetchone() == (f"{path.parent.as_uri()}/0/a",)


def test_one_module_opens_files_of_sqlite() -> None:
    package = Path(sqlite.__file__).parent
    modules = [path for path in package.rglob("*.py") if "sqlite3.connect(" in path.read_text(encoding="utf-8")]
    assert modules == [package / "sqlite.py"]


def meet(kind: str, folders: list[Path], barrier: Any, errors: Any) -> None:
    """Open the same fresh stores as other processes at the same moment, write and read them."""
    for folder in folders:
        try:
            barrier.wait(timeout=60)
            if kind == "index":
                store = Index(folder, readonly=False)
                with store.transaction() as connection:
                    connection.execute(
                        "INSERT INTO suites (key, name, version, added) VALUES (?, '', '', '')", (str(os.getpid()),)
                    )
                store.rows("SELECT count(*) FROM suites")
                store.close()
            elif kind == "cache":
                with Cache(folder / "answers.sqlite") as answers:
                    assert answers.get("key", "here") is None
            elif kind == "ledger":
                with Ledger(folder / "ledger.sqlite", wait=60.0) as book:
                    book.send(address="a", key="k", attempt=1, expected_usd=0.0)
            else:
                with StudyStore(folder) as study:
                    study.new_tokens([1])
                    study.annotators()
        except Exception as error:  # noqa: BLE001 - the test shows any error
            errors.put(f"{type(error).__name__}: {error}")
    errors.put("")


@pytest.mark.parametrize("times", [15, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["index", "cache", "ledger", "study"])
def test_processes_that_open_a_fresh_store_at_once(tmp_path: Path, kind: str, times: int) -> None:
    folders = [tmp_path / str(number) for number in range(times)]
    for folder in folders:
        folder.mkdir()
        if kind == "study":
            StudyStore.create(folder, {"name": "s"}, 3).close()
    context = multiprocessing.get_context("fork")
    barrier, errors = context.Barrier(3), context.Queue()
    processes: list[Any] = [context.Process(target=meet, args=(kind, folders, barrier, errors)) for _ in range(3)]
    for process in processes:
        process.start()
    results = []
    while results.count("") < len(processes):
        results.append(errors.get(timeout=250))
    for process in processes:
        process.join()
    assert [line for line in results if line] == []
