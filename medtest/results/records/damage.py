"""What of finished folders cannot be read any more, a message a file, before anything is written in its place."""

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
    """Return a mistake for each damaged file of a run's folder and its views: nothing shall be made of those.

    Args:
        folder: ``outputs/<suite>/<system>/<digest>``.
    """
    typed = str(read_object(folder / RUN_FILE).get("command") or "the command of this run")
    again = f"type again what was run: it makes the file anew and runs no case that is whole: {typed}"
    found = [
        Mistake(where=str(file), found=f"a file that is {why}", allowed="records as a run wrote them", fix=again)
        for file in record_files(folder)
        if (why := damage(file))
    ]
    for target in (folder, *sorted(path for path in (folder / VIEWS).glob("*") if path.is_dir())):
        found += _accounts(target, again)
    return found


def _accounts(target: Path, again: str) -> list[Mistake]:
    """Return what is wrong with the files in which a folder or a view says what it is."""
    found = []
    if (target / RUN_FILE).is_file() and not read_object(target / RUN_FILE):
        found.append(Mistake(where=str(target / RUN_FILE), found="no JSON", allowed="what a run writes", fix=again))
    for name, read in ((SUITE_FILE, Wanted.from_folder), (CASES, CaseSet.read)):
        try:
            if (target / name).is_file():
                read(target)
        except OutputProblem as error:
            words = str(error).removeprefix(f"{target.name}/{name} ")
            found.append(Mistake(where=str(target / name), found=words, allowed="what a run writes", fix=again))
    return found
