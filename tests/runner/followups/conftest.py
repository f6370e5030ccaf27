"""Fixtures of the tests of the store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from followup_parts import go, make_suite

from medtest.runner.followups import StoreReport


@pytest.fixture(scope="session")
def store_report(tmp_path_factory: pytest.TempPathFactory) -> StoreReport:
    return go(make_suite(), tmp_path_factory.mktemp("home"), workers=2)


@pytest.fixture
def copy(store_report: StoreReport, tmp_path: Path) -> Path:
    """Return a copy of the store, to damage."""
    return Path(shutil.copytree(store_report.folder, tmp_path / "followups"))
