"""Fixtures: small studies of phantoms with two relations, few seeds and small images."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from study_parts import make_small

from medtest.study.store import StudyStore


@pytest.fixture(scope="session")
def pairs_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a study of pairs without answers; do not write into it."""
    home = tmp_path_factory.mktemp("study")
    return make_small(home, home / "pairs").folder


@pytest.fixture(scope="session")
def frames_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a study of artefacts without answers; do not write into it."""
    home = tmp_path_factory.mktemp("study-frames")
    return make_small(home, home / "frames", kind="artefacts", frames="6", per_relation="2").folder


@pytest.fixture
def folder(pairs_study: Path, tmp_path: Path) -> Path:
    """Copy the study of pairs to write into it."""
    return Path(shutil.copytree(pairs_study, tmp_path / "pairs"))


@pytest.fixture
def frames_folder(frames_study: Path, tmp_path: Path) -> Path:
    """Copy the study of artefacts to write into it."""
    return Path(shutil.copytree(frames_study, tmp_path / "frames"))


@pytest.fixture
def store(folder: Path) -> Iterator[StudyStore]:
    with StudyStore(folder) as opened:
        yield opened
