"""Readers that use a system under test, created from its name and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from medtest.core.cases import Address, Image, Json
from medtest.core.errors import BadOutput, MedtestError, Mistake, UserMistakes, nearest_name
from medtest.core.plugins import TRUSTED, PartInfo, PartSettings, digest_name, is_trusted, parts
from medtest.readers.pictures.base import PictureReader, PictureSettings
from medtest.systems.base import Missing, System

_ADDRESS: Final = Address(dataset="pictures", seed_id="picture")


class SystemReaderSettings(PictureSettings):
    """Settings of a reader that uses a system.

    Attributes:
        system: Name of the system (``medtest list systems``).
        settings: Its settings, such as ``{checkpoint: FILE}``; a suite's ``prepare`` does not apply.
    """

    system: str
    settings: dict[str, Any] = Field(default={}, json_schema_extra=TRUSTED)


class SystemReader(PictureReader):
    """Reader that looks at pictures with a system under test.

    Attributes:
        system_task: Name of the task that the system performs.
    """

    settings: SystemReaderSettings
    system_task: ClassVar[str]
    _system: System | None = None

    def find_system(self) -> System | list[Mistake]:
        """Return the system, not opened, or the mistakes in its name or settings."""
        own = self.settings
        return named_system(own.system, own.settings, where=self.name, task=self.system_task)

    def create_system(self) -> System:
        """Return the system, not opened.

        Raises:
            UserMistakes: There is no such system, or its settings are wrong.
        """
        system = self.find_system()
        if isinstance(system, list):
            raise UserMistakes(system)
        return system

    def check(self) -> list[Mistake]:
        """Return the mistakes in the name of the system or its settings."""
        system = self.find_system()
        return system if isinstance(system, list) else [*system.check(), *super().check()]

    def without_card(self) -> dict[str, Json]:
        """Return everything the scenes depend on: the system with all settings that affect its answers."""
        return {**super().without_card(), "system": print_of(self.create_system())}

    def notice(self) -> str:
        """Return the system's notice, and what is known about the reader's accuracy."""
        return " ".join(text for text in (self.create_system().notice(), super().notice()) if text)

    def _predicted(self, images: Sequence[Image]) -> list[Any]:
        """Return the opened system's raw answer to each picture.

        Raises:
            MedtestError: The reader is not open.
            BadOutput: It gave another number of answers, or none for a picture.
        """
        if self._system is None:
            raise MedtestError(f"{self.name} is not open")
        shown = [np.ascontiguousarray(image) for image in images]
        answers = list(self._system.predict(shown, [_ADDRESS] * len(shown)))
        if len(answers) != len(shown):
            raise BadOutput(f"gave {len(answers)} answers to {len(shown)} pictures")
        for answer in answers:
            if isinstance(answer, Missing):
                raise BadOutput(f"gave no answer: {answer.reason}")
        return answers

    def close(self) -> None:
        """Release the system."""
        if self._system is not None:
            self._system.close()
            self._system = None


def named_system(name: str, overrides: Mapping[str, Any], *, where: str, task: str) -> System | list[Mistake]:
    """Return a system that is not opened yet, or the mistakes in its name or settings.

    Args:
        name: Name of the system, as for ``model=``.
        overrides: Settings that override its defaults.
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
        settings = system_class.Settings(**{**info.defaults, **overrides})
    except ValidationError as error:
        return setting_mistakes(error, system_class.Settings, overrides, where=where, key="settings")
    system: System = system_class(name, settings)
    system.kind = task
    return system


def setting_mistakes(
    error: ValidationError, settings: type[BaseModel], typed: Mapping[str, Any], *, where: str, key: str
) -> list[Mistake]:
    """Return the mistakes in the typed settings of a system or a reader.

    Args:
        error: What the settings' class says about them.
        settings: The class.
        typed: The settings.
        where: Name of the reader for messages.
        key: Key of the settings.
    """
    fields = settings.model_fields
    mistakes = []
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        place = [str(part) for part in detail["loc"]]
        own = place[-1] if place else ""
        found, allowed, nearest = str(typed.get(place[0] if place else "", ""))[:80], str(detail["msg"]), None
        if detail["type"] == "extra_forbidden":
            found, allowed, nearest = f"the key {own}", ", ".join(fields), nearest_name(own, fields)
        elif detail["type"] == "missing":
            found = "nothing"
        mistakes.append(
            Mistake(where=where, key=".".join([key, *place]), found=found, allowed=allowed, nearest=nearest)
        )
    return mistakes


def _fits(info: PartInfo, task: str) -> bool:
    system_class = info.load()
    return isinstance(system_class, type) and issubclass(system_class, System) and task in system_class.tasks


def print_of(system: System) -> dict[str, Json]:
    """Return all dependencies of a system's answers: name, revision, weights, settings except addresses and paths."""
    settings = system.settings
    fields: Mapping[str, Any] = type(settings).model_fields if isinstance(settings, PartSettings) else {}
    counted = settings.counted() if isinstance(settings, PartSettings) else {}
    trusted = {name for name, field_info in fields.items() if is_trusted(field_info)}
    return {
        "system": digest_name("systems", type(system)),
        "revision": type(system).revision,
        "settings": {name: value for name, value in counted.items() if name not in trusted},
        "print": system.fingerprint(),
    }
