"""``medtest check``: every mistake of every suite named, without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from medtest.errors import ExitCode, MedtestError
from medtest.suite.compose import load_suite


def check_suites(
    names: Sequence[str], overrides: Sequence[str], *, config_dirs: Sequence[Path], console: Console
) -> ExitCode:
    """Check suites one after the other and say what is wrong with each.

    Args:
        names: Names of suites, or paths of YAML files.
        overrides: ``key=value`` tokens that apply to all.
        config_dirs: Folders like ``conf/``.
        console: Where to write.

    Returns:
        ``MISTAKE`` when any suite has mistakes, else ``OK``.
    """
    worst = ExitCode.OK
    for name in names:
        path = Path(name).expanduser()
        try:
            suite = load_suite(path if path.suffix in (".yaml", ".yml") else name, overrides, config_dirs=config_dirs)
        except MedtestError as error:
            console.print(f"[red]✗[/red] {escape(name)}")
            console.print(str(error), markup=False, soft_wrap=True)
            worst = ExitCode.MISTAKE
            continue
        cells = sum(len(r.severities()) for r in suite.build_relations().values())
        console.print(
            f"[green]✓[/green] {suite.name} {suite.version}: {len(suite.relations)} relations, {cells} cells, "
            f"systems {', '.join(p.id for p in suite.systems) or 'from model='}"
        )
    return worst
