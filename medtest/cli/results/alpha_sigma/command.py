"""``medtest alpha-sigma``: (α,σ) of quality files, as in the paper's program, and of the records of runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from medtest.core.errors import Mistake, UserMistakes
from medtest.results.series.robustness import Robustness, agreement, irregular, ranked, robustness_of
from medtest.results.series.series import SeriesSet
from medtest.results.series.series_file import read_series_file

RECORDS = ".parquet"
EXPERIMENT = "alpha-sigma"
_UNSAFE = re.compile(r"[^\w.-]+")
_NOT_IN_METRICS = re.compile(r"[^A-Za-z0-9._-]+")


def run_alpha_sigma(
    files: Sequence[Path],
    *,
    out: Path,
    lower_is_better: bool,
    min_step: float | None,
    score: str | None,
    csv: bool,
    svg: bool,
    track: bool,
    console: Console,
) -> None:
    """Read every file, print its table and write ``tab_rob.tex`` and ``fig_rob.pdf``.

    A single table is written to the folder itself, several to a subfolder each.

    Args:
        files: Quality files, records, or folders of runs.
        out: Folder of the files.
        lower_is_better: Whether the numbers are errors.
        min_step: Neighbouring scales nearer than this are merged; None for 0, or for the suite's own with records.
        score: Score column of records; None for the suite's own.
        csv: Whether to write ``alpha_sigma.csv`` and ``agreement.csv``.
        svg: Whether to write ``fig_rob.svg``.
        track: Whether to log to MLflow.
        console: Console for the tables.

    Raises:
        UserMistakes: A file cannot be read; in that case nothing is written.
        OutputProblem: A file cannot be written.
    """
    sets = _read(files, score=score, min_step=min_step, lower_is_better=lower_is_better)
    names: set[str] = set()
    for curves in sets:
        target = out if len(sets) == 1 else out / _free_name(curves.title, names)
        measured = [robustness_of(series, lower_is_better=curves.lower_is_better) for series in curves.series]
        written = write_files(curves, measured, target, csv=csv, svg=svg)
        _show(curves, measured, written, console)
        if track:
            _track(curves, measured, written, console)


def _read(
    files: Sequence[Path], *, score: str | None, min_step: float | None, lower_is_better: bool
) -> list[SeriesSet]:
    mistakes: list[Mistake] = []
    sets: list[SeriesSet] = []
    for path in files:
        if path.suffix == RECORDS or path.is_dir():
            continue
        try:
            curves = read_series_file(path, lower_is_better=lower_is_better)
            merged = curves.merged(min_step or 0.0)
            _check_scales(merged, path)
            sets.append(merged)
        except UserMistakes as error:
            mistakes += error.mistakes
    if mistakes:
        raise UserMistakes(mistakes)
    records = [path for path in files if path.suffix == RECORDS or path.is_dir()]
    if records:
        from medtest.cli.results.alpha_sigma.records import sets_of_records

        sets += sets_of_records(records, score=score, min_step=min_step, lower_is_better=lower_is_better)
    return sets


def _check_scales(curves: SeriesSet, path: Path) -> None:
    if any(series.scales.size < 2 for series in curves.series):
        raise Mistake(
            where=path.name,
            key="min_step",
            found="only one scale after merging",
            allowed="two scales or more",
            fix="choose a smaller --min-step",
        ).as_error()


def _free_name(title: str, names: set[str]) -> str:
    """Return a portable folder name that is not in use yet."""
    name = _UNSAFE.sub("_", title).strip("._") or "series"
    base, number = name[:100], 2
    name = base
    while name.lower() in names:
        name, number = f"{base}-{number}", number + 1
    names.add(name.lower())
    return name


def write_files(
    curves: SeriesSet, measured: Sequence[Robustness], folder: Path, *, csv: bool, svg: bool
) -> tuple[Path, ...]:
    """Write ``tab_rob.tex``, ``fig_rob.pdf`` and the other requested files.

    Raises:
        UserMistakes: A file of that name exists and was not written by medtest.
        OutputProblem: A file cannot be written.
    """
    from medtest.core.files.written import WrittenFiles, check_out
    from medtest.report.alpha_sigma.figure import FILE as FIGURE
    from medtest.report.alpha_sigma.figure import draw_figure
    from medtest.report.alpha_sigma.latex import FILE as TABLE
    from medtest.report.alpha_sigma.latex import latex_table
    from medtest.runner.folder import output_problems

    contents: dict[str, bytes] = {
        TABLE: latex_table(measured).encode(),
        f"{FIGURE}.pdf": draw_figure(curves, measured),
    }
    if svg:
        contents[f"{FIGURE}.svg"] = draw_figure(curves, measured, form="svg")
    if csv:
        contents |= _csv(curves, measured)
    paths = [folder / name for name in contents]
    check_out(paths, "--out")
    with output_problems(paths[0]):
        return tuple(WrittenFiles(folder).write(contents))


def _csv(curves: SeriesSet, measured: Sequence[Robustness]) -> dict[str, bytes]:
    from medtest.results.series.paired import paired_table
    from medtest.results.series.robustness import robustness_table

    tables = {
        "alpha_sigma.csv": robustness_table(curves),
        "agreement.csv": agreement(measured, lower_is_better=curves.lower_is_better),
        "paired.csv": paired_table(curves),
    }
    return {
        name: table.to_csv(index=False, lineterminator="\n").encode()
        for name, table in tables.items()
        if not table.empty
    }


# --- the terminal -------------------------------------------------------------------------------------------------


def _show(curves: SeriesSet, measured: Sequence[Robustness], written: Sequence[Path], console: Console) -> None:
    console.print(Text(f"{curves.title}: {curves.quality} over {curves.scale}", style="bold"))
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("algorithm", no_wrap=True)
    uncertain = any(robust.intervals for robust in measured)
    last = "α, 95 %" if uncertain else "p (α)"
    for name in ("α", "σ", "mean", "area", "falls", "worst loss", last):
        table.add_column(name, justify="right", no_wrap=True)
    for robust in ranked(measured):
        low, high = robust.intervals.get("alpha", (0.0, 0.0))
        end = f"{low:z.3g} to {high:z.3g}" if robust.intervals else "" if robust.p is None else f"{robust.p:.2g}"
        numbers = (robust.mean_quality, robust.area, robust.sum_of_falls, robust.worst_loss)
        cells = [f"{robust.alpha:z.3f}", robust.sigma_label, *(f"{value:z.4g}" for value in numbers), end]
        table.add_row(Text(robust.name), *(Text(cell) for cell in cells))
    console.print(table)
    for note in _notes(curves, measured):
        console.print(Text(note), soft_wrap=True)
    console.print(Text("wrote " + ", ".join(str(path) for path in written)), soft_wrap=True)


def _notes(curves: SeriesSet, measured: Sequence[Robustness]) -> list[str]:
    notes = list(curves.notes)
    rising = [robust.name for robust in measured if robust.note]
    if rising:
        note = next(robust.note for robust in measured if robust.note)
        notes.append(f"{', '.join(rising)}: {note}, so α is not above 0")
    if any(irregular(series.scales) for series in curves.series) and not any(
        series.clustered for series in curves.series
    ):
        merging = "" if any("nearer than" in note for note in notes) else "--min-step merges them; "
        notes.append(
            f"the scales are irregular: between close scales α is mostly noise ({merging}p is the probability of an α "
            "as large by chance)"
        )
    return notes


def _track(curves: SeriesSet, measured: Sequence[Robustness], written: Sequence[Path], console: Console) -> None:
    from medtest.core.files.paths import home
    from medtest.report.tracking import Child, Tracker

    metrics = {
        f"{name}/{_NOT_IN_METRICS.sub('_', robust.name)}": getattr(robust, name)
        for robust in measured
        for name in ("alpha", "sigma", "mean_quality", "area", "sum_of_falls", "worst_loss")
    }
    tracker = Tracker(home())
    parents = tracker.parent(EXPERIMENT, curves.title, {"quality": curves.quality, "scale": curves.scale})
    child = Child(name=curves.title, metrics=metrics, artifacts=[(path, "") for path in written])
    run_id = tracker.child(EXPERIMENT, parents, child)
    tracker.close(parents)
    console.print(Text(f"MLflow run {run_id} in experiment {EXPERIMENT}"))
