"""Fixtures of the tests of suites."""

from __future__ import annotations

from pathlib import Path

import pytest
from suite_parts import BASE


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a team's folder of suites the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    return tmp_path
