"""Medtest's own files, in a checkout and in an installed wheel, and paths of the folders that runs write to."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path
from typing import Any

STORE = "mlruns"
DATABASE = "mlflow.db"
SQLITE = "sqlite:///"
STORE_VARIABLE = "MLFLOW_TRACKING_URI"
TYPED_STORE: ContextVar[str | None] = ContextVar("TYPED_STORE", default=None)
"""``tracking.uri`` of the current call, for lookups in that store before a run begins."""

_PACKAGE = Path(__file__).resolve().parents[2]


def _shipped(name: str) -> Path:
    """Return ``name/`` beside the package in a checkout, or the copy inside a wheel."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def conf_folder() -> Path:
    """Return the folder of the Hydra configuration and of the parts' defaults."""
    return _shipped("conf")


def suites_folder() -> Path:
    """Return the folder of the suites shipped with medtest."""
    return _shipped("suites")


def package_folder() -> Path:
    """Return the folder of the installed package, with its weights, bundled objects and fonts."""
    return _PACKAGE


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file of medtest or of another installed package.

    It uses the C loader, which is ten times faster but can be made to crash: never read untrusted files with it.

    Raises:
        yaml.YAMLError: It is not well-formed.
    """
    import yaml

    text = path.read_text(encoding="utf-8")
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError:
        return yaml.safe_load(text)  # its messages are the same everywhere


def path_from_here(path: Path) -> str:
    """Return a path as typed in the working directory: relative if it is below it, otherwise unchanged."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def typed_folder(text: str | Path) -> Path:
    """Return the absolute path of a typed folder: links keep their own names, ``~`` and ``..`` are resolved."""
    path = Path(text).expanduser().absolute()
    return path.resolve() if ".." in path.parts else path


def is_inside(root: Path, path: Path) -> bool:
    """Return True if a path, existing or not, stays inside a folder when links are followed."""
    return path.resolve().is_relative_to(root.resolve())


def home() -> Path:
    """Return the parent folder of ``outputs/`` and ``mlruns/``: ``MEDTEST_HOME``, else the working directory."""
    chosen = os.environ.get("MEDTEST_HOME")
    return Path(chosen).expanduser().resolve() if chosen else Path.cwd()


def store_uri(home_folder: Path | None = None, uri: str | None = None) -> str:
    """Return the MLflow tracking URI: the user's choice, else ``MLFLOW_TRACKING_URI``, else the local store."""
    return uri or os.environ.get(STORE_VARIABLE) or local_uri(home_folder if home_folder is not None else home())


def local_uri(home_folder: Path) -> str:
    """Return the URI of the store below a home folder."""
    return f"{SQLITE}{home_folder / STORE / DATABASE}"
