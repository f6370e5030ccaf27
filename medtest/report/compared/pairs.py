"""Two finished runs compared, as data: common cases, paired differences by relation and by cell, changed cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medtest.core.errors import Mistake
from medtest.report.compared.unlike import differences
from medtest.report.pages.material import Material, read_run
from medtest.results.gating.conditions import (
    FAILED,
    NOT_SHOWN,
    PASSED,
    Condition,
    Margins,
    Verdict,
    paired_conditions,
    verdict_of,
    what_helps,
)
from medtest.results.rates.changed import changed_table
from medtest.results.rates.differences import cell_table, difference_table
from medtest.results.records.common_cases import Common, common_cases
from medtest.results.records.wanted import Wanted
from medtest.results.tables import make_tables

if TYPE_CHECKING:
    import pandas as pd
from medtest.runner.folder import check_format


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedPair:
    """A run beside the one that it is compared with.

    Attributes:
        base: The run that is compared with.
        other: The run.
        names: What both are called in tables, the base first; unlike in any case.
        common: Their common cases, the base first.
        relations: :data:`medtest.results.rates.differences.COLUMNS`; ``first`` is ``other``, so that above 0 is worse.
        cells: The same for every cell.
        changed: :data:`medtest.results.rates.changed.COLUMNS`; ``first`` is ``base``.
        unlike: What differs between the runs.
        conditions: Under which the run is no worse than the base.
        margins: By how much it may be worse.
    """

    base: Material
    other: Material
    names: tuple[str, str]
    common: Common
    relations: pd.DataFrame
    cells: pd.DataFrame
    changed: pd.DataFrame
    unlike: Sequence[tuple[str, str, str]]
    conditions: tuple[Condition, ...]
    margins: Margins

    @property
    def verdict(self) -> Verdict:
        """Whether the run is no worse: ``passed``, ``failed`` or ``not shown``."""
        return verdict_of(self.conditions)

    @property
    def verdict_words(self) -> str:
        """The verdict in sentences, with the conditions that are not met."""
        base, other = self.names
        own = "" if self.margins.source == self.margins.percent else f", {self.margins.source:g} of the source score"
        margin = f"margin {self.margins.percent:g} points{own}"
        failed, unknown = (
            ", ".join(one.name for one in self.conditions if one.verdict == verdict) for verdict in (FAILED, NOT_SHOWN)
        )
        if self.verdict == PASSED:
            return f"{other} is no worse than {base}: every condition passed ({margin})."
        helps = f" {words}." if (words := what_helps(self.conditions)) else ""
        if not failed:
            return f"That {other} is no worse than {base} ({margin}) is not shown by: {unknown}.{helps}"
        rest = f" Not shown: {unknown}." if unknown else ""
        return f"{other} is worse than {base} by: {failed} ({margin}).{rest}{helps}"


def read_material(folder: Path) -> Material:
    """Return a finished run as pages show it; nothing is written.

    Raises:
        OutputProblem: The folder holds no readable records, no ``suite.yaml``, or results of another format.
    """
    check_format(folder)
    run = read_run(folder)
    wanted = Wanted.from_folder(folder, str(run.get("system_id") or ""))
    tables = make_tables(folder, wanted)
    return Material(folder=folder, wanted=wanted, tables=tables, run=run, command=str(run.get("command", "")))


def compare_pair(
    base: Material, other: Material, names: tuple[str, str], margins: Margins | None = None
) -> ComparedPair:
    """Compare a run with another under the other's primary criterion.

    Args:
        base: The run that is compared with.
        other: The run.
        names: What they are called.
        margins: By how much ``other`` may be worse; None for the default of a gate.

    Raises:
        UserMistakes: They share no case, or none that either of them judged.
    """
    common = common_cases([base.records(), other.records()])
    first, second = common.records
    wanted, sides = other.wanted, {names[1]: second, names[0]: first}
    order = list(wanted.relations)
    margins = margins or Margins()
    conditions = paired_conditions(second, first, wanted.primary, margins)
    if not conditions:  # cases that both skipped are shared and say nothing
        raise no_shared_case(*names, common).as_error()
    return ComparedPair(
        base=base,
        other=other,
        names=names,
        common=common,
        relations=difference_table(sides, wanted.primary, order, wanted.task),
        cells=cell_table(sides, wanted.primary, order),
        changed=changed_table(first, second, wanted.primary),
        unlike=differences(base.folder, other.folder),
        conditions=conditions,
        margins=margins,
    )


def no_shared_case(first: str, second: str, common: Common, *, key: str = "runs") -> Mistake:
    """Return the mistake of two runs without a common case."""
    one, other = common.finished
    words = f"{first} finished {one:,} cases and {second} {other:,}, no judged one of them the same"
    if common.unlike:
        words += f"; {common.unlike:,} have the same address and other images or questions"
    return Mistake(
        where="command line",
        key=key,
        found=words,
        allowed="runs of the same seeds under the same relations, preparation and seed: only such are compared",
        fix="run both under one suite: medtest run suite=SUITE model=[A,B]",
    )


def names_of(materials: Sequence[Material]) -> list[str]:
    """Return what runs are called: their system, with version or digest behind it where several have the same."""
    plain = [one.system for one in materials]
    if len(set(plain)) == len(plain):
        return plain
    versions = [one.wanted.version for one in materials]
    for behind in (versions, [one.folder.name[:8] for one in materials]):
        said = [f"{name} ({more})" for name, more in zip(plain, behind, strict=True)]
        if len(set(said)) == len(said):
            return said
    return [f"{name} ({number})" for number, name in enumerate(plain, start=1)]
