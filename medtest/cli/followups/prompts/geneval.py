"""``medtest prompts geneval``: the pictures and results of a run in GenEval's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtest.cli.terminal import console, say
from medtest.core.cases import SOURCE
from medtest.core.errors import nearest_name, typed_error


def geneval(
    run: Annotated[str, typer.Argument(help="Run that drew pictures: its folder, SUITE/SYSTEM or MLflow run id.")],
    out: Annotated[Path, typer.Option(help="New folder for prompts, pictures and results.jsonl.")],
    relation: Annotated[str, typer.Option(help="Relation whose pictures are written.")] = SOURCE,
) -> None:
    """Write a run's pictures and results as GenEval does: medtest prompts geneval t2i/simlab --out DIR."""
    from medtest.core.files.paths import home
    from medtest.core.records import PICTURES
    from medtest.report.compared.named import run_here
    from medtest.results.fidelity.cases import DrawnCases
    from medtest.results.fidelity.geneval.export import RESULTS, export_geneval
    from medtest.results.fidelity.geneval.table import rule_of
    from medtest.results.fidelity.settings import FigureSettings
    from medtest.results.records.judged import compared_records
    from medtest.results.records.wanted import Wanted
    from medtest.runner.folder import output_problems

    folder = run_here(run, home(), key="run")
    suite_settings = Wanted.from_folder(folder)
    target = out.expanduser()
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise typed_error("--out", str(out), "a new or empty folder")
    cases = DrawnCases.of(compared_records(folder, suite_settings))
    if not cases.drawn.any():
        raise typed_error("run", run, "a run that drew pictures", "medtest run suite=t2i limit=3")
    if relation not in cases.relations:
        nearest = nearest_name(relation, cases.relations)
        raise typed_error("--relation", relation, ", ".join(cases.relations), nearest=nearest)
    rule = rule_of(FigureSettings.of(suite_settings.judging))
    with output_problems(target):
        prompts, results, left_out = export_geneval(
            cases, rule, pictures=folder / PICTURES, folder=target, relation=relation
        )
    say(console(), f"{target / RESULTS}: {prompts:,} prompts, {results:,} results")
    for reason, count in left_out.items():
        say(console(), f"  {count:,} left out: {reason}")
