"""Fixtures: a small suite's pack, and a finished run of that suite by a Python function."""

from __future__ import annotations

from pathlib import Path

import pytest
from pack_parts import packed, reddish

import medtest


@pytest.fixture(scope="session")
def small_pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack the small suite."""
    return packed(tmp_path_factory.mktemp("small") / "small.zip")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> medtest.Result:
    """Finish a run."""
    return medtest.run(
        "polyp_seg",
        reddish,
        relations={"blur": {"severities": [1, 3]}, "text": {"severities": [2]}},
        limit=3,
        track=False,
        workers=1,
        home=tmp_path_factory.mktemp("sender"),
        overrides=["gates=[{relation: overall, max_percent: 50}]"],
    )
