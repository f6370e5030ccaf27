"""Conversion of Hydra's errors to mistakes: place, value found, allowed values, and the nearest name."""

from __future__ import annotations

import re

from medtest.core.cases import ID_PATTERN
from medtest.core.errors import Mistake, UserMistakes, nearest_name, typed_mistake
from medtest.suite.checking.systems import system_infos
from medtest.suite.commandline.short_keys import whole_key
from medtest.suite.commandline.source import ConfigFolders
from medtest.suite.reading.library import suite_names
from medtest.suite.reading.safety import short
from medtest.suite.schema import RunBlock


def rephrase(error: Exception, places: ConfigFolders) -> UserMistakes:
    """Convert an error of Hydra or OmegaConf to mistakes."""
    text = _whole_message(error)
    return UserMistakes([_rephrased(text, places)])


def _whole_message(error: BaseException) -> str:
    messages: list[str] = []
    current: BaseException | None = error
    while current is not None:
        if str(current):
            messages.append(str(current))
        current = current.__cause__
    return "\n".join(messages)


def _rephrased(text: str, places: ConfigFolders) -> Mistake:
    names = suite_names(places.suite_folders())
    if re.search(r"You must specify 'suite'", text):
        return typed_mistake("suite", "nothing", ", ".join(names), "type suite=NAME")
    option = re.search(r"Could not find '(suite|model|tracking|executor)/([^']*)'", text)
    if option:
        allowed = _group_names(option[1], places, text)
        name = option[2]
        fix = ""
        if option[1] == "suite" and not ID_PATTERN.fullmatch(name):
            fix = "suite names consist of lower-case letters, digits, _ and -"
        return typed_mistake(option[1], name or "nothing", ", ".join(allowed), fix, nearest=nearest_name(name, allowed))
    ambiguous = re.search(r"Ambiguous value for argument '([^'=]*)=(.*?)'\n", text, re.DOTALL)
    sweep = ambiguous or re.search(r"Sweep parameters '([^'=]*)=(.*?)' requires --multirun", text, re.DOTALL)
    if sweep:
        key = sweep[1].lstrip("+").removeprefix("chosen.")
        return typed_mistake(key, short(sweep[2]), "one value, or a list in brackets", _comma_advice(key, sweep[2]))
    lines = [line.strip() for line in text.splitlines() if line.strip() and "hydra.cc" not in line]
    group = re.search(r"[Cc]ould not override '([^']*)'", text)
    return typed_mistake(
        group[1] if group else "",
        short(lines[0] if lines else "a configuration that Hydra cannot compose", 200),
        "keys listed by medtest run --help",
    )


def _comma_advice(key: str, value: str) -> str:
    """Return advice for a value with commas: a decimal point, or a list or a sweep."""
    whole = whole_key(key)
    field = RunBlock.model_fields.get(key)
    fraction = whole.endswith(("threshold", "percent", "usd")) or (
        field is not None and "float" in str(field.annotation)
    )
    if not re.fullmatch(r"[+-]?\d+,\d+", value) or not (fraction or value.startswith("0,")):
        return f"type {whole}=[{value}] to use all in one run, or add -m for one run each"
    point = value.replace(",", ".")
    return f"type {whole}={point}, with a point; add -m for one run each with {' and '.join(value.split(','))}"


def _group_names(group: str, places: ConfigFolders, text: str) -> list[str]:
    if group == "suite":
        return suite_names(places.suite_folders())
    if group == "model":
        return sorted(system_infos(places.configs))
    return re.findall(r"^\t(\S+)$", text, re.MULTILINE)
