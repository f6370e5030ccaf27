"""Small studies of phantoms: two relations, few seeds, small images."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from study_parts import make_small

from medtest.study.store import StudyStore


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of pairs that nobody has answered; do not write into it."""
    home = tmp_path_factory.mktemp("study")
    return make_small(home, home / "pairs").folder


@pytest.fixture(scope="session")
def made_frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of artefacts that nobody has answered; do not write into it."""
    home = tmp_path_factory.mktemp("study-frames")
    return make_small(home, home / "frames", kind="artefacts", frames="6", per_relation="2").folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of the study of pairs to write into."""
    return Path(shutil.copytree(made, tmp_path / "pairs"))


@pytest.fixture
def frames_folder(made_frames: Path, tmp_path: Path) -> Path:
    """A copy of the study of artefacts to write into."""
    return Path(shutil.copytree(made_frames, tmp_path / "frames"))


@pytest.fixture
def store(folder: Path) -> Iterator[StudyStore]:
    with StudyStore(folder) as opened:
        yield opened
