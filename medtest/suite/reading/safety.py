"""Safety check of untrusted suites: bytes, nodes and strings are checked before anything else reads the file.

A suite is data. Everything beyond that in Hydra, OmegaConf or YAML is refused here, with its file, line and key: Python
tags, expanding aliases, interpolation with resolvers, package headers, a ``hydra`` node, and strings that name a URL,
an environment variable, a command, an import path, a checkpoint or a path outside.

The check walks PyYAML's node tree, so it knows every line; it creates only ``dict``, ``list`` and scalars.
"""

from __future__ import annotations

import os
import re
import stat
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from medtest.core.cases import ID_PATTERN
from medtest.core.errors import Mistake
from medtest.suite.model import TRACE
from medtest.suite.reading.strings import forbidden

Key: TypeAlias = tuple[str | int, ...]

MAX_BYTES = 256 * 1024
MAX_NODES = 5_000
MAX_DEPTH = 16
MAX_STRING = 4_000
MAX_KEY = 64

PROSE: frozenset[str] = frozenset({"description", "intended_use"})
"""Top-level keys with prose, in which dots, colons and quotes are not import paths or commands."""
_TRACED = ("gates", "relations")  # their items have keys with prose

_HEADER = re.compile(r"^\s*#\s*@\s*\w+")
_INTERPOLATION = re.compile(r"\$\{([^{}$]*)\}")
_LISTED = re.compile(r"[a-z_]\w*\.[A-Za-z]\w*", re.ASCII)
"""Name of a library and a class, ``relations.ID.transform``; the relation compares it with a list."""
_REFERENCE = re.compile(r"\.{0,8}[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+|\[\d{1,6}\])*")


@dataclass(kw_only=True)
class Document:
    """Suite file as plain data.

    Attributes:
        where: Name of the file in messages.
        values: Its content without refused parts.
        lines: Line of every accepted key and list item, by its path.
        parents: Suites that it extends, in order, as written.
        mistakes: Everything that was refused.
        expanded: True if aliases expanded it beyond the limit.
    """

    where: str
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[Key, int] = field(default_factory=dict)
    parents: list[str] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    expanded: bool = False

    def refuse(self, line: int | None, key: Key | str, found: str, allowed: str, fix: str = "") -> None:
        """Add a mistake."""
        text = key if isinstance(key, str) else dotted(key)
        self.mistakes.append(
            Mistake(where=self.where, line=line, key=text, found=short(found), allowed=allowed, fix=fix)
        )


def dotted(key: Key) -> str:
    """Format a path of keys and indices: ``gates[0].score``."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def short(value: object, limit: int = 80) -> str:
    """Return a value as one short, printable line."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def read_suite(path: Path, where: str) -> Document:
    """Read one suite file and refuse everything that is not data.

    Args:
        path: The file.
        where: Name of the file in messages.

    Returns:
        The document; ``mistakes`` lists refused parts. No content of the file raises an exception.
    """
    document = Document(where=where)
    text = _read_text(path, document)
    return document if text is None else deepcopy(_checked(text, where))


@lru_cache(maxsize=64)
def _checked(text: str, where: str) -> Document:
    """Check the text of a suite; one call of medtest reads each file several times."""
    document = Document(where=where)
    if not _header_is_plain(text, document):
        return document
    root = _parse(text, document)
    if root is None:
        return document
    if not isinstance(root, yaml.MappingNode) or not root.value:
        document.refuse(
            root.start_mark.line + 1,
            "",
            "an empty file" if _is_null(root) else f"a {_kind(root)}",
            "keys and values (name, version, seed, seeds, relations, …)",
        )
        return document
    values = _mapping(root, (), document)
    _take_parents(values, document)
    document.values = values
    return document


def _read_text(path: Path, document: Document) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                document.refuse(None, "", "not a regular file", "a YAML file")
                return None
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        document.refuse(None, "", str(error.strerror), "a readable YAML file")
        return None
    if len(content) > MAX_BYTES:
        document.refuse(None, "", "a larger file", f"at most {MAX_BYTES // 1024} KiB")
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        document.refuse(line, "", "bytes that are not UTF-8", "UTF-8 text")
        return None


