"""Fixtures of the tests of runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from medtest.runner.pool import processes


@pytest.fixture
def own_servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No fork server before the test: a worker holds nothing that earlier tests imported.

    The servers of earlier tests stay for later ones, which would import everything again.
    """
    monkeypatch.setattr(processes, "_servers", {})
    yield
    processes.end_servers()
