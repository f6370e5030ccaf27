"""Package skeletons for each kind of part, with a contract test, written from templates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Literal, TypeAlias

from medtest.core.errors import Mistake
from medtest.core.plugins import FAMILIES, parts

_SUFFIX = ".tmpl"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_PAGES = {"relation": "add-a-relation", "system": "add-a-relation", "oracle": "add-a-task", "reader": "add-a-reader"}
PartKind: TypeAlias = Literal["relation", "oracle", "reader", "system", "task"]
"""Kinds of part that have a skeleton."""


def write_skeleton(kind: PartKind, name: str, folder: Path) -> Path:
    """Write a package with a part of the given kind into a new folder.

    Args:
        kind: The kind of part.
        name: The part's name in suites: lower-case letters, digits and underscores.
        folder: Parent of the new folder ``medtest-<name>``.

    Returns:
        The package's folder.

    Raises:
        UserMistakes: The name cannot be used, or the folder exists.
    """
    target = folder / f"medtest-{name.replace('_', '-')}"
    _check_name(kind, name)
    if target.exists():
        raise Mistake(
            where="medtest new",
            key="folder",
            found=f"{target}, which exists",
            fix="choose another name, or another folder with --folder",
        ).as_error()
    words = {
        "name": name,
        "Class": "".join(word.capitalize() for word in name.split("_")),
        "package": f"medtest_{name}",
        "project": f"medtest-{name.replace('_', '-')}",
        "page": _PAGES.get(kind, "add-a-task"),
    }
    templates = files("medtest.cli.new") / "templates"
    for source in (templates / "common", templates / kind):
        for relative, text in _templates(source):
            path = target / relative.replace("PACKAGE", words["package"]).replace("NAME", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(Template(text).substitute(words), encoding="utf-8")
    return target


def _check_name(kind: PartKind, name: str) -> None:
    """Check that the name is well formed and not taken."""
    if not _NAME.fullmatch(name):
        raise Mistake(
            where="medtest new",
            key="NAME",
            found=repr(name),
            allowed="a lower-case letter, then lower-case letters, digits and underscores",
            fix="for example: medtest new relation my_shadow",
        ).as_error()
    family = next((family for family in FAMILIES if family.startswith(kind)), f"{kind}s")
    if name in parts(family):
        raise Mistake(
            where="medtest new",
            key="NAME",
            found=f"a {kind} named {name!r} is installed already",
            fix=f"choose another name; medtest list {family} shows those in use",
        ).as_error()


def _templates(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each template's path below the folder, without its suffix, and its text."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):
            yield prefix + entry.name.removesuffix(_SUFFIX), entry.read_text(encoding="utf-8")
