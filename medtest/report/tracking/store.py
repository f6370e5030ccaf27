"""The local MLflow store: its address, creation and upgrade.

``mlruns/mlflow.db`` below the home folder is created and upgraded under a temporary name, behind a file lock, and then
renamed, so that a process that dies leaves no incomplete store.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from medtest.api.redact import without_users
from medtest.core.errors import NotTracked
from medtest.core.files.paths import DATABASE, SQLITE, STORE, STORE_VARIABLE, local_uri, store_uri
from medtest.core.files.paths import home as medtest_home
from medtest.report.tracking import runs_page, store_files

T = TypeVar("T")

_LOCK_SECONDS = 600.0
_QUERY = re.compile(r"\?\S*=[^\s'\"<>)]*")
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}
"""Always set, so that no connection is opened that the user did not name."""
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "15",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
}
"""Defaults that report an unreachable server within seconds instead of MLflow's 15 minutes."""


def ensure_store(uri: str, home: Path | None = None) -> None:
    """Create or upgrade the store of a ``sqlite:///`` address; other stores are managed by their servers.

    Args:
        uri: Address of the store.
        home: Folder that holds ``mlruns/``; None for :func:`medtest.core.files.paths.home`.

    Raises:
        NotTracked: It cannot be created or upgraded.
    """
    if uri.startswith(SQLITE) and "?" not in uri and not uri.endswith(":memory:"):
        prepare_store(Path(uri.removeprefix(SQLITE)), named(home if home is not None else medtest_home(), uri))


def experiments(uri: str, most: int = 60) -> list[tuple[str, str]]:
    """Return ids and names of a store's experiments, latest change first, after setting the page's state on each.

    Args:
        uri: Address of the store.
        most: Maximum number of experiments.

    Raises:
        NotTracked: The store cannot be reached.
    """
    configure()
    from mlflow import MlflowClient

    try:
        with quiet():
            client = MlflowClient(tracking_uri=uri)
            held = list(client.search_experiments(max_results=most + 1, order_by=["last_update_time DESC"]))
            listed = [experiment for experiment in held if experiment.name != "Default"][:most]
            for experiment in listed:
                runs_page.offer(client, experiment)
    except Exception as error:
        text = " ".join(without_credentials(str(error).replace(uri, "")).split())[:300]
        place = named(medtest_home(), uri)
        raise NotTracked(f"MLflow at {place} cannot be reached: {type(error).__name__}: {text}") from error
    return [(str(experiment.experiment_id), str(experiment.name)) for experiment in listed]


def fetch_run(run_id: str, home: Path, folder: Path) -> Path | None:
    """Fetch records, ``run.json`` and ``suite.yaml`` of an MLflow run.

    Args:
        run_id: Id of the run.
        home: Folder that holds ``mlruns/``; ``MLFLOW_TRACKING_URI`` names another store.
        folder: Target folder.

    Returns:
        The folder; None if the store does not have the run, or it holds no records.
    """
    configure()
    uri = store_uri(home)
    ensure_store(uri, home)
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    client = MlflowClient(tracking_uri=uri)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        available = {artifact.path for artifact in client.list_artifacts(run_id)}
        for name in ("records.parquet", "run.json", "suite.yaml"):
            if name in available:
                client.download_artifacts(run_id, name, str(folder))
    except MlflowException:
        return None
    return folder


def is_remote(uri: str) -> bool:
    """Return True if a store is on a server, which keeps artifacts itself, rather than a local file or database."""
    return urlsplit(uri).scheme in {"http", "https", "databricks"} or uri.startswith("databricks")


def where(home: Path, uri: str) -> str:
    """Return the store's location without local paths or passwords."""
    if uri == local_uri(home):
        return f"{STORE}/{DATABASE}"
    parts = urlsplit(uri)
    if parts.hostname:
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    return f"{parts.scheme or 'a'} store"


def named(home: Path, uri: str) -> str:
    """Return the store's location as :func:`where`, noting the environment variable if it set it.

    For a file, the last part of its path is shown.
    """
    try:
        place, path = where(home, uri), urlsplit(uri).path
    except ValueError:  # the port is not a number
        place, path = "an unreadable address", ""
    if place.endswith(" store") and path.strip("/"):
        place = f"{urlsplit(uri).scheme or 'file'}:///…/{Path(path).name}"
    return f"{place} (named by {STORE_VARIABLE})" if uri == os.environ.get(STORE_VARIABLE) else place


