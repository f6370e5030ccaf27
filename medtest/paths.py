"""Where medtest's own files lie, in a checkout and in an installed wheel, and where runs write."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _shipped(name: str) -> Path:
    """Return ``name/`` beside the package in a checkout, or the copy that a wheel carries."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def conf_folder() -> Path:
    """Folder of the Hydra configuration and of the parts' defaults."""
    return _shipped("conf")


def suites_folder() -> Path:
    """Folder of the suites that ship with medtest."""
    return _shipped("suites")


def package_folder() -> Path:
    """Folder of the installed package (weights, bundled objects, fonts lie below it)."""
    return _PACKAGE


def home() -> Path:
    """Folder under which ``outputs/`` and ``mlruns/`` are written: ``MEDTEST_HOME``, else the working directory."""
    chosen = os.environ.get("MEDTEST_HOME")
    return Path(chosen).expanduser().resolve() if chosen else Path.cwd()
