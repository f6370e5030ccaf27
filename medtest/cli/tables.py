"""``medtest tables``: scores, tables and report again from records, without inference."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from medtest.errors import ExitCode, Mistake, UserMistakes
from medtest.report.console import efr_view, gates_view
from medtest.report.finish import VIEWS, remake
from medtest.results.records_io import RECORDS, SHARDS
from medtest.results.wanted import RUN_FILE


def remake_tables(folder: Path, *, console: Console, reference: Path | None = None) -> ExitCode:
    """Make the tables and reports of every run's folder at or below ``folder`` anew, and print them.

    Args:
        folder: A run's folder or one above some.
        console: Where they are printed.
        reference: Folder of one run, of the system that classifiers' flips are relative to; None for each run's own.

    Returns:
        ``GATE_NOT_HELD`` when a gate of any run is not held, else ``OK``.

    Raises:
        UserMistakes: There is no run's folder, or ``reference`` is not that of one run.
        OutputProblem: A folder cannot be written.
    """
    folders = _runs(folder)
    if not folders:
        raise UserMistakes(
            [
                Mistake(
                    where="command line",
                    key="FOLDER",
                    found=str(folder),
                    allowed=f"a folder with {RUN_FILE} and records, or one above such folders",
                    fix="medtest tables outputs/polyp_seg",
                )
            ]
        )
    beside = None if reference is None else _one_run(reference)
    materials = []
    for run in folders:
        materials.append(remake(run, reference=beside))
        console.print(f"{run}/report.html", markup=False, soft_wrap=True)
    for shown in (efr_view(materials), gates_view(materials)):
        if shown is not None:
            console.print(shown)
    held = all(result.held for material in materials for result in material.tables.gates)
    return ExitCode.OK if held else ExitCode.GATE_NOT_HELD


def _one_run(reference: Path) -> Path:
    runs = _runs(reference)
    if len(runs) == 1:
        return runs[0]
    allowed = "the folder of one run" + (f", as {runs[0]}" if runs else f", with {RUN_FILE} and records")
    raise UserMistakes(
        [Mistake(where="command line", key="--reference", found=str(reference), allowed=allowed)],
    )


def _runs(folder: Path) -> list[Path]:
    """Return run folders; views, MLflow's copies and folders moved aside by ``fresh=true`` are left out."""
    found = [path.parent for path in folder.rglob(RUN_FILE)] if folder.is_dir() else []
    return sorted(
        path
        for path in found
        if not {VIEWS, "mlruns"} & set(path.relative_to(folder).parts)
        and ".old-" not in path.name
        and ((path / RECORDS).is_file() or any((path / SHARDS).glob("shard-*.parquet")))
    )
