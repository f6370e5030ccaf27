"""Names and identities of systems that the user supplies.

The name is derived from the function, file, folder or API model the user supplied. Systems that ship with medtest keep
their own name. Names never enter a digest.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import unicodedata
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from medtest.core.address import ID_PATTERN
from medtest.core.errors import MedtestError
from medtest.core.records import is_simulated
from medtest.systems.base import System

BROUGHT = ("target", "path", "folder", "command", "model", "checkpoint")
"""Settings that refer to something the user supplies."""
ALLOWED = "small letters, digits, _ and -, 64 at most; the first a letter or digit"
_LONGEST = 64
_DIGITS = 4
_SHA256 = re.compile(r"[0-9a-f]{64}")
_RUNS_OTHERS = re.compile(r"python[0-9.]*|pypy[0-9.]*|ba?sh|zsh|perl|ruby|node|java|octave|matlab|Rscript|julia|uv|env")
_DEVICES = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
"""Device names reserved by Windows in every folder."""


def given_name(system: System, defaults: Mapping[str, Any], *, folders: bool = True) -> str:
    """Return a name derived from the user's input, or "" if the whole system ships with medtest.

    Args:
        system: The system, not opened.
        defaults: Default values of its settings.
        folders: Whether a folder name may be used; not if ids are hashed, because folders may be named after patients.
    """
    for key in BROUGHT:
        field = type(system.settings).model_fields.get(key)
        value = getattr(system.settings, key, None)
        if isinstance(value, str) and value.strip() and value != defaults.get(key, field and field.default):
            if not folders and Path(value).expanduser().is_dir():
                return ""
            name = clean(_stem(key, value), value)
            return _of_family(system, name) if key == "checkpoint" else _of_format(system, name)
    return ""


def distinct(names: Mapping[str, str], systems: Mapping[str, System]) -> dict[str, str]:
    """Return distinct names for the systems of one call; equal names get digits of the SHA-256.

    Args:
        names: Names by system id; "" for a system that keeps its own.
        systems: Systems by id.
    """
    shown = {key: name or systems[key].record_name for key, name in names.items()}
    unique = dict(names)
    for key, name in names.items():
        if name and list(shown.values()).count(shown[key]) > 1:
            unique[key] = _with_digits(name, _content(systems[key]))
    again = [name for name in unique.values() if name]
    return {key: _with_digits(name, key) if again.count(name) > 1 and name else name for key, name in unique.items()}


def refused(name: str) -> str:
    """Return the problem of a name that a user typed, or ""."""
    if not ID_PATTERN.fullmatch(name):
        return ALLOWED
    if is_simulated(name):
        return f"{ALLOWED}; not one that ends as simulated systems' do"
    return "" if name == _harmless(name) else f"{ALLOWED}; no name that Windows or medtest's own folders take"


def clean(text: str, whole: str = "") -> str:
    """Return a name that is valid everywhere: ``Mein Netz.v2`` becomes ``mein-netz-v2``.

    Letters of other scripts are dropped. If letters were dropped or the name was cut, four digits of the text's SHA-256
    are appended to keep similar names distinct.

    Args:
        text: Text to derive the name from.
        whole: Text to hash; by default ``text``.
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    ascii_text = plain.encode("ascii", "ignore").decode()
    lost = any(letter.isalnum() and not letter.isascii() for letter in plain)
    name = re.sub(r"[^a-z0-9_]+", "-", ascii_text).strip("-_")
    if lost or not name or len(name) > _LONGEST:
        name = _with_digits(name or "model", whole or text)
    return _harmless(name)


def identity(system: System, *, folders: bool = True) -> dict[str, str]:
    """Return the identity of a system's model: ``file`` and ``sha256``, or ``model`` and ``host``; "" is omitted.

    A version of MLflow's registry has ``registry`` ("NAME/3"), ``logged`` (MLflow's logged model) and ``sha256``. Files
    are named without their folders. Unreadable files have no SHA-256.

    Args:
        system: The system.
        folders: Whether a folder may be named, as in :func:`given_name`.
    """
    settings = system.settings
    endpoint = getattr(system, "endpoint", None)
    version = getattr(system, "registered", None)
    if version is not None:
        facts = {"registry": f"{version.name}/{version.version}", "logged": version.model_id}
        facts |= {"sha256": _sha256(system)}
    elif callable(endpoint):
        host = urlsplit(str(endpoint().base_url))
        shown = (host.hostname or "") + (f":{host.port}" if host.port else "")
        facts = {"model": str(getattr(settings, "model", "")), "host": shown}
    else:
        facts = {"file": _file_of(system, folders=folders), "sha256": _sha256(system)}
    return {key: value for key, value in facts.items() if value}


