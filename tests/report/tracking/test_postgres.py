"""Folders in which PostgreSQL can run as another user."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest

from medtest.report.tracking.server.postgres import _closed_to_others


def test_the_first_closed_folder_is_named() -> None:
    place = Path(tempfile.gettempdir())
    if not all(folder.stat().st_mode & stat.S_IXOTH for folder in (place, *place.parents)):
        pytest.skip("the folder for temporary files is closed to other users")
    with tempfile.TemporaryDirectory() as name:
        outer, inner = Path(name), Path(name) / "inner"
        inner.mkdir()
        for modes, closed in (((0o755, 0o711), None), ((0o755, 0o770), inner), ((0o700, 0o755), outer)):
            outer.chmod(modes[0])
            inner.chmod(modes[1])
            assert _closed_to_others(inner / "missing") == closed
