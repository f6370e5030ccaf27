"""``medtest schema``: the JSON Schema of suite files, for editors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from medtest.cli.typed import ConfigDirs


def print_schema(
    suite_dir: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Folder of suites that yours extend.")
    ] = None,
    config_dir: ConfigDirs = None,
) -> None:
    """Print the JSON Schema of suites, with which editors complete and check them: medtest schema > FILE.json."""
    from medtest.suite.checking.editors.suites import schema_text

    sys.stdout.write(schema_text(suite_dirs=suite_dir or [], config_dirs=config_dir or []))
