"""Walks over a user's folder survive files that change or become unreadable during the walk."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from medtest.core.files import walk
from medtest.core.files.walk import file_below, files_below


def test_a_folder_that_goes_while_it_is_listed_is_a_trouble_and_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "images" / "gone").mkdir(parents=True)
    (tmp_path / "images" / "a.png").write_bytes(b"a")
    stat = os.stat

    def closed(path: object, *args: object, **kwargs: object) -> os.stat_result:
        if str(path).endswith("gone"):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(walk.os, "stat", closed)
    folders = list(walk.walk(tmp_path, most=100, deepest=9))
    troubles = [trouble for folder in folders for trouble in folder.troubles]
    assert [trouble.path for trouble in troubles] == [PurePosixPath("images/gone")]
    assert [path.name for path in files_below(tmp_path)] == ["a.png"]


@pytest.mark.parametrize("name", ["x" * 300, "../a.png", "/etc/passwd", "a\0.png", "images", "no.png"])
def test_names_of_no_file_below_a_folder_are_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "images").mkdir()
    assert file_below(tmp_path, name) is None
