"""Recorded answers of systems to one case, read from ``outputs/`` without calling a system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from medtest.core.cases import SOURCE, Address
from medtest.core.errors import OutputProblem
from medtest.core.records import KEY_COLUMNS
from medtest.core.tasks.base import Task
from medtest.results.records.records_io import column_names, read_table

OUTPUTS = "outputs"


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One answer of one system.

    Attributes:
        system: Name of the system in its records.
        digest: Digest of the run.
        item: The question.
        verdict: The verdict.
        words: Question, answer and expected answer, as headings and texts.
    """

    system: str
    digest: str
    item: str
    verdict: str
    words: tuple[tuple[str, str], ...]


def recorded(
    home: Path, suite: str, task: Task, address: Address, shown_id: str, items: Sequence[str]
) -> list[Recorded]:
    """Return the answers of systems to the questions of a case, from the newest run of each.

    Args:
        home: Folder that contains ``outputs/``.
        suite: Name of the suite.
        task: Task of the suite, which formats records as text.
        address: The case; its item is ignored.
        shown_id: Id of the seed in records.
        items: The questions.
    """
    answers: list[Recorded] = []
    drawing, state = task.drawing, task.drawing.state_column
    for folder in _newest(home / OUTPUTS / suite):
        try:
            if not {*drawing.word_columns, *KEY_COLUMNS} <= set(column_names(folder)):
                continue
            table = read_table(folder, [*KEY_COLUMNS, "verdict", *drawing.word_columns])
        except OutputProblem:
            continue
        seed_rows = table.filter(
            pc.and_(pc.equal(table["dataset"], address.dataset), pc.equal(table["seed_id"], shown_id))
        ).to_pylist()
        for item in items:
            rows = [row for row in seed_rows if row["item"] == item]
            case = next((row for row in rows if _is(row, address)), None)
            if case is not None and _answered(case, state):
                source = next((row for row in rows if row["relation"] == SOURCE and _answered(row, state)), None)
                beside = None if address.is_source else source
                words = drawing.words(case, beside)
                answers.append(
                    Recorded(
                        system=folder.parent.name,
                        digest=folder.name,
                        item=item,
                        verdict=str(case["verdict"]),
                        words=words,
                    )
                )
    return answers


def _answered(row: dict[str, object], state_column: str) -> bool:
    return not state_column or row[state_column] is not None


def _is(row: dict[str, object], address: Address) -> bool:
    return all(row[name] == getattr(address, name) for name in ("relation", "severity", "frame", "repeat"))


def _newest(folder: Path) -> list[Path]:
    """Return the folder of the newest run of every system."""
    if not folder.is_dir():
        return []
    runs = [sorted(system.glob("*/run.json"), key=lambda file: file.stat().st_mtime) for system in folder.iterdir()]
    return sorted(files[-1].parent for files in runs if files)
