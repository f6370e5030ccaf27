"""Gates against a finished run: checked before a run starts, judged on its records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from medtest.core.errors import UserMistakes, typed_error
from medtest.report.compared.named import run_here
from medtest.report.pages.material import read_run
from medtest.results.gating.gates import GateResult, evaluate_paired, no_answer
from medtest.results.records.judged import compared_records
from medtest.results.records.records_io import Records
from medtest.results.records.revisions import MixedRevisions
from medtest.results.records.wanted import Wanted
from medtest.runner.folder import check_format
from medtest.suite.model import Gate, PairedGate

KEY = "gates.no_worse_than"


def check_paired(gates: Sequence[Gate], home: Path) -> None:
    """Check that the runs named by gates exist.

    Raises:
        UserMistakes: A gate names no finished run.
    """
    for gate in gates:
        if isinstance(gate, PairedGate):
            _folder(gate, home)


def judge_paired(gates: Sequence[Gate], own: Records, home: Path, folder: Path) -> tuple[GateResult, ...]:
    """Judge the gates that name finished runs.

    Args:
        gates: The suite's gates; others are ignored.
        own: Records of this run, as used for its tables.
        home: Folder that holds ``outputs/``.
        folder: Folder of this run, which is never compared with itself.

    Raises:
        OutputProblem: The records of a finished run cannot be read.
    """
    results = []
    for gate in gates:
        if isinstance(gate, PairedGate):
            try:
                other = _folder(gate, home, folder)
            except UserMistakes as error:  # Only now is it known which run this is; its own tables are kept.
                reason = "; ".join(f"{mistake.found} is not another finished run" for mistake in error.mistakes)
                results.append(no_answer(gate, reason))
                continue
            called = f"{other.parent.parent.name}/{read_run(other).get('system') or other.parent.name}"
            try:
                base = compared_records(other, Wanted.from_folder(other))
                results.append(evaluate_paired(gate, base, own, f"{called} ({other.name[:8]})"))
            except MixedRevisions as error:
                results.append(no_answer(gate, str(error)))
    return tuple(results)


def _folder(gate: PairedGate, home: Path, own: Path | None = None) -> Path:
    folder = run_here(gate.no_worse_than, home, key=KEY, but=own)
    if own is not None and folder.resolve() == own.resolve():
        raise typed_error(KEY, gate.no_worse_than, "another finished run")
    check_format(folder)
    return folder
