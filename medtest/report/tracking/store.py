"""The local MLflow store: where it is, and how it is made and upgraded.

``mlruns/mlflow.db`` below the home folder is made and upgraded under a temporary name, behind a file lock, and renamed,
so that a process that dies meanwhile leaves no half-made one.
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
from medtest.core.files.paths import DATABASE, SQLITE, STORE, STORE_VARIABLE, local_uri
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
"""Always set: the core opens no connection that the user did not name."""
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "15",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
}
"""Set where the user has not: a server that is gone costs seconds, not MLflow's own quarter of an hour."""


def ensure_store(uri: str, home: Path | None = None) -> None:
    """Make the store of a ``sqlite:///`` address, or bring it up to date; other stores are their servers' matter.

    Args:
        uri: The store's address.
        home: Folder that holds ``mlruns/``; None for :func:`medtest.core.files.paths.home`.

    Raises:
        NotTracked: It cannot be made or upgraded.
    """
    if uri.startswith(SQLITE) and "?" not in uri and not uri.endswith(":memory:"):
        prepare_store(Path(uri.removeprefix(SQLITE)), named(home if home is not None else medtest_home(), uri))


def experiments(uri: str, most: int = 60) -> list[tuple[str, str]]:
    """Return the ids and names of a store's experiments, the newest change first, each with the page's state.

    Args:
        uri: The store's address.
        most: How many.

    Raises:
        NotTracked: The store cannot be reached.
    """
    configure()
    from mlflow import MlflowClient

    try:
        with quiet():
            client = MlflowClient(tracking_uri=uri)
            held = list(client.search_experiments(max_results=most + 1, order_by=["last_update_time DESC"]))
            found = [one for one in held if one.name != "Default"][:most]
            for one in found:
                runs_page.offer(client, one)
    except Exception as error:
        text = " ".join(without_credentials(str(error).replace(uri, "")).split())[:300]
        place = named(medtest_home(), uri)
        raise NotTracked(f"MLflow at {place} cannot be reached: {type(error).__name__}: {text}") from error
    return [(str(one.experiment_id), str(one.name)) for one in found]


def is_remote(uri: str) -> bool:
    """Whether a store is a server's, which keeps artifacts itself, and no file or database that is opened here."""
    return urlsplit(uri).scheme in {"http", "https", "databricks"} or uri.startswith("databricks")


def where(home: Path, uri: str) -> str:
    """Return the store's place in words that may be shown: no path of this machine, no password."""
    if uri == local_uri(home):
        return f"{STORE}/{DATABASE}"
    parts = urlsplit(uri)
    if parts.hostname:
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    return f"{parts.scheme or 'a'} store"


def named(home: Path, uri: str) -> str:
    """Return the store's place as :func:`where`, and where it was named: a variable is easily forgotten.

    Of a file the last part of its path is shown.
    """
    try:
        place, path = where(home, uri), urlsplit(uri).path
    except ValueError:  # a port that is no number
        place, path = "an address that cannot be read", ""
    if place.endswith(" store") and path.strip("/"):
        place = f"{urlsplit(uri).scheme or 'file'}:///…/{Path(path).name}"
    return f"{place} (named by {STORE_VARIABLE})" if uri == os.environ.get(STORE_VARIABLE) else place


def without_credentials(text: str) -> str:
    """Return a text whose addresses show neither users nor what stands after a question mark."""
    return _QUERY.sub("", without_users(text))


def configure() -> None:
    """Set the environment and the log levels that MLflow is used with; before it is imported."""
    os.environ.update(_ENVIRONMENT)
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    for name in ("mlflow", "alembic", "git", "urllib3"):
        logging.getLogger(name).setLevel(logging.ERROR)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the warnings of the libraries underneath from the user: none of them is about anything they did."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def prepare_store(database: Path, shown: str = "") -> None:
    """Make a store, or bring it up to date; many processes may do so at once, and any may die meanwhile.

    Where its folder was moved, the addresses of artifacts in it follow.

    Args:
        database: The SQLite file; artifacts of experiments that others make lie beside it.
        shown: What messages call it.

    Raises:
        NotTracked: It cannot be made or upgraded.
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
        words = "Results are whole on disk, but another process has been making the MLflow store for ten minutes."
        raise NotTracked(words) from error
    except NotTracked:
        raise
    except Exception as error:
        text = " ".join(str(error).split()).replace(str(database.parent), database.parent.name)[:300]
        place = shown or f"{database.parent.name}/{database.name}"
        words = f"the MLflow store {place} cannot be made: {type(error).__name__}: {text}"
        raise NotTracked(f"Results are whole on disk, but {words}") from error


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
    """Let SQLite leave writing to the system: a draft that a crash breaks is made again, and the whole one is synced.

    MLflow's migrations commit some 190 times.
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
    """Upgrade a copy, and put it in the place of the store when that went well; the old one stays beside it."""
    draft = _draft(database)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    try:
        store_files.copy(database, draft)
        _quietly(lambda: _upgrade_draft(draft))
        if not store_files.is_current(draft):
            raise NotTracked("its migrations ended without bringing it up to date")
    except Exception as error:
        draft.unlink(missing_ok=True)
        if store_files.has_runs(database):
            raise NotTracked(
                f"Results are whole on disk, but {STORE}/{database.name} is of another version of MLflow, or damaged, "
                f"and could not be upgraded ({type(error).__name__}). Move it aside and a new one is made, or try: "
                f"mlflow db upgrade {SQLITE}{STORE}/{database.name}"
            ) from error
        # nothing was ever tracked in it: a process died while making it
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
        import mlflow  # noqa: F401 - its import sets log levels, which are put right again below

        configure()
        return do()
