"""A system under test that a reader asks or runs for its own purposes, made of its name and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from medtest.core.cases import Json
from medtest.core.errors import Mistake, nearest_name
from medtest.core.plugins import PartInfo, PartSettings, digest_name, is_trusted, parts
from medtest.systems.base import System


def named_system(name: str, given: Mapping[str, Any], *, where: str, task: str) -> System | list[Mistake]:
    """Return a system, not opened, or what is wrong with its name or settings.

    Args:
        name: Its name as ``model=`` takes it.
        given: Settings over its defaults.
        where: The reader's name, for messages.
        task: The task that it must do.
    """
    infos = parts("systems")
    if name not in infos or not _fits(infos[name], task):
        fit = sorted(one.name for one in infos.values() if _fits(one, task))
        allowed = ", ".join(fit)
        return [Mistake(where=where, key="system", found=name, allowed=allowed, nearest=nearest_name(name, fit))]
    info = infos[name]
    made = info.load()
    try:
        settings = made.Settings(**{**info.defaults, **given})
    except ValidationError as error:
        return [
            Mistake(
                where=where,
                key=".".join(["settings", *(str(part) for part in one["loc"])]),
                found="nothing" if one["type"] == "missing" else str(given.get(str(one["loc"][0]), ""))[:80],
                allowed=str(one["msg"]),
                nearest=nearest_name(str(one["loc"][-1]), made.Settings.model_fields),
            )
            for one in error.errors(include_url=False, include_input=False, include_context=False)
        ]
    system: System = made(name, settings)
    system.kind = task
    return system


def _fits(info: PartInfo, task: str) -> bool:
    made = info.load()
    return isinstance(made, type) and issubclass(made, System) and task in made.tasks


def print_of(system: System) -> dict[str, Json]:
    """Return all that a system's answers depend on: class, revision, settings that no address or path is, weights."""
    settings = system.settings
    fields: Mapping[str, Any] = type(settings).model_fields if isinstance(settings, PartSettings) else {}
    counted = settings.counted() if isinstance(settings, PartSettings) else {}
    trusted = {name for name, one in fields.items() if is_trusted(one)}
    return {
        "system": digest_name(type(system)),
        "revision": type(system).revision,
        "settings": {name: value for name, value in counted.items() if name not in trusted},
        "print": system.fingerprint(),
    }
