"""Where medtest's own files lie, in a checkout and in an installed wheel, and where runs write."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path

STORE = "mlruns"
DATABASE = "mlflow.db"
SQLITE = "sqlite:///"
STORE_VARIABLE = "MLFLOW_TRACKING_URI"
TYPED_STORE: ContextVar[str | None] = ContextVar("TYPED_STORE", default=None)
"""``tracking.uri`` of the call in hand, for what is looked up in that store before a run is begun."""

_PACKAGE = Path(__file__).resolve().parents[2]


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


def path_from_here(path: Path) -> str:
    """Return a path as one would type it in the working directory: relative below it, else as it is."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def typed_folder(text: str | Path) -> Path:
    """Return the absolute path of a folder as the user typed it: a link keeps its own name, ``~`` and ``..`` do not."""
    path = Path(text).expanduser().absolute()
    return path.resolve() if ".." in path.parts else path


def is_inside(root: Path, path: Path) -> bool:
    """Whether a path, which may lead nowhere, stays in a folder when links are followed."""
    return path.resolve().is_relative_to(root.resolve())


def home() -> Path:
    """Folder under which ``outputs/`` and ``mlruns/`` are written: ``MEDTEST_HOME``, else the working directory."""
    chosen = os.environ.get("MEDTEST_HOME")
    return Path(chosen).expanduser().resolve() if chosen else Path.cwd()


def store_uri(home_folder: Path | None = None, given: str | None = None) -> str:
    """Return where runs go in MLflow: what the user gave, else ``MLFLOW_TRACKING_URI``, else the local store.

    Args:
        home_folder: Folder that holds ``mlruns/``; None for :func:`home`.
        given: The user's choice.
    """
    return given or os.environ.get(STORE_VARIABLE) or local_uri(home_folder if home_folder is not None else home())


def local_uri(home_folder: Path) -> str:
    """Return the address of the store below a home folder."""
    return f"{SQLITE}{home_folder / STORE / DATABASE}"
