"""Comparison of a network before and after further training under one suite: run, table, page, MLflow."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rich.console import Console
from rich.table import Table

from medtest.core.deferred import pd
from medtest.core.errors import ExitCode, Interrupted, OutputProblem, typed_error
from medtest.core.files import read_object
from medtest.core.files.paths import path_from_here
from medtest.suite.composed import with_composed
from medtest.suite.model import EACH, Invocation, PartPlan, Suite

if TYPE_CHECKING:
    from medtest.training.further.log import FurtherLog

PGD = "pgd"
FILE = "before_after.json"
"""Records the two runs' folders, relative to the training's, and the settings of the tables."""
MEANS = ("dice", "iou")
"""Scores of single cases, whose means the table holds; those of a classifier cover all cases together."""
LONG, WIDE, WORDS, PAGE = "before_after.csv", "before_after_slides.csv", "before_after.md", "before_after.html"


def two_systems(
    suite: Suite,
    model: str,
    *,
    before: str | None,
    after: Path,
    settings: Mapping[str, Any] | None = None,
    transfer: bool = False,
) -> Suite:
    """Return the suite with the network before and after as its only systems, ``<model>-before`` and ``<model>-after``.

    Args:
        suite: The suite, with the network among its systems if that has its own settings.
        model: Name of the network.
        before: Its setting ``checkpoint`` before training; None for the bundled one.
        after: Weights after training.
        settings: Further settings.
        transfer: Whether both also get the PGD attacks crafted on the network before training.
    """
    from medtest.core.plugins import part

    info = part("systems", model)
    own = next((plan.settings for plan in suite.systems if plan.info.name == model), None)
    base = info.load().Settings(**info.defaults) if own is None else own
    plans = tuple(
        PartPlan(
            id=f"{model}-{when}",
            info=info,
            settings=base.model_copy(update={**(settings or {}), "checkpoint": checkpoint}),
        )
        for when, checkpoint in (("before", before), ("after", str(after)))
    )
    tested = replace(suite, systems=plans, gates=())
    return with_composed(_with_transfer(tested, plans[0]) if transfer else tested)


def _same(first: PartPlan, second: PartPlan) -> bool:
    return first.info.name == second.info.name and first.settings == second.settings


def _with_transfer(suite: Suite, undefended: PartPlan) -> Suite:
    """Return the suite with its PGD, if crafted on each system, also transferred from the undefended network."""
    own = next((plan for plan in suite.relations if plan.info.name == PGD and plan.settings.crafted_on == EACH), None)
    if own is None or any(_same(crafter, undefended) for crafter in suite.crafters.values()):
        return suite
    settings = own.settings.model_copy(update={"crafted_on": undefended.id})
    shown = replace(own, id=f"{own.id}_transfer", settings=settings)
    return replace(suite, relations=(*suite.relations, shown), crafters={**suite.crafters, shown.id: undefended})


def compare(
    suite: Suite,
    invocation: Invocation,
    *,
    model: str,
    network: str,
    before: str | None,
    after: Path,
    settings: Mapping[str, Any],
    out: Path,
    log: FurtherLog | None,
    console: Console,
    transfer: bool = False,
) -> ExitCode:
    """Run the suite on both in one process, make the table, the page and MLflow's copies; return the runs' exit code.

    Args:
        suite: The suite.
        invocation: Options of the run.
        model: Name of the network.
        network: Variant of the network's family.
        before: See :func:`two_systems`.
        after: See :func:`two_systems`.
        settings: See :func:`two_systems`.
        out: Folder of the training.
        log: MLflow, or None.
        console: Console for the table.
        transfer: See :func:`two_systems`.

    Raises:
        Interrupted: The run was interrupted; the same command continues it.
        MedtestError: The run failed.
    """
    from medtest.report.finish import finish
    from medtest.runner.run import run_suite

    both = two_systems(suite, model, before=before, after=after, settings=settings, transfer=transfer)
    console.print(f"{suite.name} on {network} before and after …", markup=False)
    with ExitStack() as locks:
        outcome = run_suite(both, replace(invocation, fresh=False, track=log is not None), hold=locks)
        ended = finish(
            both,
            replace(invocation, track=log is not None),
            outcome,
            parents=None if log is None else log.parents,
            sweep=True,
        )
    if outcome.interrupted:
        raise Interrupted(f"{ended.note}; the same command continues.")
    for problem in ended.problems:
        console.print(problem, markup=False)
    folders = [_relative(system.folder, out) for system in outcome.systems]
    facts = {
        "network": network,
        "family": model,
        "suite": f"{suite.name} {suite.version}",
        "relations": [plan.id for plan in both.relations if plan.id != "unchanged"],
        "before": folders[0],
        "after": folders[1],
        "view": outcome.view,
        "command": invocation.command,
    }
    _write(out / FILE, json.dumps(facts, indent=1) + "\n")
    table = make(out)
    show(table, network=network, console=console)
    console.print(f"Page:  {path_from_here(out / PAGE)}", markup=False, soft_wrap=True)
    if log is not None:
        columns = {str(name): _plain(table[name]) for name in table.columns}
        log.table("tables/before_after.json", columns, metrics_of(table))
        log.attach([out / LONG, out / WIDE, out / WORDS, out / PAGE], parent=True)
    return ended.code


def make(out: Path) -> pd.DataFrame:
    """Make tables and page of a training's folder from the two runs' records, and return the long table.

    Raises:
        OutputProblem: Records are missing, or the folder cannot be written.
    """
    from medtest.report.pages.before_after import before_after_html
    from medtest.results.before_after import change as before_after
    from medtest.results.before_after import words as before_after_words
    from medtest.results.records.exclusion import leave_out
    from medtest.results.records.records_io import Records
    from medtest.results.records.wanted import Wanted
    from medtest.runner.folder import view_folder
    from medtest.runner.records.case_set import CaseSet

    facts = _facts(out)
    before, after = (out / facts["before"], out / facts["after"])
    view = str(facts.get("view") or "")
    shown = view_folder(after, view)
    cases = CaseSet.read(shown) if view else None
    records = [Records.read(folder, asked=cases) for folder in (before, after)]
    suite_info = Wanted.from_folder(shown)
    left_out = ""
    if suite_info.exclude is not None:
        parted = [leave_out(records_of_run, suite_info.exclude) for records_of_run in records]
        records, left_out = [judged for judged, _, _ in parted], parted[1][2]
    table, unpaired = before_after.compare(
        *records, task=suite_info.task, order=list(facts["relations"]), family=str(facts["family"])
    )
    training = read_object(out / "training.json")
    page = before_after_html(
        network=str(facts["network"]),
        family=str(facts["family"]),
        suite=str(facts["suite"]),
        table=table,
        training=training,
        command=str(facts.get("command", "")),
        links=[
            (name, quote(view_folder(Path(facts[name]), view).as_posix() + "/report.html", safe="/."))
            for name in ("before", "after")
        ],
        phantom=suite_info.phantom,
        unpaired=unpaired,
        excluded=left_out,
    )
    _write(out / LONG, table.to_csv(index=False))
    _write(out / WIDE, before_after_words.slides_table(table).to_csv(index=False))
    _write(out / WORDS, before_after_words.markdown(table, title=f"{facts['network']} under {facts['suite']}"))
    _write(out / PAGE, page)
    return table


def remake_tables(folders: Sequence[Path], *, console: Console) -> None:
    """Make the tables and pages of every training at or below some folders again, and print them.

    If there are trainings with a defence, or runs of weights trained so, their table is made too.

    Raises:
        UserMistakes: There is neither.
        OutputProblem: Records are missing, or a folder cannot be written.
    """
    from medtest.cli.training.defences import defence_tables

    # MLflow's artifacts hold a table of this name, in a folder of tables without a training beside it.
    each = [sorted(p.parent for p in folder.rglob(FILE) if p.parent.name != "tables") for folder in folders]
    trainings = list(dict.fromkeys(out for group in each for out in group))
    for out in trainings:
        show(make(out), network=str(_facts(out)["network"]), console=console)
        console.print(f"Page:  {path_from_here(out / PAGE)}", markup=False, soft_wrap=True)
    compared = [(out / str(_facts(out)[when])).resolve() for out in trainings for when in ("before", "after")]
    if not defence_tables(folders, compared, console=console) and not trainings:
        raise typed_error(
            "FOLDER",
            ", ".join(str(folder) for folder in folders),
            f"the folder of a further training that was tested ({FILE}), or one above such folders",
            "of defended networks that ship: medtest run suite=defended_melanoma, then outputs/defended_melanoma",
        )


def show(table: pd.DataFrame, *, network: str, console: Console) -> None:
    """Print one table per score: a row for each relation, with its difference and interval."""
    from medtest.report.pages.before_after import row_words
    from medtest.results.before_after import change as before_after
    from medtest.results.before_after import words as before_after_words

    for dataset in dict.fromkeys(table["dataset"]):
        for score in dict.fromkeys(str(name) for name in table["score"]):
            words = f"{'mean ' if score in MEANS else ''}{before_after_words.score_words(score)}"
            shown = Table(title=f"{network}, {dataset}: {words}", title_justify="left", box=None, pad_edge=False)
            shown.add_column("", no_wrap=True)
            for head in ("before", "after", "points (95 %)"):
                shown.add_column(head, justify="right", no_wrap=True)
            for relation in dict.fromkeys(table["relation"]):
                row = before_after.row_of(table, str(relation), score=score, dataset=str(dataset))
                if row is not None:
                    values = (f"{row.before:.3f}", f"{row.after:.3f}", before_after_words.points(row))
                    shown.add_row(row_words(str(relation)), *values)
            console.print()
            console.print(shown)


def metrics_of(table: pd.DataFrame) -> dict[str, float]:
    """Return the numbers of the pooled table for MLflow, such as ``before_after/dice/blur/difference``."""
    from medtest.results.before_after import change as before_after

    metrics: dict[str, float] = {}
    for relation in dict.fromkeys(table["relation"]):
        for score in dict.fromkeys(table["score"]):
            row = before_after.row_of(table, str(relation), score=str(score))
            if row is None:
                continue
            for column in ("before", "after", "difference", "ci_low", "ci_high"):
                value = row[column]
                if value is not None and value == value:
                    metrics[f"before_after/{score}/{relation}/{column}"] = float(value)
    return metrics


def _plain(column: pd.Series) -> list[Any]:
    return [None if value is None or value != value else value for value in column.tolist()]


def _facts(out: Path) -> dict[str, Any]:
    facts = read_object(out / FILE)
    if not {"before", "after", "family", "network", "suite", "relations"} <= set(facts):
        raise OutputProblem(f"{out.name}/{FILE} is not what a further training writes")
    return facts


def _relative(folder: Path, out: Path) -> str:
    return Path(os.path.relpath(folder, out)).as_posix()


def _write(path: Path, text: str) -> None:
    from medtest.runner.folder import writing_text

    with writing_text(path) as file:
        file.write(text)