def _header_is_plain(text: str, document: Document) -> bool:
    for number, line in enumerate(text.splitlines(), start=1):
        if _HEADER.match(line):
            document.refuse(number, "", line.strip(), "comments without @", "remove the package header")
            return False
    return True


def _parse(text: str, document: Document) -> yaml.Node | None:
    """Check the events (cheap and without recursion), then compose the node tree."""
    try:
        if not _events_are_plain(text, document):
            return None
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "a YAML error")
        line = None if mark is None else mark.line + 1
        if r"'\t'" in problem:
            fix = "replace tabs by spaces"
            document.refuse(line, "", "a tab", "spaces: YAML does not allow tabs for indentation", fix)
        else:
            document.refuse(line, "", problem, "well-formed YAML")
        return None


def _events_are_plain(text: str, document: Document) -> bool:
    depth = nodes = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = _line(event)
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                document.refuse(line, "", "a second document (---)", "one document")
                return False
            if event.tags or event.version:
                document.refuse(line, "", "a % directive", "plain YAML")
                return False
        tag = getattr(event, "tag", None)
        if tag is not None:
            document.refuse(line, "", f"the tag {tag}", "plain values without ! tags")
            return False
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            allowed = f"at most {MAX_DEPTH} levels and {MAX_NODES:,} values"
            document.refuse(line, "", "more levels or values", allowed)
            return False
    if documents == 0:
        document.refuse(None, "", "an empty file", "keys and values")
        return False
    return True


def _line(event: yaml.Event) -> int | None:
    return None if event.start_mark is None else event.start_mark.line + 1


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "mapping"
    return "list" if isinstance(node, yaml.SequenceNode) else "single value"


def _is_null(node: yaml.Node) -> bool:
    return node.tag == "tag:yaml.org,2002:null" or (isinstance(node, yaml.MappingNode) and not node.value)


_DROPPED = object()
_KEY_REFERENCES = "interpolation of keys of this suite, for example ${seed}"


def _construct(node: yaml.Node, key: Key, document: Document) -> Any:
    # An alias is the whole node it points to each time it is used, perhaps including itself.
    if len(document.lines) > MAX_NODES or len(key) > MAX_DEPTH:
        if not document.expanded:
            document.expanded = True
            document.refuse(
                node.start_mark.line + 1,
                key[:1],
                "aliases (*) that expand the file",
                f"at most {MAX_DEPTH} levels and {MAX_NODES:,} values",
            )
        return _DROPPED
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, key, document)
    if isinstance(node, yaml.SequenceNode):
        return _sequence(node, key, document)
    return _scalar(node, key, document)


def _mapping(node: yaml.MappingNode, key: Key, document: Document) -> dict[str, Any]:
    result: dict[str, Any] = {}
    first: dict[str | int, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        name = _key_name(key_node, key, document)
        if name is None:
            continue
        path = (*key, str(name))
        if name in first:
            document.refuse(line, path, f"a duplicate key (first in line {first[name]})", "each key once")
            continue
        first[name] = line
        document.lines[path] = line
        value = _construct(value_node, path, document)
        if value is _DROPPED:
            continue
        result[name] = value  # type: ignore[index]
    return result


def _key_name(node: yaml.Node, parent: Key, document: Document) -> str | int | None:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.ScalarNode):
        document.refuse(line, parent, f"a {_kind(node)} as key", "a name as key")
        return None
    text = str(node.value)
    if node.tag == "tag:yaml.org,2002:int" and len(parent) >= 2:
        return int(text) if re.fullmatch(r"-?\d{1,9}", text) else None
    allowed = "a name of letters, digits, _ and -"
    fix = ""
    if node.tag == "tag:yaml.org,2002:null":
        fix = "YAML reads null as no value; the relation without a change is called unchanged"
    elif node.tag == "tag:yaml.org,2002:bool":
        fix = f"YAML reads {text} as true or false; put it in quotes or choose another name"
    elif text == "<<":
        fix = "YAML merges are not supported; use extends: to extend a suite"
    elif text == "hydra" or text.startswith("hydra/"):
        fix = "a suite cannot configure Hydra; remove it"
    elif text.startswith("_"):
        fix = "a suite cannot use keys that begin with _, which configure Python objects"
    elif re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", text) and len(text) <= MAX_KEY:
        return text
    document.refuse(line, (*parent, short(text, 40)), f"the key {short(text, 40)}", allowed, fix)
    return None


