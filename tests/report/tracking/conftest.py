"""A store of MLflow's, and a home folder that holds a copy of it."""

from __future__ import annotations

import shutil

import pytest

from medtest.report import tracking


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A store, made once, for its migrations take seconds; do not write into it."""
    home = tmp_path_factory.mktemp("store")
    tracking.prepare_store(home / "mlruns" / "mlflow.db")
    return home / "mlruns" / "mlflow.db"


@pytest.fixture
def home(made, tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "mlruns").mkdir()
    shutil.copy2(made, tmp_path / "mlruns" / "mlflow.db")
    return tmp_path
