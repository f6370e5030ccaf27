"""Mistakes in options of a run that depend on this machine: its folders and its devices."""

from __future__ import annotations

import os
from pathlib import Path

from medtest.core.errors import Mistake, nearest_name, typed_mistake
from medtest.seeds.folders.layout import holds_pairs
from medtest.suite.commandline.short_keys import device_mistake
from medtest.suite.data_url import is_url, url_mistake
from medtest.suite.reading.safety import short
from medtest.suite.schema import RunBlock

_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".7z", ".rar")
_MOST_SIBLINGS = 10_000
"""No name is suggested from a folder with more entries."""


def option_mistakes(options: RunBlock) -> list[Mistake]:
    """Return mistakes in options that do not fit this machine, for a plan as for a run.

    Args:
        options: The options as typed.
    """
    candidates = [
        None if options.data is None else _data_mistake(options.data),
        device_mistake(options.device, elsewhere=options.executor.name != "local"),
    ]
    return [mistake for mistake in candidates if mistake is not None]


def _data_mistake(data: str) -> Mistake | None:
    if is_url(data):
        return url_mistake(data)
    path = Path(data).expanduser()
    if path.is_dir():
        return None
    actual, nearest, fix = data, None, ""
    if path.is_file():
        actual = f"a file: {data}"
        packed = path.name.lower().endswith(_ARCHIVES)
        folder = holds_pairs(path.parent.absolute()) or path.parent
        fix = "unpack it and type the resulting folder" if packed else f"type the folder: data={folder}"
    else:
        nearest = _similar_folder(path)
    return typed_mistake("data", short(actual), "an existing folder", fix, nearest=nearest)


def _similar_folder(path: Path) -> str | None:
    """Return the folder beside a missing one with the most similar name, as typed."""
    names: dict[str, str] = {}
    try:
        with os.scandir(path.parent) as entries:
            for entry in entries:
                if len(names) >= _MOST_SIBLINGS:
                    return None
                if entry.is_dir():
                    names[entry.name.lower()] = entry.name
    except OSError:
        return None
    nearest = nearest_name(path.name, names)
    return None if nearest is None else str(path.parent / names[nearest])
