"""Translation of typed arguments to Hydra's grammar.

Paths may hold spaces, brackets, commas and ``=``, which have a meaning in Hydra: values of path keys are quoted here.
``~relations.text`` and ``relations=[blur,text]`` become keys for the composition, so that they work with any suite, and
every other key is forced in (``++``): whether it exists is checked afterwards, with all other mistakes, and with the
nearest name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, QuotedString
from hydra.errors import HydraException

from medtest.api.redact import SECRET_NAMES
from medtest.core.errors import Mistake, typed_mistake
from medtest.suite.checking.systems import system_infos, text_keys
from medtest.suite.commandline.spaces import split_by_spaces
from medtest.suite.reading.library import MAPS, deep_merge
from medtest.suite.reading.safety import short
from medtest.suite.schema import SUITE_KEYS, RunBlock

GROUPS: tuple[str, ...] = ("suite", "model", "tracking", "executor")
PATH_KEYS: frozenset[str] = frozenset(
    {
        "data",
        "avoid",
        "uri",
        "suite_dir",
        "study",
        "base_url",
        "key_variable",
        "model_name",
        "system_name",
    }
)
"""Last part of the keys whose values are literal, in addition to text settings of systems."""
PATH_ENDINGS: tuple[str, ...] = ("_folder", "_file", "_path")
"""Endings of such parts: settings of parts that hold paths (``relations.instrument.library_folder``)."""
WHOLE_KEYS: frozenset[str] = frozenset({"only"})
"""Keys whose commas do not sweep outside a multirun."""

NAME, SYSTEM_NAME = "name", "system_name"
"""``name=v2`` names the system; the suite's own name is that of its file and is never typed."""

_TOKEN = re.compile(r"(?P<sign>\+\+|\+|~)?(?P<key>[^\s=+~][^=]*?)(?:=(?P<value>.*))?", re.DOTALL)
_KEEP = re.compile(r"null|\$\{.*\}", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z][\w./:-]*", re.ASCII)
_NOT_READ_AS_TEXT = re.compile(r"null|true|false|nan|inf|[0-9][0-9_]*(?:e[-+]?[0-9_]+)?", re.IGNORECASE)
_ODD = "_id_"
"""Prefix for ids that begin with a digit while Hydra processes them; no real id begins with it."""
_DIGIT_ID = re.compile(r"[0-9]+[A-Za-z_-][A-Za-z0-9_-]*")
_PAIR = re.compile(r"\s*(?P<key>[A-Za-z_]\w*)\s*:\s*(?P<value>.*)", re.DOTALL)


@dataclass(kw_only=True)
class Prepared:
    """Command line prepared for Hydra.

    Attributes:
        overrides: Overrides for Hydra.
        suite_folders: ``suite_dir=`` and the folders of suites named by their files.
        keys: Every suite or option key that was set, as typed.
        mistakes: Unreadable arguments.
        texts: Returns the text settings of systems.
    """

    overrides: list[str] = field(default_factory=list)
    suite_folders: list[Path] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    texts: Callable[[], set[str]] = set

    def taken_as_typed(self, key: str, value: str) -> bool:
        """Return True if a key's value is literal: a text setting, or a value that begins like a path.

        Settings of systems are looked up only if Hydra could misread the value: a plain word or path is text anyway.
        """
        first, last = key.partition(".")[0], key.rpartition(".")[2]
        if holds_path(key) or (value.startswith(("~/", "/")) and "${" not in value):
            return True
        is_system_setting = first == "systems" or not (first in SUITE_KEYS or first in RunBlock.model_fields)
        if not is_system_setting or (_PLAIN.fullmatch(value) and not _NOT_READ_AS_TEXT.fullmatch(value)):
            return False
        return value.startswith(("/", "~")) or last in self.texts()


def holds_key(token: str) -> bool:
    """Return True if a token may hold a secret key, judging by its words; its value is then not repeated."""
    return "key_variable" in token or bool(SECRET_NAMES.search(token))


def holds_path(key: str) -> bool:
    """Return True if the value of a key is literal, regardless of its owner."""
    last = key.rpartition(".")[2]
    return last in PATH_KEYS or last.endswith(PATH_ENDINGS)


def prepare(tokens: Sequence[str], *, multirun: bool = False, configs: Sequence[Path] = ()) -> Prepared:
    """Translate the typed arguments.

    Args:
        tokens: All arguments other than ``--flags``.
        multirun: True if commas in paths separate the jobs of a sweep.
        configs: A team's folders like ``conf/``, whose systems are also known.
    """
    ready = Prepared(texts=cache(lambda: text_keys(tokens, system_infos(configs))))
    removed: list[str] = []
    whole, split = split_by_spaces(tokens, holds_key)
    ready.mistakes.extend(split)
    for token in whole:
        _prepare_token(token, ready, removed, multirun=multirun)
    if removed:
        ready.overrides.append(f"++without=[{','.join(quote(key) for key in removed)}]")
    return ready


