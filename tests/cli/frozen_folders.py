"""Folders of finished runs in tests/data, copied to another home so that commands may write there."""

from __future__ import annotations

import shutil
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def copied(frozen: Path, suite: str, home: Path) -> list[Path]:
    """Copy the folders of a suite's systems to another home and return them.

    Args:
        frozen: Folder of ``<suite>/<system>/<digest>/run.json``.
        suite: Name of the suite.
        home: Folder for ``outputs/``.
    """
    run_folders = [run.parent for run in sorted((frozen / suite).glob("*/*/run.json"))]
    folders = [home / "outputs" / folder.relative_to(frozen) for folder in run_folders]
    for folder, to in zip(run_folders, folders, strict=True):
        shutil.copytree(folder, to)
    return folders
