"""What ``medtest list`` prints: suites and parts, found without importing any part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from rich.table import Table

from medtest.paths import suites_folder
from medtest.plugins import Family, parts


def parts_table(family: Family) -> Table:
    """Return the parts of a family: name, what it is, the settings a suite may give, who brings it."""
    table = Table(title=family, title_justify="left", box=None, header_style="bold", pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("what it is", ratio=3)
    table.add_column("settings and defaults", ratio=3)
    table.add_column("from", no_wrap=True)
    for info in parts(family).values():
        table.add_row(info.name, info.summary, _settings(info.defaults), info.origin)
    return table


def suites_table(folders: list[Path]) -> Table:
    """Return the suites that ship with medtest and those of further folders."""
    table = Table(title="suites", title_justify="left", box=None, header_style="bold", pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("what it tests", ratio=4)
    table.add_column("needs", no_wrap=True)
    table.add_column("from", no_wrap=True)
    for folder in (suites_folder(), *folders):
        origin = "medtest" if folder == suites_folder() else folder.name
        for path in sorted(folder.glob("*.yaml")):
            content = _head(path)
            table.add_row(path.stem, str(content.get("description", "")), _needs(path.stem), origin)
    return table


def _head(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {"description": f"cannot be read; medtest check {path.name} says why"}
    return content if isinstance(content, dict) else {}


def _needs(name: str) -> str:
    from medtest.errors import MedtestError
    from medtest.suite.compose import load_suite

    try:
        suite = load_suite(name)
    except MedtestError:
        return ""
    return "data=PATH" if any(plan.info.load().needs_root for plan in suite.seeds) else ""


def _settings(defaults: Any) -> str:
    shown = []
    for key, value in defaults.items():
        if key == "levels" and isinstance(value, dict):
            shown.append(f"levels {min(value)}–{max(value)}")
        else:
            shown.append(f"{key}={'' if value is None else value}")
    return ", ".join(shown)
