"""``medtest list`` and ``medtest check``: suites and parts, listed without importing them, and mistakes of suites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from medtest.cli.terminal import say
from medtest.core.errors import ExitCode, MedtestError
from medtest.core.files.paths import suites_folder
from medtest.core.plugins import Family, parts
from medtest.suite.checking.systems import system_infos
from medtest.suite.reading.library import SuiteTree, find_suite, load_tree, suite_folders, suite_names


def parts_table(family: Family, config_dirs: Sequence[Path] = ()) -> Table:
    """Return the parts of a family: name, summary, settings, origin.

    Args:
        family: Family of the parts.
        config_dirs: A team's folders laid out like ``conf/``, whose systems are listed too.
    """
    table = Table(title=family, title_justify="left", box=None, header_style="bold", pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("description", ratio=3)
    table.add_column("settings and defaults", ratio=3)
    table.add_column("from", no_wrap=True)
    infos = system_infos(config_dirs) if family == "systems" else parts(family)
    for info in infos.values():
        table.add_row(info.name, escape(info.summary), escape(_settings(info.defaults)), escape(info.origin))
    return table


def suites_table(folders: list[Path]) -> Table:
    """Return the suites of a team's folders and those shipped with medtest."""
    table = Table(title="suites", title_justify="left", box=None, header_style="bold", pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("description", ratio=4)
    table.add_column("needs", no_wrap=True)
    table.add_column("from", no_wrap=True)
    places = suite_folders(folders)
    for name in suite_names(places):
        file = find_suite(name, places)
        origin = "medtest" if file is not None and file.parent == suites_folder() else str(file and file.parent.name)
        tree = load_tree(name, places)
        if tree.mistakes:
            table.add_row(name, f"has mistakes; see medtest check {name}", "", origin)
        else:
            table.add_row(name, escape(str(tree.values.get("description", "")).strip()), _needs(tree), origin)
    return table


def _needs(tree: SuiteTree) -> str:
    seeds = {
        (settings or {}).get("source", name): None
        for name, settings in tree.values.get("seeds", {}).items()
        if settings is not False
    }
    sources = parts("seeds")
    return "data=PATH" if any(name in sources and sources[name].load().needs_root for name in seeds) else ""


def _settings(defaults: Any) -> str:
    shown = []
    for key, value in defaults.items():
        if key == "levels" and isinstance(value, dict):
            shown.append(f"levels {min(value)}–{max(value)}")
        else:
            shown.append(f"{key}={'' if value is None else value}")
    return ", ".join(shown)


def check_suites(
    names: Sequence[str], overrides: Sequence[str], *, config_dirs: Sequence[Path], console: Console
) -> ExitCode:
    """Check suites one by one and print the mistakes of each.

    Args:
        names: Names of suites, or paths of YAML files.
        overrides: ``key=value`` tokens that apply to all.
        config_dirs: Folders like ``conf/``.
        console: Console for the result.

    Returns:
        ``MISTAKE`` if any suite has mistakes, else ``OK``.
    """
    from medtest.suite.compose import load_suite  # loads Hydra, which lists do not need

    worst = ExitCode.OK
    for name in names:
        path = Path(name).expanduser()
        try:
            suite = load_suite(path if path.suffix in (".yaml", ".yml") else name, overrides, config_dirs=config_dirs)
        except MedtestError as error:
            console.print(f"[red]✗[/red] {escape(name)}")
            say(console, str(error))
            worst = ExitCode.MISTAKE
            continue
        cells = sum(len(r.severities()) for r in suite.build_relations().values())
        console.print(
            f"[green]✓[/green] {suite.name} {suite.version}: {len(suite.relations)} relations, {cells} cells, "
            f"systems {', '.join(p.id for p in suite.systems) or 'from model='}"
        )
    return worst
