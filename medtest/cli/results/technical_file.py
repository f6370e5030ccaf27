"""Commands for a technical file, as typed: ``medtest freeze`` and ``medtest evidence``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtest.cli.terminal import console
from medtest.cli.typed import ConfigDirs, Tokens


def freeze(
    tokens: Tokens,
    sign: Annotated[Path | None, typer.Option(metavar="KEY", help="Private key of SSH that signs the plan.")] = None,
    config_dir: ConfigDirs = None,
) -> None:
    """Freeze a suite's plan before its first case: medtest freeze suite=polyp_evidence."""
    from medtest.cli.run.freeze import freeze_plan

    freeze_plan(tokens, key=sign, config_dirs=config_dir or [], console=console())


def evidence(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN", help="Finished runs: folders, SUITE/SYSTEM, or MLflow run ids.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR|PDF", help="Folder for the document; or FILE.pdf, beside which FILE.html is written."
        ),
    ],
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY", help="Private key of SSH that signs the list of files.")
    ] = None,
) -> None:
    """Write the evidence of runs for a technical file: medtest evidence polyp_evidence/pranet-compact --out FOLDER."""
    from medtest.cli.results.evidence import make_evidence

    make_evidence(runs, out=out, key=sign, console=console())
