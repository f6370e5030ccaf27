"""Fixtures: a store of MLflow, and a home folder with a copy of it."""

from __future__ import annotations

import shutil

import pytest

from medtest.report import tracking


@pytest.fixture(scope="session")
def fresh_store(tmp_path_factory):
    """Make a store once, because its migrations take seconds; do not write into it."""
    home = tmp_path_factory.mktemp("store")
    tracking.prepare_store(home / "mlruns" / "mlflow.db")
    return home / "mlruns" / "mlflow.db"


@pytest.fixture
def home(fresh_store, tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "mlruns").mkdir()
    shutil.copy2(fresh_store, tmp_path / "mlruns" / "mlflow.db")
    return tmp_path
