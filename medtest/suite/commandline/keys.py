"""Effect of the command line on a composed suite: options, removals, choices and settings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtest.core.cases import UNCHANGED
from medtest.core.errors import Mistake, nearest_name, typed_mistake
from medtest.core.plugins import PartInfo
from medtest.suite.checking.checks import USES
from medtest.suite.checking.systems import keys_of_any, typed_settings
from medtest.suite.commandline.overrides import NAME, SYSTEM_NAME, set_key
from medtest.suite.commandline.short_keys import keeps_meaning, meaning_of
from medtest.suite.reading.library import COMMAND_LINE, Origin, SuiteTree, deep_merge
from medtest.suite.reading.safety import Key, dotted, short
from medtest.suite.schema import SUITE_KEYS, RunBlock

_INTERNAL = ("without", "chosen")
_KEYS = frozenset({*SUITE_KEYS, *RunBlock.model_fields, *_INTERNAL})


@dataclass(kw_only=True)
class Sources:
    """Distinction of the suite's keys from those of the command line."""

    tree: SuiteTree
    typed: list[Key]

    def on_command_line(self, key: Key) -> bool:
        """Return True if the command line set this key, or a block around it."""
        plain = tuple(str(part) for part in key)
        return any(plain[: len(t)] == t for t in (tuple(str(p) for p in typed_key) for typed_key in self.typed))

    def origin(self, key: Key) -> Origin:
        """Return the origin of a key, or of the nearest key around it."""
        if self.on_command_line(key) or (key not in self.tree.origins and self._inside_typed(key)):
            return COMMAND_LINE
        for end in range(len(key), 0, -1):
            if key[:end] in self.tree.origins:
                return self.tree.origins[key[:end]]
            if self._inside_typed(key[:end]):
                return COMMAND_LINE
        return Origin(where=self.tree.where)

    def _inside_typed(self, key: Key) -> bool:
        plain = tuple(str(part) for part in key)
        return any(tuple(str(part) for part in typed_key[: len(key)]) == plain for typed_key in self.typed)

    def from_suite(self, key: Key) -> bool:
        """Return True if the suite wrote this key and the command line did not set it."""
        if self.on_command_line(key):
            return False
        value: Any = self.tree.values
        for part in key:
            if not isinstance(value, dict) or part not in value:
                return False
            value = value[part]
        return True


def key_of(override: str) -> Key:
    """Return the suite's key set by a prepared override, () for one of Hydra's own."""
    parts = set_key(override)
    return parts[1:] if parts[:1] == ("chosen",) else parts


def take_out(values: dict[str, Any], source: Sources, mistakes: list[Mistake]) -> None:
    """Remove the keys named by ``~key``; a missing key is a mistake."""
    for text in values.pop("without", None) or []:
        parts = [part for part in re.split(r"[.\[\]]", str(text)) if part]
        block: Any = values
        for part in parts[:-1]:
            block = block.get(part) if isinstance(block, dict) else None
        if parts and isinstance(block, dict) and parts[-1] in block:
            if parts[0] not in ("seed", "name"):
                del block[parts[-1]]
            continue
        names = [str(name) for name in block if name not in _INTERNAL] if isinstance(block, dict) else []
        mistakes.append(
            typed_mistake(
                str(text),
                f"~{text}",
                ", ".join(names) or "a key of the suite",
                nearest=nearest_name(parts[-1], names) if parts else None,
            )
        )


def keep_chosen(values: dict[str, Any], source: Sources, mistakes: list[Mistake], known: Collection[str]) -> list[str]:
    """Keep only the systems and relations chosen by ``model=`` and ``relations=[…]``, with the suite's settings.

    Additions of the command line with their own key (``+systems.v2={use: ssformer, …}``) also stay.

    Args:
        values: The composed suite, changed in place.
        source: Origins of the keys.
        mistakes: List to which mistakes are added.
        known: Every system available to ``model=``.

    Returns:
        The chosen systems, empty if the suite's own are run.
    """
    chosen = values.pop("chosen", None) or {}
    systems: list[str] = []
    for family, choice in chosen.items():
        names = list(choice) if isinstance(choice, (dict, list)) else [choice]
        if not names or not all(isinstance(name, str) for name in names):
            mistakes.append(typed_mistake(str(family), short(choice), "names, for example [blur,text]"))
            continue
        block = values.get(family)
        block = block if isinstance(block, dict) else {}
        if family == "systems":
            names = _existing_systems(names, known, mistakes)
        selected = {name: block.get(name) or {} for name in names}
        if family == "relations" and isinstance(block.get(UNCHANGED), dict):
            selected = {
                UNCHANGED: block[UNCHANGED],
                **selected,
            }  # the floor belongs to every choice, with the suite's settings
        systems = list(selected) if family == "systems" else systems
        for key in source.typed:
            if key[:1] != (family,) or len(key) < 2 or key[1] in selected:
                continue
            name = str(key[1])
            if len(key) == 2 or _names_part(block.get(name), family):
                selected[name] = block.get(name, {})
            else:
                mistakes.append(
                    typed_mistake(
                        dotted(key),
                        f"{name}, which is not chosen",
                        ", ".join(selected),
                        nearest=nearest_name(name, selected),
                    )
                )
        values[family] = selected
    return systems