def without_credentials(text: str) -> str:
    """Return a text whose addresses have no user names and no query strings."""
    return _QUERY.sub("", without_users(text))


def configure() -> None:
    """Set the environment and log levels for MLflow, before it is imported."""
    os.environ.update(_ENVIRONMENT)
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    for name in ("mlflow", "alembic", "git", "urllib3"):
        logging.getLogger(name).setLevel(logging.ERROR)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings of MLflow's dependencies, which do not concern the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def prepare_store(database: Path, shown: str = "") -> None:
    """Create or upgrade a store; safe for concurrent processes, any of which may die.

    If the store's folder was moved, the addresses of its artifacts are updated.

    Args:
        database: The SQLite file; artifacts of experiments created by others are stored beside it.
        shown: Name of the store in messages.

    Raises:
        NotTracked: It cannot be created or upgraded.
    """
    from filelock import FileLock, Timeout

    configure()
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(str(database.with_name(f".{database.name}.lock")), timeout=_LOCK_SECONDS):
            store_files.sweep(database)
            if not database.exists():
                _make(database)
            elif not store_files.is_current(database):
                _upgrade(database)
            if database.parent.name == STORE:
                store_files.follow(database)
    except Timeout as error:
        words = "The results are complete on disk, but another process has locked the MLflow store for ten minutes."
        raise NotTracked(words) from error
    except NotTracked:
        raise
    except Exception as error:
        text = " ".join(str(error).split()).replace(str(database.parent), database.parent.name)[:300]
        place = shown or f"{database.parent.name}/{database.name}"
        words = f"the MLflow store {place} cannot be created: {type(error).__name__}: {text}"
        raise NotTracked(f"The results are complete on disk, but {words}") from error


def _draft(database: Path) -> Path:
    return database.with_name(f".{database.name}.draft")


def _make(database: Path) -> None:
    draft = _draft(database)

    def make() -> None:
        from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

        new_store: Callable[..., Any] = SqlAlchemyStore
        with _undurable():
            new_store(f"{SQLITE}{draft}", database.parent.resolve().as_uri())._dispose_engine()

    _quietly(make)
    store_files.publish(draft, database)


@contextlib.contextmanager
def _undurable() -> Iterator[None]:
    """Let SQLite skip syncing: a draft broken by a crash is made again, and the complete one is synced.

    MLflow's migrations commit about 190 times.
    """
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def opened(connection: Any, record: Any) -> None:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA journal_mode=MEMORY")

    event.listen(Engine, "connect", opened)
    try:
        yield
    finally:
        event.remove(Engine, "connect", opened)


def _upgrade(database: Path) -> None:
    """Upgrade a copy, and replace the store by it on success; the old one is kept beside it."""
    draft = _draft(database)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    try:
        store_files.copy(database, draft)
        _quietly(lambda: _upgrade_draft(draft))
        if not store_files.is_current(draft):
            raise NotTracked("the migrations did not bring it up to date")
    except Exception as error:
        draft.unlink(missing_ok=True)
        if store_files.has_runs(database):
            raise NotTracked(
                f"The results are complete on disk, but {STORE}/{database.name} is damaged or from another version of "
                f"MLflow and could not be upgraded ({type(error).__name__}). Move it aside to get a new one, or run: "
                f"mlflow db upgrade {SQLITE}{STORE}/{database.name}"
            ) from error
        # Nothing was ever tracked in it: a process died while creating it.
        database.rename(database.with_name(f"{database.name}.unfinished-{stamp}"))
        store_files.drop_journals(database)
        _make(database)
        return
    store_files.copy(database, database.with_name(f"{database.name}.before-{stamp}"))
    store_files.publish(draft, database)
    store_files.drop_journals(database)


def _upgrade_draft(draft: Path) -> None:
    from mlflow.store.db import utils

    new_engine: Callable[..., Any] = utils.create_sqlalchemy_engine
    upgrade: Callable[..., Any] = utils._upgrade_db
    with _undurable():
        engine = new_engine(f"{SQLITE}{draft}")
        try:
            upgrade(engine)
        finally:
            engine.dispose()


def _quietly(do: Callable[[], T]) -> T:
    with quiet():
        import mlflow  # noqa: F401 - its import sets log levels, which are reset below

        configure()
        return do()
