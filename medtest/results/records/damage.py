"""Detection of damaged files in finished folders, before anything is overwritten."""

from __future__ import annotations

from pathlib import Path

from medtest.core.errors import Mistake, OutputProblem
from medtest.core.files import read_object
from medtest.results.records.records_io import record_files
from medtest.results.records.wanted import RUN_FILE, SUITE_FILE, Wanted
from medtest.runner.folder import VIEWS
from medtest.runner.records.case_set import FILE as CASES
from medtest.runner.records.case_set import CaseSet
from medtest.runner.records.shard_scan import damage


def damaged(folder: Path) -> list[Mistake]:
    """Return a mistake for each damaged file of a run's folder and its views.

    Args:
        folder: ``outputs/<suite>/<system>/<digest>``.
    """
    typed = str(read_object(folder / RUN_FILE).get("command") or "the command of this run")
    advice = f"run the command again, which rewrites the file and runs only damaged cases: {typed}"
    mistakes = [
        Mistake(where=str(file), found=f"a file that is {why}", allowed="an undamaged file of records", fix=advice)
        for file in record_files(folder)
        if (why := damage(file))
    ]
    for target in (folder, *sorted(path for path in (folder / VIEWS).glob("*") if path.is_dir())):
        mistakes += _accounts(target, advice)
    return mistakes


def _accounts(target: Path, advice: str) -> list[Mistake]:
    """Return the mistakes in the metadata files of a folder or a view."""
    mistakes = []
    if (target / RUN_FILE).is_file() and not read_object(target / RUN_FILE):
        mistakes.append(
            Mistake(where=str(target / RUN_FILE), found="invalid JSON", allowed="the file written by a run", fix=advice)
        )
    for name, reader in ((SUITE_FILE, Wanted.from_folder), (CASES, CaseSet.read)):
        try:
            if (target / name).is_file():
                reader(target)
        except OutputProblem as error:
            words = str(error).removeprefix(f"{target.name}/{name} ")
            mistakes.append(Mistake(where=str(target / name), found=words, allowed="what a run writes", fix=advice))
    return mistakes
