"""Folders of finished runs that lie in tests/data: copied to a home of their own, so that commands may write there."""

from __future__ import annotations

import shutil
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def copied(frozen: Path, suite: str, home: Path) -> list[Path]:
    """Copy the folders of a suite's systems to another home and return them.

    Args:
        frozen: Holds ``<suite>/<system>/<digest>/run.json``.
        suite: The suite.
        home: Where ``outputs/`` is made.
    """
    found = [run.parent for run in sorted((frozen / suite).glob("*/*/run.json"))]
    folders = [home / "outputs" / folder.relative_to(frozen) for folder in found]
    for folder, to in zip(found, folders, strict=True):
        shutil.copytree(folder, to)
    return folders
