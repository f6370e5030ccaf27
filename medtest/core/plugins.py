"""Discovery of parts, both medtest's own and those of other installed packages.

A bundled part is one class, one YAML file with its defaults (``conf/relations/blur.yaml``) and one line in the table of
its family (``medtest.relations.RELATIONS``). A YAML file with ``use: NAME`` gives other defaults to the part ``NAME``.
A part of another package is an entry point in one of the groups ``medtest.relations``, ``medtest.systems``,
``medtest.seeds``, ``medtest.readers``, ``medtest.oracles``, ``medtest.tasks``, ``medtest.tables``; its optional
defaults are in ``<name>.yaml`` beside the class's module. Listing parts imports none of them.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import yaml
from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from medtest.core.errors import MedtestError, Mistake, nearest_name
from medtest.core.files.paths import conf_folder, read_yaml

Family: TypeAlias = Literal["relations", "systems", "seeds", "readers", "oracles", "tasks", "tables"]
FAMILIES: tuple[Family, ...] = ("relations", "systems", "seeds", "readers", "oracles", "tasks", "tables")
"""Families of parts. Tasks are named by the other parts; all installed tables are made without being named."""
_BUNDLED: dict[Family, tuple[str, str]] = {
    "relations": ("relations", "medtest.relations:RELATIONS"),
    "systems": ("model", "medtest.systems:SYSTEMS"),
    "seeds": ("seeds", "medtest.seeds:SEEDS"),
    "readers": ("readers", "medtest.readers:READERS"),
    "oracles": ("oracles", "medtest.tasks:ORACLES"),
    "tasks": ("tasks", "medtest.tasks:TASKS"),
}
"""Folder below ``conf/`` and table of the bundled parts of each family that has any."""


class PartSettings(BaseModel):
    """Base class of all settings: unknown keys and wrong types are mistakes, values are frozen.

    Use ``list`` and not ``tuple`` for sequences (YAML gives lists, and types are strict). A field that may only come
    from ``conf/`` or the command line, never from a suite (a path, a URL, an import path), is declared with
    ``Field(..., json_schema_extra=TRUSTED)``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def counted(self) -> dict[str, Any]:
        """Return the settings that enter digests, as JSON data."""
        return self.model_dump(mode="json")


TRUSTED: dict[str, Any] = {"trusted": True}
"""``json_schema_extra`` of a settings field that a suite may not set."""


def is_trusted(field: FieldInfo) -> bool:
    """Return True if a suite may not set a field of settings; see :data:`TRUSTED`."""
    extra = field.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("trusted"))


def typed_as(name: str) -> dict[str, Any]:
    """Return ``json_schema_extra`` for a system's setting whose own name has another meaning on the command line.

    Any setting of the only system of a call is typed by its name, ``checkpoint=FILE``; ``model`` chooses systems there.
    """
    return {"typed_as": name}


PART_KEYS = ("use", "summary")
"""Keys of a part's YAML file that are not settings."""
AT_KEY = "at_key"
"""Type of the errors made by :func:`wrong_at` and :func:`wrong_settings`."""


@dataclass(frozen=True, kw_only=True)
class WrongSetting:
    """Mistake in settings, found by a model validator.

    Attributes:
        key: Path of the value in the settings: field names, and keys of mappings as text.
        allowed: The allowed values.
        found: The present value; None to show the value at the key.
        nearest: The nearest allowed name.
        fix: One sentence that explains the correction.
    """

    key: tuple[str, ...]
    allowed: str
    found: str | None = None
    nearest: str | None = None
    fix: str = ""


def wrong_at(key: str, text: str) -> PydanticCustomError:
    """Return the error for a model validator of settings to raise if one of several keys is to blame.

    Args:
        key: Name of the field whose file and line the message shows.
        text: What is allowed.
    """
    return wrong_settings([WrongSetting(key=(key,), allowed=text)])


def wrong_settings(mistakes: Sequence[WrongSetting]) -> PydanticCustomError:
    """Return the error for a model validator of settings to raise with all mistakes that it found; at least one."""
    text = "; ".join(f"{'.'.join(mistake.key)}: {mistake.allowed}" for mistake in mistakes)
    return PydanticCustomError(AT_KEY, "{text}", {"text": text, "mistakes": tuple(mistakes)})


@dataclass(frozen=True, kw_only=True)
class PartInfo:
    """Part that a suite can name, not imported yet.

    Attributes:
        family: relations, systems, seeds, readers, oracles, tasks or tables.
        name: Its name in suites and ``model=``.
        target: ``"package.module:Class"``.
        part: Name of the class in digests: that of a bundled part, ``distribution:name`` of another package's; "" if
            :func:`digest_name` finds it.
        summary: One line for ``medtest list``.
        defaults: Settings from its YAML file.
        origin: "medtest", or the distribution that provides it.
        file: The YAML file, if there is one.
    """

    family: Family
    name: str
    target: str
    part: str = ""
    summary: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    origin: str = "medtest"
    file: Path | None = None

    @property
    def digest_name(self) -> str:
        """Name of the class in digests."""
        return self.part or digest_name(self.family, self.target)

    def load(self) -> type[Any]:
        """Import and return the part's class.

        Raises:
            MedtestError: The module or the class does not exist (a broken installation or plug-in).
        """
        try:
            return _imported(self.target)  # type: ignore[no-any-return]
        except (ImportError, AttributeError) as error:
            raise MedtestError(
                f"{self.family} part {self.name!r} of {self.origin} cannot be loaded: {error}"
            ) from error


