"""Creates a system under test, from its name and settings, that a reader uses for its own purposes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from medtest.core.cases import Json
from medtest.core.errors import Mistake, nearest_name
from medtest.core.plugins import PartInfo, PartSettings, digest_name, is_trusted, parts
from medtest.systems.base import System


def named_system(name: str, given: Mapping[str, Any], *, where: str, task: str) -> System | list[Mistake]:
    """Return a system that is not opened yet, or the mistakes in its name or settings.

    Args:
        name: Name of the system, as for ``model=``.
        given: Settings that override its defaults.
        where: Name of the reader for messages.
        task: The required task.
    """
    infos = parts("systems")
    if name not in infos or not _fits(infos[name], task):
        fit = sorted(part_info.name for part_info in infos.values() if _fits(part_info, task))
        allowed = ", ".join(fit)
        return [Mistake(where=where, key="system", found=name, allowed=allowed, nearest=nearest_name(name, fit))]
    info = infos[name]
    system_class = info.load()
    try:
        settings = system_class.Settings(**{**info.defaults, **given})
    except ValidationError as error:
        return [
            Mistake(
                where=where,
                key=".".join(["settings", *(str(part) for part in error_info["loc"])]),
                found="nothing"
                if error_info["type"] == "missing"
                else str(given.get(str(error_info["loc"][0]), ""))[:80],
                allowed=str(error_info["msg"]),
                nearest=nearest_name(str(error_info["loc"][-1]), system_class.Settings.model_fields),
            )
            for error_info in error.errors(include_url=False, include_input=False, include_context=False)
        ]
    system: System = system_class(name, settings)
    system.kind = task
    return system


def _fits(info: PartInfo, task: str) -> bool:
    system_class = info.load()
    return isinstance(system_class, type) and issubclass(system_class, System) and task in system_class.tasks


def print_of(system: System) -> dict[str, Json]:
    """Return all dependencies of a system's answers: class, revision, weights, settings except addresses and paths."""
    settings = system.settings
    fields: Mapping[str, Any] = type(settings).model_fields if isinstance(settings, PartSettings) else {}
    counted = settings.counted() if isinstance(settings, PartSettings) else {}
    trusted = {name for name, field_info in fields.items() if is_trusted(field_info)}
    return {
        "system": digest_name(type(system)),
        "revision": type(system).revision,
        "settings": {name: value for name, value in counted.items() if name not in trusted},
        "print": system.fingerprint(),
    }
