"""Comparison of two finished runs: common cases, paired differences by relation and cell, changed cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from medtest.core.deferred import pd
from medtest.core.errors import Mistake, typed_mistake
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
from medtest.runner.folder import check_format


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedPair:
    """A run and the base run it is compared with.

    Attributes:
        base: The base run.
        other: The compared run.
        names: Distinct names of both in tables, the base first.
        common: Their common cases, the base first.
        relations: Table with :data:`medtest.results.rates.differences.COLUMNS`; ``first`` is ``other``, so a difference
            above 0 is worse.
        cells: The same columns for every cell.
        changed: Table with :data:`medtest.results.rates.changed.COLUMNS`; ``first`` is ``base``.
        unlike: Settings in which the runs differ.
        conditions: Conditions for being no worse than the base.
        margins: Allowed deterioration.
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
        """The verdict on "no worse": ``passed``, ``failed`` or ``not shown``."""
        return verdict_of(self.conditions)

    @property
    def verdict_words(self) -> str:
        """The verdict in sentences, with the conditions that are not met."""
        base, other = self.names
        own = "" if self.margins.source == self.margins.percent else f", {self.margins.source:g} of the source score"
        margin = f"margin {self.margins.percent:g} points{own}"
        failed, unknown = (
            ", ".join(condition.name for condition in self.conditions if condition.verdict == verdict)
            for verdict in (FAILED, NOT_SHOWN)
        )
        if self.verdict == PASSED:
            return f"{other} is no worse than {base}: every condition passed ({margin})."
        helps = f" {words}." if (words := what_helps(self.conditions)) else ""
        if not failed:
            return f"It is not shown that {other} is no worse than {base} ({margin}): {unknown}.{helps}"
        rest = f" Not shown: {unknown}." if unknown else ""
        return f"{other} is worse than {base} in: {failed} ({margin}).{rest}{helps}"


def read_material(folder: Path) -> Material:
    """Read a finished run as report material, without writing anything.

    Raises:
        OutputProblem: The folder holds no readable records, no ``suite.yaml``, or results of another format.
    """
    check_format(folder)
    run = read_run(folder)
    suite = Wanted.from_folder(folder, str(run.get("system_id") or ""))
    tables = make_tables(folder, suite)
    return Material(folder=folder, wanted=suite, tables=tables, run=run, command=str(run.get("command", "")))


def compare_pair(
    base: Material, other: Material, names: tuple[str, str], margins: Margins | None = None
) -> ComparedPair:
    """Compare a run with another under the other's primary criterion.

    Args:
        base: The base run.
        other: The compared run.
        names: Their names in tables.
        margins: Allowed deterioration of ``other``; None for the default of a gate.

    Raises:
        UserMistakes: They share no case, or none that either run judged.
    """
    common = common_cases([base.records(), other.records()])
    first, second = common.records
    suite, sides = other.wanted, {names[1]: second, names[0]: first}
    order = list(suite.relations)
    margins = margins or Margins()
    conditions = paired_conditions(second, first, suite.primary, margins)
    if not conditions:  # Shared cases that both runs skipped give no conditions.
        raise no_shared_case(*names, common).as_error()
    return ComparedPair(
        base=base,
        other=other,
        names=names,
        common=common,
        relations=difference_table(sides, suite.primary, order, suite.task),
        cells=cell_table(sides, suite.primary, order),
        changed=changed_table(first, second, suite.primary),
        unlike=differences(base.folder, other.folder),
        conditions=conditions,
        margins=margins,
    )


def no_shared_case(first: str, second: str, common: Common, *, key: str = "runs") -> Mistake:
    """Return the error for two runs without a common case."""
    first_count, second_count = common.finished
    words = f"{first} ({first_count:,} cases) and {second} ({second_count:,} cases), which share no judged case"
    if common.unlike:
        words += f"; {common.unlike:,} cases have the same address but different images or questions"
    return typed_mistake(
        key,
        words,
        "runs with the same source cases, relations, preparation and seed",
        "run both under one suite: medtest run suite=SUITE model=[A,B]",
    )


def names_of(materials: Sequence[Material]) -> list[str]:
    """Return distinct names of runs: the system, followed by version or digest where systems repeat."""
    plain = [material.system for material in materials]
    if len(set(plain)) == len(plain):
        return plain
    versions = [material.wanted.version for material in materials]
    for behind in (versions, [material.folder.name[:8] for material in materials]):
        names = [f"{name} ({more})" for name, more in zip(plain, behind, strict=True)]
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({number})" for number, name in enumerate(plain, start=1)]