def _imported(target: str) -> Any:
    """Return an object by ``"package.module:name"``."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _read_yaml(path: Path) -> dict[str, Any]:
    """Return the content of a part's YAML file.

    Raises:
        UserMistakes: It is not valid.
    """
    where, fix = f"{path.parent.name}/{path.name}", "correct the file, or uninstall its package"
    try:
        content = read_yaml(path)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        raise Mistake(
            where=where,
            line=None if mark is None else mark.line + 1,
            found=str(getattr(error, "problem", None) or error),
            allowed="well-formed YAML",
            fix=fix,
        ).as_error() from error
    if not isinstance(content, dict | None):
        raise Mistake(where=where, found=f"a {type(content).__name__}", allowed="keys and values", fix=fix).as_error()
    return content or {}


def read_part(
    path: Path, available: Mapping[str, PartInfo], *, content: Mapping[str, Any], origin: str
) -> PartInfo | None:
    """Return the part of a YAML file with defaults; None if it names no known part.

    Args:
        path: The file. Its name is the part's.
        available: Parts that ``use:`` may name. Without ``use:``, the file's name names one.
        content: Content of the file.
        origin: Provider of the file.
    """
    base = available.get(str(content.get("use", path.stem)))
    if base is None:
        return None
    defaults = {key: value for key, value in content.items() if key not in PART_KEYS}
    return replace(
        base,
        name=path.stem,
        summary=str(content.get("summary", "")) or base.summary,
        defaults={**base.defaults, **defaults},
        origin=origin,
        file=path,
    )


def _bundled(family: Family) -> dict[str, PartInfo]:
    """Return medtest's own parts of a family.

    Raises:
        MedtestError: A file in ``conf/`` names no part of the family's table.
    """
    if family not in _BUNDLED:
        return {}
    folder, table = _BUNDLED[family]
    listed = {
        name: PartInfo(family=family, name=name, target=target, part=name) for name, target in _imported(table).items()
    }
    infos: dict[str, PartInfo] = {}
    contents = {path: _read_yaml(path) for path in sorted((conf_folder() / folder).glob("*.yaml"))}
    for path, content in sorted(contents.items(), key=lambda item: "use" in item[1]):  # files that others name first
        info = read_part(path, {**listed, **infos}, content=content, origin="medtest")
        if info is None:
            raise MedtestError(f"conf/{folder}/{path.name} names no entry of {table}")
        infos[path.stem] = info
    return dict(sorted(infos.items()))


def _from_entry_points(family: Family) -> dict[str, PartInfo]:
    infos: dict[str, PartInfo] = {}
    for point in entry_points(group=f"medtest.{family}"):
        module_name = point.value.partition(":")[0]
        spec = importlib.util.find_spec(module_name.partition(".")[0])
        defaults: dict[str, Any] = {}
        file: Path | None = None
        if spec is not None and spec.origin is not None:
            relative = module_name.split(".")[1:-1]
            candidate = Path(spec.origin).parent.joinpath(*relative, f"{point.name}.yaml")
            if candidate.is_file():
                defaults, file = _read_yaml(candidate), candidate
        summary = str(defaults.pop("summary", ""))
        origin = point.dist.name if point.dist else "?"
        infos[point.name] = PartInfo(
            family=family,
            name=point.name,
            target=point.value,
            part=f"{origin}:{point.name}",
            summary=summary,
            defaults=defaults,
            origin=origin,
            file=file,
        )
    return infos


@cache
def parts(family: Family) -> dict[str, PartInfo]:
    """Return all parts of a family sorted by name, medtest's own first.

    Raises:
        MedtestError: Another package provides a name that is taken.
    """
    infos = _bundled(family)
    for name, info in sorted(_from_entry_points(family).items()):
        if name in infos:
            raise MedtestError(
                f"{info.origin} provides a {family} part named {name!r}, but {infos[name].origin} provides one too"
            )
        infos[name] = info
    return infos


def part(family: Family, name: str, *, where: str = "medtest", key: str = "") -> PartInfo:
    """Return one part by name.

    Raises:
        UserMistakes: There is no such part; the message lists the existing parts and the nearest name.
    """
    infos = parts(family)
    if name in infos:
        return infos[name]
    raise Mistake(
        where=where, key=key, found=repr(name), allowed=", ".join(infos) or "none", nearest=nearest_name(name, infos)
    ).as_error()


class Part:
    """Base class of every plug-in class.

    Attributes:
        Settings: The pydantic model of its user settings.
        revision: Increased whenever the same settings give other bytes or numbers; enters the run's digest.
    """

    Settings: ClassVar[type[PartSettings]] = PartSettings
    revision: ClassVar[int] = 1


def digest_name(family: Family, part: type[Part] | str) -> str:
    """Return the name of a class in digests, which stays the same when the class moves.

    It is the name of a bundled part, ``distribution:name`` of an entry point, and ``package:Class`` of any other class.

    Args:
        family: Its family.
        part: The class, or ``"package.module:Class"``.
    """
    target = part if isinstance(part, str) else f"{part.__module__}:{part.__qualname__}"
    for info in parts(family).values():
        if info.target == target:
            return info.digest_name
    module, _, name = target.partition(":")
    return f"{module.partition('.')[0]}:{name}"