def _file_of(system: System, *, folders: bool) -> str:
    for key in ("target", "path", "folder", "checkpoint"):
        value = getattr(system.settings, key, None)
        if isinstance(value, str) and value.strip():
            if not folders and Path(value).expanduser().is_dir():
                return ""
            return _last(value) if key != "target" or not _is_file(value) else PurePosixPath(value).name
    weights = getattr(system, "compact_weights", None)
    return weights.name if isinstance(weights, Path) and weights.is_file() else ""


def _sha256(system: System) -> str:
    """Return the SHA-256 of the model's file, or a SHA-256 over those of several files, in their order."""
    try:
        printed = system.fingerprint()
    except (MedtestError, OSError):
        return ""
    for value in printed.values():
        if isinstance(value, str) and (match := _SHA256.search(value)):
            return match[0]
        if isinstance(value, list):
            sums = [match[0] for text in value if isinstance(text, str) and (match := _SHA256.search(text))]
            if sums:
                return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()
    return ""


def _content(system: System) -> str:
    """Return text that distinguishes systems of equal name: the SHA-256, or else the user's input."""
    typed = [str(getattr(system.settings, key, "")) for key in BROUGHT]
    return _sha256(system) or "\n".join(typed)


def _with_digits(name: str, text: str) -> str:
    digits = text[:_DIGITS] if _SHA256.fullmatch(text) else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f"{name[: _LONGEST - _DIGITS - 1].rstrip('-_')}-{digits[:_DIGITS]}"


def _harmless(name: str) -> str:
    """Return a name that collides with no Windows device, series folder or simulated system."""
    if is_simulated(name):
        name = "_simulated".join(name.rsplit("-simulated", 1))
    if _DEVICES.fullmatch(name) or name == "alpha_sigma" or name.startswith("alpha_sigma-"):
        name = f"model-{name}"
    return name[:_LONGEST].rstrip("-_") or name


def _of_family(system: System, name: str) -> str:
    """Return the name of a checkpoint, prefixed by its network's name unless already included."""
    family = str(getattr(system, "family", ""))
    return name if not family or family in name else _harmless(f"{family}-{name}")


def _of_format(system: System, name: str) -> str:
    """Return the name of a file, with its format if the network exists in several: ``net-onnx``."""
    ending = f"-{type(system).file_format}"
    if ending == "-" or name.endswith(ending):
        return name
    return _harmless(f"{name[: _LONGEST - len(ending)].rstrip('-_')}{ending}")


def _stem(key: str, value: str) -> str:
    if key == "target":
        place, _, function = value.rpartition(":")
        return f"{_stem_of_file(place) if _is_file(value) else place.rpartition('.')[2]}-{function}"
    if key == "command":
        return _stem_of_file(_program(value))
    if key == "folder":
        return _last(value)
    if key == "model":
        return value.rstrip("/").rpartition("/")[2] or value
    return _stem_of_file(value)


def _is_file(target: str) -> bool:
    place = target.rpartition(":")[0]
    return place.endswith(".py") or "/" in place


def _last(text: str) -> str:
    """Return the last part of a path, with ``.`` and ``..`` resolved."""
    return os.path.basename(os.path.abspath(os.path.expanduser(text)))


def _stem_of_file(text: str) -> str:
    name = _last(text)
    return name if Path(text).expanduser().is_dir() else PurePosixPath(name).stem


def _program(command: str) -> str:
    """Return the program of a command, or the script that it runs."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    if words and _RUNS_OTHERS.fullmatch(_last(words[0])):
        later = [word for word in words[1:] if not word.startswith("-") and "{" not in word]
        return next((word for word in later if "." in word or "/" in word), words[0])
    return words[0] if words else ""
