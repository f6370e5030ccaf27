"""All tables on attacks of one system, made together from its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from medtest.core.cases import SOURCE
from medtest.core.tasks.base import Task
from medtest.results.attacks.at_ssim import ssim_table
from medtest.results.attacks.checking.checks import Warn, checks_table, reached_settings, warner
from medtest.results.attacks.checking.found import FAILS, MISLEADING, TITLES, TOO_KIND
from medtest.results.attacks.rates import attacks_table
from medtest.results.attacks.settings import Setting, has_attacks, settings_of
from medtest.results.attacks.smallest import smallest_tables
from medtest.results.cube.axes import Axes
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion

if TYPE_CHECKING:
    import pandas as pd


def _none(relation: str, severity: str) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class AttackTables:
    """The tables on attacks of one system; without any row where its suite has none.

    Attributes:
        settings: Relations at severities, with their roles.
        named: The tables by file name.
        warn: Gives the checks that a relation fails at a severity.
    """

    settings: tuple[Setting, ...] = ()
    named: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    warn: Warn = _none

    @property
    def notices(self) -> tuple[str, ...]:
        """A line for each relation with checks that failed."""
        table = self.named.get("attack_checks.csv")
        if table is None or table.empty:
            return ()
        bad = table.loc[(table["verdict"] == FAILS).to_numpy(dtype=bool)]
        by: dict[str, dict[str, list[str]]] = {}
        for relation, severity, check in zip(bad["relation"], bad["severity"], bad["check"], strict=True):
            levels = by.setdefault(str(relation), {}).setdefault(str(check), [])
            levels += [str(severity)] if str(severity) not in levels else []
        lines = []
        for relation, checks in by.items():
            if relation == SOURCE:
                said = ", ".join(TITLES[check] for check in checks if check != MISLEADING)
                lines += [f"A check of all attacks fails: {said}. tables/attack_checks.csv says why."] if said else []
                continue
            said = "; ".join(f"{TITLES[check]} (severity {', '.join(levels)})" for check, levels in checks.items())
            kind = any(check in TOO_KIND and self.warn(relation, level) for check in checks for level in checks[check])
            after = " Its rates may be too kind." if kind else ""
            lines.append(f"{relation} fails a check of the attack itself: {said}.{after}")
        return (*((self.verdict,) if self.verdict else ()), *lines)

    @property
    def verdict(self) -> str:
        """The one sentence on a network whose gradients mislead attacks; "" of others."""
        table = self.named.get("attack_checks.csv")
        if table is None or table.empty:
            return ""
        bad = table.loc[((table["check"] == MISLEADING) & (table["verdict"] == FAILS)).to_numpy(dtype=bool)]
        if bad.empty:
            return ""
        words = str(bad["why"].iloc[0])
        return f"{words[:1].upper()}{words[1:]}."


def attack_tables(
    records: Records, place: Axes, *, relations: Mapping[str, str], task: Task, primary: Criterion
) -> AttackTables:
    """Return the tables on attacks; none of suites without a relation that needs a system.

    Args:
        records: Records of one system.
        place: Their axes.
        relations: Relation ids of the suite with the name of their part.
        task: The task of the seeds.
        primary: The suite's primary criterion.
    """
    if records.followups.empty or not has_attacks(records):
        return AttackTables()
    settings = settings_of(records, place, relations)
    graded = task.graded(records, place)
    checks = checks_table(records, place, settings, graded)
    warn = warner(checks, settings, reached_settings(settings, graded))
    medians, curves = smallest_tables(records, place, settings)
    named = {"attack_checks.csv": checks}
    if graded is not None:
        named = {"attacks.csv": attacks_table(records, place, settings, graded, warn), **named}
    named |= {
        "smallest_epsilon.csv": medians,
        "smallest_epsilon_curve.csv": curves,
        "efr_at_ssim.csv": ssim_table(records, place, settings, primary),
    }
    return AttackTables(settings=settings, named=named, warn=warn)
