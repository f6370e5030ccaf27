"""Gates that name a finished run: found before anything is run, judged when records are there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from medtest.errors import Mistake
from medtest.report.compared.named import find_run
from medtest.report.material import read_run
from medtest.results.gates import GateResult, evaluate_paired
from medtest.results.records.judged import compared_records
from medtest.results.records.records_io import Records
from medtest.results.records.wanted import Wanted
from medtest.suite.model import Gate, PairedGate

KEY = "gates.no_worse_than"


def check_paired(gates: Sequence[Gate], home: Path) -> None:
    """Complain of a run that is not there before anything is run.

    Raises:
        UserMistakes: A gate names no finished run.
    """
    for gate in gates:
        if isinstance(gate, PairedGate):
            _folder(gate, home)


def judge_paired(gates: Sequence[Gate], own: Records, home: Path) -> tuple[GateResult, ...]:
    """Judge the gates that name finished runs.

    Args:
        gates: The suite's gates; others are left out.
        own: Records of this run, as its tables take them.
        home: Folder that holds ``outputs/``.

    Raises:
        OutputProblem: The records of a finished run cannot be read.
    """
    found = []
    for gate in gates:
        if isinstance(gate, PairedGate):
            folder = _folder(gate, home)
            base = compared_records(folder, Wanted.from_folder(folder))
            called = f"{folder.parent.parent.name}/{read_run(folder).get('system') or folder.parent.name}"
            found.append(evaluate_paired(gate, base, own, f"{called} ({folder.name[:8]})"))
    return tuple(found)


def _folder(gate: PairedGate, home: Path) -> Path:
    folder = find_run(gate.no_worse_than, home, key=KEY)
    if folder is None:
        raise Mistake(
            where="command line",
            key=KEY,
            found=gate.no_worse_than,
            allowed="the id of an MLflow run whose folder lies in outputs/",
            fix="name its folder, or SUITE/SYSTEM",
        ).as_error()
    return folder