def folders(key: str, typed: Iterable[Path | str], mistakes: list[Mistake]) -> tuple[Path, ...]:
    """Return typed folders as absolute paths; a missing one is added to the mistakes."""
    paths = []
    for path in typed:
        folder = Path(path).expanduser().resolve()
        if folder.is_dir():
            paths.append(folder)
        else:
            mistakes.append(typed_mistake(key, str(path), "an existing folder"))
    return tuple(paths)


def quote(value: str) -> str:
    """Return a string that Hydra and OmegaConf read back as exactly ``value``."""
    value = re.sub(r"(\\*)\$\{", lambda m: m[1] * 2 + "\\${", value)  # prevents interpolation in typed values
    # Inside quotes Hydra unescapes backslashes only before a quote (or the end).
    value = re.sub(r"(\\*)'", lambda m: m[1] * 2 + "\\'", value)
    tail = len(value) - len(value.rstrip("\\"))
    return f"'{value}{chr(92) * tail}'"


def _prepare_token(token: str, ready: Prepared, without: list[str], *, multirun: bool) -> None:
    match = _TOKEN.fullmatch(token)
    if match is None or (match["value"] is None and match["sign"] != "~"):
        ready.mistakes.append(
            typed_mistake(
                "",
                short(token),
                "KEY=VALUE, for example suite=polyp_seg or limit=5",
                "medtest run --help lists all keys",
            )
        )
        return
    sign, key, value = match["sign"] or "", match["key"].strip(), match["value"]
    key = SYSTEM_NAME if key == NAME and sign != "~" else key
    if key.partition(".")[0].partition("/")[0] == "hydra":
        _accept(token, token, ready)
    elif sign == "~":
        without.append(key)
        ready.keys.append(key)
    elif key == "suite_dir":
        ready.suite_folders.append(Path(unquoted(value)).expanduser())
    elif key == "model" and re.fullmatch(r"\[\s*\]", value):
        ready.mistakes.append(typed_mistake(key, value, "at least one name", "omit model= to use the suite's own"))
    elif key in GROUPS:
        suite_or_value = _suite_name(value, ready) if key == "suite" else value
        _accept(token, f"{key}={_as_names(key, suite_or_value)}", ready)
    elif key in MAPS and not value.lstrip().startswith("{"):
        ready.keys.append(key)
        _accept(token, f"++chosen.{key}={value}", ready)
    else:
        ready.keys.append(key)
        _accept(token, f"++{_prefix_numeric_ids(key)}={_value(key, value, ready, multirun=multirun)}", ready)


def _suite_name(value: str, ready: Prepared) -> str:
    """Accept a suite's file as its name: ``suite=team/skin.yaml`` adds the folder and means ``skin``."""
    typed = unquoted(value)
    if not typed.endswith(".yaml") or "," in typed or "(" in typed:
        return value
    path = Path(typed).expanduser()
    if path.parent != Path():
        ready.suite_folders.append(path.parent)
    elif path.is_file():
        ready.suite_folders.append(Path.cwd())
    return path.name.removesuffix(".yaml")


def _as_names(key: str, value: str) -> str:
    """Quote names that Hydra would read as numbers or null: a suite may be called ``2024`` or ``null``."""

    def written(name: str) -> str:
        if name.startswith("[") and name.endswith("]"):
            return f"[{_as_names(key, name[1:-1])}]"
        return quote(name) if _NOT_READ_AS_TEXT.fullmatch(name.strip()) and (key, name) != ("model", "null") else name

    return ",".join(map(written, _split(value)))


def _prefix_numeric_ids(key: str) -> str:
    """Prefix ids that begin with a digit (``relations.3d``), which Hydra's grammar does not accept as names.

    Each key stays distinct, because Hydra's sweeper keeps one override per key.
    """
    parts = key.split(".")
    return ".".join(f"{_ODD}{part}" if n and _DIGIT_ID.fullmatch(part) else part for n, part in enumerate(parts))


