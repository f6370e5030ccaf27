"""Conversion of the arguments of :func:`medtest.run` to command-line tokens and system objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from medtest.core.errors import Mistake, UserMistakes

if TYPE_CHECKING:
    from medtest.suite.model import PartPlan
    from medtest.systems.base import System

WHERE = "medtest.run"
"""Place of mistakes in its arguments."""
_STAND_IN = "callable"
"""System in the composed suite if all given systems are Python objects."""
_BARE = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True)
class Model:
    """A function or an object of this program as a system under test.

    Attributes:
        given: Takes one uint8 RGB image, H×W×3, and returns the system's answer: for segmentation a map (bool, float in
            [0, 1] or uint8), for labels a number per class, for restoration an image. Or an instance of a subclass of
            :class:`medtest.systems.base.System`.
        name: Name in records, folders and tables; the function's own name by default.
        fingerprint: Identity of the model, in your words (a version, a hash of its weights). Finished cases with the
            same fingerprint are not run again; without one, no result is reused.
        batch: Whether it takes B×H×W×3 and returns B answers.
        gives: Kind of its scores, for labels: ``probability``, ``logits`` or ``classes``.
        classes: Class names in the order of its scores, for labels; None for the seeds' order.
        multi: Whether several labels may be true at once, for labels.
    """

    given: Callable[..., Any] | System
    name: str = ""
    fingerprint: str = ""
    batch: bool = False
    gives: Literal["probability", "logits", "classes"] = "probability"
    classes: Sequence[str] | None = None
    multi: bool = False

    def plan(self) -> PartPlan:
        """Return it as a system of a suite.

        Raises:
            UserMistakes: It is neither a function nor a system, or its name cannot be one.
        """
        from medtest.core.plugins import PartInfo
        from medtest.suite.model import PartPlan
        from medtest.systems.adapters.in_memory import ObjectSettings, ObjectSystem
        from medtest.systems.base import System
        from medtest.systems.naming import clean, refused

        if isinstance(self.given, type) or not (isinstance(self.given, System) or callable(self.given)):
            allowed = "a function, an object that can be called, or an instance of a System"
            raise mistake("systems", repr(self.given)[:80], allowed, self._instead())
        name = self.name or clean(getattr(self.given, "__name__", type(self.given).__name__))
        if allowed := refused(name):
            raise mistake("systems", name[:80], allowed)
        settings = ObjectSettings(
            implementation=self.given,
            identity=self.fingerprint,
            batch=self.batch,
            gives=self.gives,
            classes=None if self.classes is None else list(self.classes),
            multi=self.multi,
        )
        info: PartInfo = PartInfo(
            family="systems",
            name="in_memory",
            part="in_memory",
            target=f"{ObjectSystem.__module__}:{ObjectSystem.__qualname__}",
            summary="A function or an object of the program that runs the suite.",
        )
        return PartPlan(id=name, info=info, settings=settings, shown=name)

    def _instead(self) -> str:
        """Return a suggestion for an object that is not a system."""
        if isinstance(self.given, type):
            return f"give an instance: {self.given.__name__}(…)"
        named = next((name for name in ("predict", "forward", "run") if callable(getattr(self.given, name, None))), "")
        return f"give its method: ….{named}" if named else ""


Given: TypeAlias = "str | Model | Callable[..., Any] | System"
Systems: TypeAlias = "Given | Sequence[Given] | Mapping[str, Mapping[str, Any] | Model | Callable[..., Any] | System]"


def typed_systems(systems: Systems | None, fingerprint: str) -> tuple[list[str], list[PartPlan]]:
    """Return the names and settings of systems as tokens, and the systems that are objects of this program.

    Raises:
        UserMistakes: An object is not a system, or two have the same name.
    """
    if systems is None:
        return [], []
    names: list[str] = []
    settings: list[str] = []
    models: list[Model] = []
    if isinstance(systems, Mapping):
        for name, system in systems.items():
            if isinstance(system, Mapping):
                names.append(name)
                settings += [typed_option(f"systems.{name}.{key}", value) for key, value in system.items()]
            else:
                models.append(replace(system if isinstance(system, Model) else Model(system), name=name))
    else:
        for typed_system in systems if isinstance(systems, list | tuple) else (systems,):
            if isinstance(typed_system, str):
                names.append(typed_system)
            else:
                models.append(typed_system if isinstance(typed_system, Model) else Model(typed_system))
    if fingerprint:
        if len(models) != 1:
            raise mistake("fingerprint", fingerprint[:80], "one function or object; for several, Model(fingerprint=…)")
        models = [replace(models[0], fingerprint=fingerprint)]
    objects = [model.plan() for model in models]
    called = [*names, *(plan.id for plan in objects)]
    if again := sorted({name for name in called if called.count(name) > 1}):
        raise mistake("systems", f"{', '.join(again)} twice", "a different name for each", "Model(…, name=…)")
    if objects and not names:
        names = [_STAND_IN]
    typed = names[0] if len(names) == 1 else f"[{','.join(names)}]"
    return [f"model={typed}", *settings], objects


def typed_relations(relations: Sequence[str] | Mapping[str, Mapping[str, Any]] | None) -> list[str]:
    """Return relations and their settings as tokens."""
    if relations is None:
        return []
    named = [relations] if isinstance(relations, str) else list(relations)
    settings = relations.items() if isinstance(relations, Mapping) else ()
    of_each = [
        typed_option(f"relations.{name}.{key}", value) for name, options in settings for key, value in options.items()
    ]
    return [f"relations=[{','.join(named)}]", *of_each]


def typed_option(key: str, value: Any) -> str:
    """Return a key and its value as a token."""
    from medtest.suite.commandline.overrides import WHOLE_KEYS, holds_path

    if isinstance(value, Path) or holds_path(key):
        return f"{key}={value}"
    if key in WHOLE_KEYS:
        return f"{key}={value if isinstance(value, str) else ','.join(map(str, value))}"
    return f"{key}={_literal(value)}"


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset | range):
        return "[" + ",".join(_literal(item) for item in value) + "]"
    if isinstance(value, str) and not _BARE.fullmatch(value):
        from medtest.suite.commandline.overrides import quote

        return quote(value)
    return str(value)


def mistake(key: str, found: str, allowed: str, fix: str = "") -> UserMistakes:
    """Return the error for an argument of :func:`medtest.run`."""
    return Mistake(where=WHERE, key=key, found=found, allowed=allowed, fix=fix).as_error()
