"""What tests of the store share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from followup_parts import go, make_suite

from medtest.runner.followups import StoreReport


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> StoreReport:
    return go(make_suite(), tmp_path_factory.mktemp("home"), workers=2)


@pytest.fixture
def copy(made: StoreReport, tmp_path: Path) -> Path:
    """A store of one's own to damage."""
    return Path(shutil.copytree(made.folder, tmp_path / "followups"))