def as_typed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return composed values with the prefixed ids of :func:`prepare` merged into those of the suite."""
    inner = {name: as_typed(item) if isinstance(item, dict) else item for name, item in values.items()}
    plain = {name: item for name, item in inner.items() if not str(name).startswith(_ODD)}
    return deep_merge(plain, {str(name).removeprefix(_ODD): inner[name] for name in inner if name not in plain})


def is_sweep(override: str) -> bool:
    """Return True if a prepared override gives several values, one for each job."""
    return bool(OverridesParser.create().parse_override(override).is_sweep_override())


def typed_key(token: str) -> tuple[str, ...]:
    """Return the parts of the key set by a typed token, in the form of :func:`set_value`."""
    key = token.partition("=")[0].lstrip("+").strip()
    key = SYSTEM_NAME if key == NAME else key
    return ("chosen", key) if key in MAPS else tuple(part for part in re.split(r"[.\[\]]", key) if part)


def set_key(override: str) -> tuple[str, ...]:
    """Return the parts of the key set by a prepared override, () if it sets none."""
    key_and_value = set_value(override)
    return () if key_and_value is None else key_and_value[0]


def set_value(override: str) -> tuple[tuple[str, ...], str] | None:
    """Return the parts of the key set by a prepared override, and the value; None if it sets none."""
    match = re.match(r"(?:\+\+|\+|~)?([^=@]+)=", override)
    if match is None:
        return None
    parts = (part.removeprefix(_ODD) for part in re.split(r"[.\[\]]", match[1]) if part)
    return tuple(parts), override[match.end() :]


def unquoted(value: str) -> str:
    """Return a value without the quotes added for Hydra."""
    parsed = _as_quoted(value)
    return value if parsed is None else parsed


def _as_quoted(value: str) -> str | None:
    if len(value) < 2 or value[0] not in "'\"" or value[-1] != value[0]:
        return None
    try:
        parsed = OverridesParser.create().parse_rule(value, "value")
    except HydraException:
        return None
    return parsed.text if isinstance(parsed, QuotedString) else None


def _value(key: str, value: str, ready: Prepared, *, multirun: bool) -> str:
    if key.partition(".")[0] in MAPS and value.startswith("{") and value.endswith("}"):
        return _quoted_mapping(key, value, ready)
    if ready.taken_as_typed(key, value) or (key.rpartition(".")[2] in WHOLE_KEYS and not value.startswith("[")):
        return _quoted_paths(value, multirun=multirun)
    return value


def _quoted_paths(value: str, *, multirun: bool) -> str:
    if _KEEP.fullmatch(value) or _as_quoted(value) is not None:
        return value
    if multirun and re.match(r"(?:choice|glob|range|sort|shuffle|tag)\(.*\)$", value):
        return value
    if multirun and "," in value and not Path(value).expanduser().exists():
        return ",".join(_quoted_paths(part.strip(), multirun=False) for part in _split(value))
    return quote(value)


def _quoted_mapping(key: str, value: str, ready: Prepared) -> str:
    """Quote the paths in ``{use: ssformer, checkpoint: /a b/c=d.pth}`` and leave the rest unchanged."""
    pieces: list[str] = []
    for part in _split(value[1:-1]):
        pair = _PAIR.fullmatch(part)
        if pair is None and pieces:  # a comma inside a path
            pieces[-1] += f",{part}"
        else:
            pieces.append(part)
    for index, piece in enumerate(pieces):
        pair = _PAIR.fullmatch(piece)
        path = "" if pair is None else pair["value"].strip()
        if pair is not None and not _KEEP.fullmatch(path) and ready.taken_as_typed(f"{key}.{pair['key']}", path):
            pieces[index] = f"{pair['key']}: {path if _as_quoted(path) is not None else quote(path)}"
    return "{" + ",".join(pieces) + "}"


def _split(text: str) -> list[str]:
    """Split at commas outside quotes and brackets."""
    parts, depth, inside, start = [], 0, "", 0
    for index, sign in enumerate(text):
        if inside:
            inside = "" if sign == inside and text[index - 1] != "\\" else inside
        elif sign in "'\"":
            inside = sign
        elif sign in "[{(":
            depth += 1
        elif sign in ")}]":
            depth -= 1
        elif sign == "," and depth <= 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _accept(typed: str, override: str, ready: Prepared) -> None:
    try:
        parsed: Override = OverridesParser.create().parse_overrides([override])[0]
    except (HydraException, ValueError, AssertionError):
        key, _, value = typed.partition("=")
        ready.mistakes.append(
            typed_mistake(
                key.lstrip("+"),
                "something (not shown)" if holds_key(typed) else short(value) or "nothing",
                "a number, a word, [a,b], {key: value}, or text in quotes",
                f"put text with special characters in two pairs of quotes: {key}=\"'…'\"",
            )
        )
        return
    if parsed.package is not None and parsed.key_or_group in GROUPS:
        ready.mistakes.append(typed_mistake("", short(typed), f"{parsed.key_or_group}=NAME without a package"))
        return
    ready.overrides.append(override)
