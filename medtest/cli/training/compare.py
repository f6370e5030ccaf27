"""The same suite on a network before and after further training: run, table, page, MLflow, and tables again later."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rich.console import Console
from rich.table import Table

from medtest.core.errors import ExitCode, Interrupted, Mistake, OutputProblem
from medtest.core.files import read_object
from medtest.core.files.paths import path_from_here
from medtest.suite.composed import with_composed
from medtest.suite.model import EACH, Invocation, PartPlan, Suite

if TYPE_CHECKING:
    import pandas as pd

    from medtest.training.further.log import FurtherLog

PGD = "pgd"
FILE = "before_after.json"
"""Where the two runs' folders are, relative to the training's, and what the tables are made with."""
MEANS = ("dice", "iou")
"""Scores of single cases, of which the table holds means; those of a classifier are of all cases together."""
LONG, WIDE, WORDS, PAGE = "before_after.csv", "before_after_slides.csv", "before_after.md", "before_after.html"


@dataclass(frozen=True, kw_only=True)
class ComparedSystems:
    """What came of a comparison.

    Attributes:
        code: Exit code of the two runs; a gate that is not held is told there and fails nothing here.
        table: The long table.
    """

    code: ExitCode
    table: pd.DataFrame


def two_systems(
    suite: Suite,
    model: str,
    *,
    before: str | None,
    after: Path,
    settings: Mapping[str, Any] | None = None,
    transfer: bool = False,
) -> Suite:
    """Return the suite with a network before and after as its only systems, ``<model>-before`` and ``<model>-after``.

    Args:
        suite: The suite, with the network among its systems where it has settings of its own.
        model: Name of the network.
        before: Its setting ``checkpoint`` before; None for the one that ships.
        after: Weights after.
        settings: Further settings.
        transfer: Whether both are shown what PGD makes of the network before, too.
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


def _same(one: PartPlan, other: PartPlan) -> bool:
    return one.info.name == other.info.name and one.settings == other.settings


def _with_transfer(suite: Suite, undefended: PartPlan) -> Suite:
    """Return the suite with its PGD, made on the undefended network, shown to both, where it has one made on each."""
    own = next((one for one in suite.relations if one.info.name == PGD and one.settings.crafted_on == EACH), None)
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
) -> ComparedSystems:
    """Run the suite on both in one process, and make the table, the page and MLflow's copies.

    Args:
        suite: The suite.
        invocation: How it is run.
        model: Name of the network.
        network: Which of its family.
        before: See :func:`two_systems`.
        after: See :func:`two_systems`.
        settings: See :func:`two_systems`.
        out: Folder of the training.
        log: MLflow, or None.
        console: Where the table is printed.
        transfer: See :func:`two_systems`.

    Raises:
        Interrupted: The run was; the same command goes on.
        MedtestError: The run could not be made.
    """
    from medtest.report.finish import finish
    from medtest.runner import run_suite

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
        raise Interrupted(f"{ended.note}; the same command goes on from there.")
    for problem in ended.problems:
        console.print(problem, markup=False)
    folders = [_relative(one.folder, out) for one in outcome.systems]
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
    found = make(out)
    show(found, network=network, console=console)
    console.print(f"Page:  {path_from_here(out / PAGE)}", markup=False, soft_wrap=True)
    if log is not None:
        columns = {str(name): _plain(found[name]) for name in found.columns}
        log.table("tables/before_after.json", columns, metrics_of(found))
        log.attach([out / LONG, out / WIDE, out / WORDS, out / PAGE], parent=True)
    return ComparedSystems(code=ended.code, table=found)


def make(out: Path) -> pd.DataFrame:
    """Make tables and page of a training's folder from the two runs' records, and return the long table.

    Raises:
        OutputProblem: Records are missing, or the folder cannot be written.
    """
    from medtest.report.pages.before_after import Page, before_after_html
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
    asked = CaseSet.read(shown) if view else None
    records = [Records.read(folder, asked=asked) for folder in (before, after)]
    wanted = Wanted.from_folder(shown)
    left_out = ""
    if wanted.exclude is not None:
        parted = [leave_out(one, wanted.exclude) for one in records]
        records, left_out = [kept for kept, _ in parted], parted[1][1].words
    table, unpaired = before_after.compare(
        *records, task=wanted.task, order=list(facts["relations"]), family=str(facts["family"])
    )
    training = read_object(out / "training.json")
    page = Page(
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
        phantom=wanted.phantom,
        unpaired=unpaired,
        excluded=left_out,
    )
    _write(out / LONG, table.to_csv(index=False))
    _write(out / WIDE, before_after_words.slides_table(table).to_csv(index=False))
    _write(out / WORDS, before_after_words.markdown(table, title=f"{facts['network']} under {facts['suite']}"))
    _write(out / PAGE, before_after_html(page))
    return table


def remake_tables(folders: Sequence[Path], *, console: Console) -> None:
    """Make the tables and pages of every training at or below some folders again, and print them.

    Where there are trainings with a defence, or runs of weights that were trained so, their table is made too.

    Raises:
        UserMistakes: There is none of either.
        OutputProblem: Records are missing, or a folder cannot be written.
    """
    from medtest.cli.training.defences import defence_tables

    # MLflow keeps a table of this name among its artifacts, in a folder of tables and without a training beside it
    each = [sorted(p.parent for p in folder.rglob(FILE) if p.parent.name != "tables") for folder in folders]
    found = list(dict.fromkeys(out for one in each for out in one))
    for out in found:
        show(make(out), network=str(_facts(out)["network"]), console=console)
        console.print(f"Page:  {path_from_here(out / PAGE)}", markup=False, soft_wrap=True)
    compared = [(out / str(_facts(out)[when])).resolve() for out in found for when in ("before", "after")]
    if not defence_tables(folders, compared, console=console) and not found:
        raise Mistake(
            where="command line",
            key="FOLDER",
            found=", ".join(str(folder) for folder in folders),
            allowed=f"the folder of a further training that was tested ({FILE}), or one above such folders",
            fix="of defended networks that ship: python run.py suite=defended_melanoma, then outputs/defended_melanoma",
        ).as_error()


def show(table: pd.DataFrame, *, network: str, console: Console) -> None:
    """Print the table, one score below the other: a row for each relation, its difference with the interval."""
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
    """Return the numbers of the pooled table for MLflow: ``before_after/dice/blur/difference`` and their kin."""
    from medtest.results.before_after import change as before_after

    found: dict[str, float] = {}
    for relation in dict.fromkeys(table["relation"]):
        for score in dict.fromkeys(table["score"]):
            row = before_after.row_of(table, str(relation), score=str(score))
            if row is None:
                continue
            for column in ("before", "after", "difference", "ci_low", "ci_high"):
                value = row[column]
                if value is not None and value == value:
                    found[f"before_after/{score}/{relation}/{column}"] = float(value)
    return found


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
