"""The local store of MLflow: parallel starts, kills, half-made predecessors and a move."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from forked_program import with_libraries

sys.path.insert(0, str(Path(__file__).parents[2] / "report"))
from report_parts import make_suite
from tracking_parts import client, runs

from medtest.core.errors import NotTracked
from medtest.report import tracking
from medtest.report.tracking import store_files

ROOT = Path(__file__).parents[3]


def test_the_newest_revision_matches_mlflow(fresh_store):
    from mlflow.store.db import utils

    assert store_files.heads() == {utils._get_latest_schema_revision()}
    assert store_files.is_current(fresh_store)
    assert not list(fresh_store.parent.glob(".mlflow.db.draft*"))


_START = """
from pathlib import Path
from medtest.report.tracking import Tracker
tracker = Tracker(Path({home!r}))
parents = tracker.parent("synthetic", "run {number}", {{}})
tracker.close(parents)
"""


def start(home, number):
    environment = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
    return with_libraries(_START.format(home=str(home), number=number), environment=environment)


@pytest.mark.slow
def test_six_processes_make_one_store_at_once(tmp_path):
    processes = [start(tmp_path, number) for number in range(6)]
    errors = [process.communicate(timeout=280)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, errors
    assert len(runs(tmp_path)[0]) == 6


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_sigkill_while_the_store_is_made_does_not_break_it(tmp_path):
    chance = random.Random(11)
    killed = 0
    database = tmp_path / "mlruns" / "mlflow.db"
    for number in range(60):
        if killed == 15:
            break
        process = start(tmp_path, number)
        deadline = time.monotonic() + 120
        while not (tmp_path / "mlruns" / ".mlflow.db.draft").exists() and time.monotonic() < deadline:
            if process.poll() is not None:
                break
            time.sleep(0.01)
        time.sleep(chance.random() * 0.5)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.communicate()
        if database.exists():
            assert store_files.is_current(database)  # whole, or not there
            shutil.rmtree(tmp_path / "mlruns")
    assert killed == 15
    last = start(tmp_path, 99)
    assert last.communicate(timeout=280)[1] == ""
    assert store_files.is_current(database)
    assert not list(database.parent.glob(".mlflow.db.draft*"))


def make_half_migrated(database, revision):
    """Make a store as MLflow does, but stop its migrations at a revision."""
    from alembic import command
    from mlflow.store.db import utils
    from mlflow.store.tracking.dbmodels.initial_models import Base

    engine = utils.create_sqlalchemy_engine(f"sqlite:///{database}")
    Base.metadata.create_all(engine)
    config = utils._get_alembic_config(str(engine.url))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


@pytest.mark.slow
def test_an_older_store_is_upgraded_and_keeps_its_runs(tmp_path):
    database = tmp_path / "mlruns" / "mlflow.db"
    database.parent.mkdir()
    make_half_migrated(database, "7f2a7d5fae7d")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "INSERT INTO experiments (experiment_id, name, lifecycle_stage) VALUES (7, 'mine', 'active')"
        )
        connection.execute(
            "INSERT INTO runs (run_uuid, name, status, lifecycle_stage, experiment_id, source_type, user_id, "
            "start_time, artifact_uri) "
            "VALUES ('abc', 'kept', 'FINISHED', 'active', 7, 'LOCAL', 'me', 1, 'mlruns/7/abc')"
        )
        connection.commit()
    assert not store_files.is_current(database)
    tracking.prepare_store(database)
    assert store_files.is_current(database)
    assert client(tmp_path).get_run("abc").info.run_name == "kept"
    assert len(list(database.parent.glob("mlflow.db.before-*"))) == 1


@pytest.mark.slow
def test_a_store_whose_making_was_interrupted_is_replaced(tmp_path):
    database = tmp_path / "mlruns" / "mlflow.db"
    database.parent.mkdir()
    with closing(sqlite3.connect(database)) as connection:  # tables of the first step, no revision noted
        connection.execute("CREATE TABLE experiments (experiment_id INTEGER NOT NULL, name VARCHAR(256))")
        connection.execute("CREATE TABLE metrics (key VARCHAR(250) NOT NULL)")
        connection.commit()
    tracking.prepare_store(database)
    assert store_files.is_current(database)
    assert len(list(database.parent.glob("mlflow.db.unfinished-*"))) == 1


def test_a_damaged_store_is_never_replaced(tmp_path):
    database = tmp_path / "mlruns" / "mlflow.db"
    database.parent.mkdir()
    database.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096)
    before = database.read_bytes()
    with pytest.raises(NotTracked, match="complete on disk"):
        tracking.prepare_store(database)
    assert database.read_bytes() == before


def test_addresses_are_shown_without_passwords_or_paths(tmp_path):
    assert tracking.where(tmp_path, tracking.store_uri(tmp_path, None)) == "mlruns/mlflow.db"
    assert tracking.where(tmp_path, "https://me:secret@lab.example:5000/x") == "https://lab.example:5000"
    assert tracking.where(tmp_path, f"sqlite:///{tmp_path}/other.db") == "sqlite store"


def test_a_store_that_was_moved_takes_its_artifacts_along(home, tmp_path):
    suite = make_suite()
    (tmp_path / "report.html").write_text("a page")
    tracker = tracking.Tracker(home)
    parents = tracker.parent(suite.name, "above", {})
    pages = [(tmp_path / "report.html", "")]
    tracker.child(suite.name, parents, tracking.Child(name="net", tags={"system": "net"}, artifacts=pages))
    tracker.close(parents)
    other = tmp_path / "elsewhere"
    other.mkdir()
    shutil.move(home / "mlruns", other / "mlruns")
    tracking.ensure_store(tracking.local_uri(other), other)
    store = client(other)
    (child,) = [run for run in store.search_runs(["1"]) if "system" in run.data.tags]
    assert child.info.artifact_uri.startswith((other / "mlruns").resolve().as_uri() + "/")
    assert "report.html" in {item.path for item in store.list_artifacts(child.info.run_id)}
    assert store.get_experiment("1").artifact_location == (other / "mlruns" / "synthetic").resolve().as_uri()


def test_artifacts_of_another_store_are_below_home_and_not_in_the_working_directory(fresh_store, tmp_path, monkeypatch):
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    shutil.copy2(fresh_store, tmp_path / "other.db")
    tracker = tracking.Tracker(tmp_path / "home", f"sqlite:///{tmp_path}/other.db")
    tracker.close(tracker.parent("synthetic", "run", {}))
    location = tracker.client.get_experiment_by_name("synthetic").artifact_location
    assert location == (tmp_path / "home" / "mlruns" / "synthetic").resolve().as_uri()
    assert list((tmp_path / "cwd").iterdir()) == []


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("sqlite:////nowhere/at/all/other.db", "sqlite:///…/other.db"),
        ("http://me:s@ecret@127.0.0.1:9/x?token=abc", "127.0.0.1:9"),
        ("nosuch://me:secret@lab.example/x", "nosuch://lab.example"),
    ],
)
def test_a_variable_with_a_failing_store_is_named(tmp_path, monkeypatch, uri, shown):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    if "nowhere" in uri:
        blocked = tmp_path / "file"
        blocked.touch()
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{blocked}/at/other.db")
    with pytest.raises(NotTracked) as caught:
        tracking.Tracker(tmp_path)
    message = str(caught.value)
    assert "MLFLOW_TRACKING_URI" in message
    assert shown in message
    assert not any(secret in message for secret in ("cret", "abc", "me:", str(tmp_path)))
