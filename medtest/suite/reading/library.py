"""Search for suites, and merging of a suite with those it extends into a tree that keeps files and lines.

Mappings merge, anything else is replaced: a suite that extends another lists only the differences, and a plain list of
relations, systems or seeds means exactly these.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtest.core.cases import ID_PATTERN
from medtest.core.errors import Mistake, nearest_name
from medtest.core.files.paths import suites_folder
from medtest.suite.reading.safety import Document, Key, dotted, read_suite, short

MAX_PARENTS = 16
MAPS: tuple[str, ...] = ("seeds", "relations", "systems")
"""Top-level keys that map ids to settings, for which a plain list means default settings."""

_REFERENCE = re.compile(r"\$\{([^{}$]*)\}")
_MAX_RESOLVED = 10_000


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Location of a key.

    Attributes:
        where: File as named in messages, or "command line".
        line: Line in that file, from 1.
    """

    where: str
    line: int | None = None


COMMAND_LINE = Origin(where="command line")


@dataclass(kw_only=True)
class SuiteTree:
    """Suite after ``extends``: plain data with the location of each key.

    Attributes:
        name: The name under which it was requested.
        where: Its own file as named in messages.
        values: Plain data; ``seeds``, ``relations`` and ``systems`` are mappings of id to mapping, or to False.
        origins: Location of every key.
        mistakes: Everything that was refused.
        incomplete: True if one of its files was not read completely, so that missing keys may be in it.
        extends: True if it extends another suite.
    """

    name: str
    where: str
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Key, Origin] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    incomplete: bool = False
    extends: bool = False

    def origin(self, key: Key) -> Origin:
        """Return the location of a key, or of the nearest key around it."""
        for end in range(len(key), 0, -1):
            if key[:end] in self.origins:
                return self.origins[key[:end]]
        return Origin(where=self.where)