def _sequence(node: yaml.SequenceNode, key: Key, document: Document) -> Any:
    if not node.value:
        document.refuse(node.start_mark.line + 1, key, "an empty list", "at least one item", "omit the key")
        return _DROPPED
    items: list[Any] = []
    for item_node in node.value:
        path = (*key, len(items))
        document.lines[path] = item_node.start_mark.line + 1
        item = _construct(item_node, path, document)
        if item is not _DROPPED:
            items.append(item)
    return items


def _scalar(node: yaml.Node, key: Key, document: Document) -> Any:
    text = str(node.value)
    line = node.start_mark.line + 1
    kind = node.tag.rpartition(":")[2]
    if key == ("version",) and kind in ("int", "float"):
        return text  # 1.10 is a version, not the number 1.1
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("yes", "true", "on")
    if kind == "int" and re.fullmatch(r"[-+]?\d{1,18}", text):
        return int(text)
    if kind in ("int", "float") or re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d{1,3}", text):
        if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", text) and len(text) <= 40 and kind != "int":
            return float(text)
        document.refuse(line, key, text, "a plain finite number (18 digits at most)")
        return _DROPPED
    return _string(text, line, key, document)


def _string(text: str, line: int, key: Key, document: Document) -> Any:
    if len(text) > MAX_STRING:
        document.refuse(line, key, f"{len(text):,} characters", f"at most {MAX_STRING:,}")
        return _DROPPED
    if text == "???":
        document.refuse(line, key, "???", "a value", "write a value, or omit the key to use its default")
        return _DROPPED
    remainder = text
    for match in _INTERPOLATION.finditer(text):
        if not _REFERENCE.fullmatch(match[1]):
            document.refuse(
                line, key, match[0], _KEY_REFERENCES, "resolvers (env, oc.*, now …) are not allowed in suites"
            )
            return _DROPPED
        remainder = remainder.replace(match[0], "", 1)
    if "${" in remainder:
        document.refuse(line, key, text, "interpolation of keys of this suite, for example ${seed}")
        return _DROPPED
    prose = bool(key) and (key[0] in PROSE or (len(key) == 3 and key[0] in _TRACED and key[-1] in TRACE))
    listed = len(key) == 3 and key[0] == "relations" and key[-1] == "transform" and _LISTED.fullmatch(remainder)
    for reason in forbidden(remainder, prose=prose or bool(listed) or key[:1] in (("extends",), ("defaults",))):
        document.refuse(line, key, text, reason)
        return _DROPPED
    return text


def _take_parents(values: dict[str, Any], document: Document) -> None:
    """Move ``extends`` (or a defaults list of suites) out of the values."""
    for key in ("extends", "defaults"):
        if key not in values:
            continue
        entry = values.pop(key)
        items = entry if isinstance(entry, list) else [entry]
        if key == "defaults":
            items = [item for item in items if item != "_self_"]
        for index, item in enumerate(items):
            path: Key = (key, index) if isinstance(entry, list) else (key,)
            name = item.removeprefix("suite/").removeprefix("/suite/") if isinstance(item, str) else ""
            if ID_PATTERN.fullmatch(name.removeprefix("_")):
                document.parents.append(name)
                continue
            document.refuse(
                document.lines.get(path, document.lines.get((key,))),
                path,
                short(item),
                "names of other suites",
                "a suite can extend only other suites",
            )
