"""Tables on attacks of one system, built from its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from medtest.core.cases import SOURCE
from medtest.core.deferred import pd
from medtest.core.tasks.base import Task
from medtest.results.attacks.at_ssim import has_targets, ssim_table
from medtest.results.attacks.checking.checks import Warn, checks_table, reached_settings, warner
from medtest.results.attacks.checking.found import FAILS, MISLEADING, TITLES, TOO_KIND
from medtest.results.attacks.rates import attacks_table
from medtest.results.attacks.settings import has_attacks, settings_of
from medtest.results.attacks.smallest import smallest_tables
from medtest.results.cube.axes import Axes
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion


def _none(relation: str, severity: str) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class AttackTables:
    """Tables on attacks of one system; empty if its suite has no attacks.

    Attributes:
        named: Tables by file name.
        warn: Function that gives the checks that a relation fails at a severity.
    """

    named: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    warn: Warn = _none

    @property
    def notices(self) -> tuple[str, ...]:
        """One line for each relation with failed checks."""
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
                titles = ", ".join(TITLES[check] for check in checks if check != MISLEADING)
                lines += (
                    [f"A check of all attacks fails: {titles}. See tables/attack_checks.csv for the reason."]
                    if titles
                    else []
                )
                continue
            titles = "; ".join(f"{TITLES[check]} (severity {', '.join(levels)})" for check, levels in checks.items())
            kind = any(check in TOO_KIND and self.warn(relation, level) for check in checks for level in checks[check])
            suffix = " Its rates may be too optimistic." if kind else ""
            lines.append(f"{relation} fails a check of the attack: {titles}.{suffix}")
        return (*((self.verdict,) if self.verdict else ()), *lines)

    @property
    def verdict(self) -> str:
        """Sentence on gradients that mislead attacks; "" if they do not."""
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
    """Return the tables on attacks; only the ranking at equal similarity if no relation needs a system.

    Args:
        records: Records of one system.
        place: Axes of the records.
        relations: Relation ids of the suite, each with the name of its part.
        task: Task of the seeds.
        primary: Primary criterion of the suite.
    """
    if records.followups.empty:
        return AttackTables()
    settings = settings_of(records, place, relations)
    if not has_attacks(records):
        named = {"efr_at_ssim.csv": ssim_table(records, place, settings, primary)} if has_targets(settings) else {}
        return AttackTables(named=named)
    graded = task.scoring.graded(records, place)
    checks = checks_table(records, place, settings, graded)
    warn = warner(checks, settings, reached_settings(settings, graded))
    medians, curves = smallest_tables(records, place, settings)
    tables = {"attack_checks.csv": checks}
    if graded is not None:
        tables = {"attacks.csv": attacks_table(records, place, settings, graded, warn), **tables}
    tables |= {
        "smallest_epsilon.csv": medians,
        "smallest_epsilon_curve.csv": curves,
        "efr_at_ssim.csv": ssim_table(records, place, settings, primary),
    }
    return AttackTables(named=tables, warn=warn)