def _existing_systems(names: list[str], existing: Collection[str], mistakes: list[Mistake]) -> list[str]:
    """Return the names of existing systems; the others are mistakes of ``model=``."""
    for name in names:
        if name not in existing:
            mistakes.append(
                typed_mistake("model", short(name), ", ".join(existing), nearest=nearest_name(name, existing))
            )
    return [name for name in names if name in existing]


def _names_part(settings: Any, family: str) -> bool:
    return isinstance(settings, dict) and USES.get(family, "") in settings


def to_only_system(
    values: dict[str, Any], chosen: list[str], source: Sources, mistakes: list[Mistake], known: Mapping[str, PartInfo]
) -> None:
    """Assign ``checkpoint=`` and similar keys to the system chosen by ``model=``, or to the suite's only one.

    Such keys are settings of a system that are neither the suite's keys nor options.
    """
    system_keys = [
        key for key in values if key not in _KEYS and key not in source.tree.values and not keeps_meaning(key)
    ]
    if not system_keys:
        return
    block = values.get("systems")
    block = block if isinstance(block, dict) else {}
    systems = chosen or [name for name, item in block.items() if item is not False]
    settings = _typed_settings(systems, block, known)
    if any(key not in settings for key in system_keys):  # a mistake, perhaps a setting of another system
        settings = {**dict.fromkeys(keys_of_any(known.values()), ""), **settings}
    for key in (key for key in system_keys if key in settings):
        value = values.pop(key)
        if len(systems) == 1 and value is not None:
            name, setting = systems[0], settings[key] or key
            before = block.get(name)
            block = {**block, name: deep_merge(before if isinstance(before, dict) else {}, {setting: value})}
            source.typed.append(("systems", name, setting))
        elif value is not None:
            names = ", ".join(systems) or "none"
            mistakes.append(
                typed_mistake(
                    key,
                    f"{len(systems)} systems ({names})",
                    "one system",
                    f"choose one with model=NAME, or type systems.{next(iter(systems), 'NAME')}.{key}=…",
                )
            )
    values["systems"] = block


def _typed_settings(systems: Sequence[str], block: Mapping[str, Any], infos: Mapping[str, PartInfo]) -> dict[str, str]:
    """Return the names of the settings of a call's systems by their command-line names."""
    names: dict[str, str] = {}
    for name in systems:
        stated = block.get(name)
        info = infos.get(str(stated.get("use", name) if isinstance(stated, dict) else name))
        names |= {key: field for key, (field, _) in typed_settings(info).items()} if info else {}
    return names


def check_keys(
    values: dict[str, Any], chosen: list[str], source: Sources, mistakes: list[Mistake], known: Mapping[str, PartInfo]
) -> None:
    """Report every top-level key that is neither a suite's nor an option, and options written into a suite."""
    unknown = [key for key in values if key not in _KEYS]
    stated = [key for key in source.tree.values if key not in SUITE_KEYS]
    typed_alone = {*_KEYS, *keys_of_any(known.values(), trusted=True)} if stated else _KEYS
    for key in unknown:
        if key in stated and key in typed_alone:
            continue
        from_suite = not source.on_command_line((key,))
        names = list(SUITE_KEYS)
        if not from_suite:
            block = values.get("systems")
            block = block if isinstance(block, dict) else {}
            typed = {NAME if option == SYSTEM_NAME else option for option in RunBlock.model_fields}
            settings = set(_typed_settings(chosen or list(block), block, known))
            settings = settings or keys_of_any(known.values(), trusted=True)
            names = sorted({*SUITE_KEYS, *typed, *settings, "suite", "model", "suite_dir"})
        place = source.origin((key,))
        mistakes.append(
            Mistake(
                where=place.where,
                line=place.line,
                key=key,
                found=f"the key {key}",
                allowed=", ".join(names),
                nearest=None if meaning_of(key) and not from_suite else nearest_name(key, names),
                fix="" if from_suite else meaning_of(key),
            )
        )
    for key in [key for key in stated if key in typed_alone]:
        place = source.tree.origin((key,))
        mistakes.append(
            Mistake(
                where=place.where,
                line=place.line,
                key=key,
                found=f"the key {key}",
                allowed=", ".join(SUITE_KEYS),
                fix="" if key in _INTERNAL else f"type this option of a run on the command line: {key}=…",
            )
        )