def suite_folders(extra: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Return the folders searched for suites: a team's own first, then the shipped ones."""
    return (*(Path(folder).expanduser().resolve() for folder in extra), suites_folder())


def suite_names(folders: Sequence[Path]) -> list[str]:
    """Return every available suite, sorted; files whose names are not ids are left out."""
    names = {
        entry.name.removesuffix(".yaml")
        for folder in folders
        if folder.is_dir()
        for entry in os.scandir(folder)
        if entry.name.endswith(".yaml") and entry.is_file()
    }
    return sorted(name for name in names if ID_PATTERN.fullmatch(name))


def find_suite(name: str, folders: Sequence[Path]) -> Path | None:
    """Return the file of a suite from the first folder that has it; None if there is none."""
    for folder in folders:
        path = folder / f"{name}.yaml"
        if path.is_file():
            return path
    return None


def shown(path: Path) -> str:
    """Return a path as named in messages: relative to the working directory, else with its folder alone."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return f"{path.parent.name}/{path.name}"


def load_tree(name: str, folders: Sequence[Path]) -> SuiteTree:
    """Read a suite and all suites that it extends.

    Args:
        name: Name of the suite, without ``.yaml``.
        folders: Folders to search, in order.

    Returns:
        The merged tree, with the mistakes of every file; no content of a file raises an exception.
    """
    tree = SuiteTree(name=name, where=f"{name}.yaml")
    _load_into(tree, name, folders, chain=(), origin=COMMAND_LINE, read=[])
    path = find_suite(name, folders)
    if path is not None:
        tree.where = shown(path)
    if tree.extends and ("name" not in tree.values or tree.origin(("name",)).where != tree.where):
        tree.values["name"] = name  # the parent's name would mix the results of the two
    _resolve(tree)
    return tree


def _load_into(
    tree: SuiteTree, name: str, folders: Sequence[Path], *, chain: tuple[str, ...], origin: Origin, read: list[str]
) -> None:
    path = find_suite(name, folders)
    key = "extends" if chain else "suite"
    if path is None:
        tree.incomplete = True
        names = suite_names(folders)
        tree.mistakes.append(
            Mistake(
                where=origin.where,
                line=origin.line,
                key=key,
                found=name,
                allowed=", ".join(names) or "none found",
                nearest=nearest_name(name, names),
            )
        )
        return
    where = shown(path)
    if name in chain or len(read) >= MAX_PARENTS:
        tree.incomplete = True
        circle = " → ".join((*chain, name))
        allowed = f"at most {MAX_PARENTS} suites that do not extend each other in a circle"
        tree.mistakes.append(Mistake(where=origin.where, line=origin.line, key=key, found=circle, allowed=allowed))
        return
    read.append(name)
    if path.resolve().parent != path.parent.resolve():
        tree.incomplete = True
        fix = "copy the file there"
        tree.mistakes.append(Mistake(where=where, found="a link out of its folder", allowed="a file", fix=fix))
        return
    document = read_suite(path, where)
    tree.incomplete |= document.expanded or (bool(document.mistakes) and not document.values)
    tree.extends |= bool(document.parents)
    for parent in document.parents:
        line = document.lines.get(("extends",), document.lines.get(("defaults",)))
        _load_into(tree, parent, folders, chain=(*chain, name), origin=Origin(where=where, line=line), read=read)
    _spread_lists(document)
    for mistake in document.mistakes:
        if mistake not in tree.mistakes:
            tree.mistakes.append(mistake)
    _merge(tree, document)


def _spread_lists(document: Document) -> None:
    """Convert ``relations: [blur, text]`` to a mapping that replaces the extended one, and null to default settings."""
    for key in MAPS:
        block = document.values.get(key)
        if isinstance(block, list):
            spread: dict[str, Any] = {}
            for index, item in enumerate(block):
                line = document.lines[key, index]
                if not isinstance(item, str):
                    document.refuse(line, (key, index), short(item), "a name")
                elif item in spread:
                    document.refuse(line, (key, index), f"{item} twice", "each name once")
                else:
                    spread[item] = {}
                    document.lines[key, item] = line
            document.values[key] = _Replaced(spread)
        elif isinstance(block, dict):
            for name, settings in block.items():
                if settings is None:
                    block[name] = {}


def deep_merge(defaults: Mapping[Any, Any], changes: Mapping[Any, Any]) -> dict[Any, Any]:
    """Merge mappings, replace anything else; ``levels.3`` of the command line means the level 3 of the defaults."""
    merged = dict(defaults)
    for name, value in changes.items():
        if isinstance(name, str) and name.isdecimal() and name not in merged:
            numbers = any(isinstance(k, int) for k in merged)
            name = int(name) if numbers and len(name) < 10 else name
        before = merged.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[name] = deep_merge(before, value)
        else:
            merged[name] = value
    return merged


class _Replaced(dict[str, Any]):
    """Mapping that replaces the extended one instead of merging with it."""


def _merge(tree: SuiteTree, document: Document) -> None:
    def put(target: dict[Any, Any], source: dict[Any, Any], at: Key) -> None:
        for name, value in source.items():
            key = (*at, str(name))
            before = target.get(name)
            if isinstance(value, dict) and isinstance(before, dict) and not isinstance(value, _Replaced):
                put(before, value, key)
                continue
            for path in [path for path in tree.origins if path[: len(key)] == key]:
                del tree.origins[path]
            target[name] = _plain(value)
            _remember(tree, document, key, value)

    put(tree.values, document.values, ())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _remember(tree: SuiteTree, document: Document, key: Key, value: Any) -> None:
    if key in document.lines:
        tree.origins[key] = Origin(where=document.where, line=document.lines[key])
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        items = ((str(name), item) for name, item in value.items())
    elif isinstance(value, list):
        items = enumerate(value)
    for name, item in items:
        _remember(tree, document, (*key, name), item)


def _resolve(tree: SuiteTree) -> None:
    """Replace ``${seed}`` and ``${.sibling}`` by the scalar they point to, inside this suite alone."""
    resolved: dict[Key, Any] = {}  # each key once, so that keys that name each other repeatedly cannot blow up

    def visit(value: Any, at: Key) -> Any:
        if isinstance(value, dict):
            return {name: visit(item, (*at, str(name))) for name, item in value.items()}
        if isinstance(value, list):
            return [visit(item, (*at, index)) for index, item in enumerate(value)]
        return value_of(value, at, ()) if isinstance(value, str) and "${" in value else value

    def value_of(text: str, at: Key, chain: tuple[Key, ...]) -> Any:
        whole = _REFERENCE.fullmatch(text)
        if whole:
            return target_of(whole[1], at, chain)
        length = 0
        pieces: list[str] = []
        for index, piece in enumerate(_REFERENCE.split(text)):
            pieces.append(str(target_of(piece, at, chain)) if index % 2 else piece)
            length += len(pieces[-1])
            if length > _MAX_RESOLVED:
                return refuse(at, "…", f"at most {_MAX_RESOLVED:,} characters after substitution")
        return "".join(pieces)

    def target_of(reference: str, at: Key, chain: tuple[Key, ...]) -> Any:
        key = _reference_key(reference, at)
        if key in resolved:
            return resolved[key]
        target: Any = tree.values
        for part in key or ("?",):
            try:
                target = target[part]  # of a mapping by name, of a list by number; anything else raises
            except (KeyError, IndexError, TypeError):
                target = None
            if target is None:
                return refuse(at, reference, "a key of this suite with a single value")
        if key in chain or len(chain) > 8:
            return refuse(at, reference, "keys that do not refer to each other")
        if isinstance(target, (dict, list)):
            return refuse(at, reference, "a key of this suite with a single value")
        resolved[key] = value_of(target, key, (*chain, key)) if isinstance(target, str) and "${" in target else target
        return resolved[key]

    def refuse(at: Key, reference: str, allowed: str) -> None:
        origin = tree.origin(at)
        mistake = Mistake(
            where=origin.where, line=origin.line, key=dotted(at), found=f"${{{reference}}}", allowed=allowed
        )
        if mistake not in tree.mistakes:
            tree.mistakes.append(mistake)

    tree.values = visit(tree.values, ())


def _reference_key(reference: str, at: Key) -> Key:
    """Return the path meant by a reference; leading dots count from the key's own mapping, as in OmegaConf."""
    dots = len(reference) - len(reference.lstrip("."))
    parts: list[str | int] = []
    for name in re.findall(r"[^.\[\]]+", reference):
        parts.append(int(name) if name.isdecimal() and len(name) < min(7, sys.maxsize) else name)
    if dots == 0:
        return tuple(parts)
    return (*at[: max(0, len(at) - dots)], *parts)
