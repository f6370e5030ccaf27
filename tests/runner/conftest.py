"""What tests of runs share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from medtest.runner.pool import processes


@pytest.fixture
def own_servers() -> Iterator[None]:
    """No fork server before the test, none after it: a worker holds nothing that earlier tests imported."""
    processes.end_servers()
    yield
    processes.end_servers()
