"""Systems available to ``model=``: medtest's, those of installed packages, and those of a team's ``--config-dir``.

A setting typed without a system name, e.g. ``checkpoint=FILE``, belongs to the only system of a call.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic.fields import FieldInfo

from medtest.core.cases import ID_PATTERN
from medtest.core.errors import MedtestError, Mistake, nearest_name
from medtest.core.plugins import PartInfo, is_trusted, parts, read_part
from medtest.suite.checking.validation import is_text

_CLASS = "class"
"""Key of a team's file that names a class by its module."""


def system_infos(config_folders: Sequence[Path] = ()) -> Mapping[str, PartInfo]:
    """Return every system by name; a team's file takes precedence over medtest's of the same name.

    Args:
        config_folders: Folders given with ``--config-dir``; their ``model/*.yaml`` are read. Such a file gives other
            defaults to the system of its own name or to that of ``use: NAME``, or it names a ``class``.

    Raises:
        UserMistakes: A team's file is unreadable or names neither.
    """
    systems = dict(parts("systems"))
    for folder in config_folders:
        for path in sorted((folder / "model").glob("*.yaml")):
            if ID_PATTERN.fullmatch(path.stem):
                systems[path.stem] = _from_team(path, systems)
    return systems


def typed_settings(info: PartInfo) -> dict[str, tuple[str, FieldInfo]]:
    """Return a system's settings, name and field, by their command-line names; empty if the system fails to load."""
    try:
        fields = info.load().Settings.model_fields
    except MedtestError:
        return {}  # a part of another package; naming it reports the reason
    extras = {name: field.json_schema_extra for name, field in fields.items()}
    return {
        str(extra.get("typed_as", name)) if isinstance(extra := extras[name], dict) else name: (name, field)
        for name, field in fields.items()
    }


def keys_of_any(infos: Collection[PartInfo], *, trusted: bool = False) -> set[str]:
    """Return the command-line names of settings of any of these systems, all of which are imported.

    Args:
        infos: The systems.
        trusted: True for only those that no suite may set.
    """
    return {
        key for info in infos for key, (_, field) in typed_settings(info).items() if is_trusted(field) or not trusted
    }


def text_keys(tokens: Sequence[str], known: Mapping[str, PartInfo]) -> set[str]:
    """Return the keys of text settings, in which all signs are literal, of the systems named by the tokens.

    Args:
        tokens: What was typed; if it names no system, or an unknown one, settings of all count.
        known: Every system.
    """
    names = {name for token in tokens for name in _named(token)}
    infos = [known[name] for name in names] if names and names <= known.keys() else list(known.values())
    texts = (item for info in infos for item in typed_settings(info).items() if is_text(item[1][1]))
    return {name for key, (field, _) in texts for name in (key, field)}


def _named(token: str) -> list[str]:
    key, _, value = token.lstrip("+").partition("=")
    if key in ("model", "systems"):
        return re.findall(r"[\w-]+", value)
    part = re.fullmatch(r"systems\.([^.]+)(?:\..*)?", key)
    return re.findall(r"\buse\s*:\s*([\w-]+)", value) or [part[1]] if part else []


def _from_team(path: Path, systems: Mapping[str, PartInfo]) -> PartInfo:
    where = f"{path.parent.parent.name}/model/{path.name}"
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Mistake(where=where, found=str(error), allowed="a YAML file").as_error() from error
    content = content if isinstance(content, dict) else {}
    target = content.pop(_CLASS, None)
    if isinstance(target, str) and ":" in target and "use" not in content:
        systems = {path.stem: PartInfo(family="systems", name=path.stem, target=target)}
    elif target is not None and "use" not in content:
        raise Mistake(where=where, key=_CLASS, found=repr(target), allowed="package.module:Class").as_error()
    info = read_part(path, systems, content=content, origin=where)
    if info is None:
        name = str(content.get("use", path.stem))
        raise Mistake(
            where=where,
            key="use",
            found=repr(name) if "use" in content else "nothing",
            allowed=f"one of {', '.join(systems)}, or class: package.module:Class",
            nearest=nearest_name(name, systems),
        ).as_error()
    return info
