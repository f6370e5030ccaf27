"""Smallest differences that two runs of a planned suite could show, as text and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medtest.core.cases import UNCHANGED
from medtest.core.errors import typed_error
from medtest.report.charts.heat import percent
from medtest.report.compared.named import run_here
from medtest.report.compared.pairs import no_shared_case
from medtest.report.pages.material import read_run
from medtest.results.cube.power import PairedShares, agreeing_clusters, clusters_for_margin, smallest_shown
from medtest.results.gating.gates import describe
from medtest.results.rates.expected import ExpectedDifferences, expected_of_one, expected_of_two
from medtest.results.records.common_cases import common_cases
from medtest.results.records.judged import compared_records
from medtest.results.records.wanted import Wanted
from medtest.suite.model import Criterion, PairedGate
from medtest.suite.reading.outline import Outline, RelationOutline

KEY = "power.like"


@dataclass(frozen=True, kw_only=True)
class Detectable:
    """Detectable difference for the cases of one row.

    Attributes:
        name: Row name.
        cases: Number of cases.
        clusters: Number of clusters (patients, videos or seeds) of the cases.
        smallest: Smallest difference, in points, that 80 % of pairs of runs would show; NaN for none.
        cell: The same for one cell of the row; NaN for none, or without cells.
        seeds: Number of seeds that the margin needs.
    """

    name: str
    cases: int
    clusters: int
    smallest: float
    cell: float
    seeds: int


def expected_differences(
    like: Sequence[str], home: Path, primary: Criterion, *, key: str = KEY
) -> tuple[ExpectedDifferences, str]:
    """Return the expected differences of two runs, and a sentence on where they come from.

    Args:
        like: Names of one or two finished runs (:func:`medtest.report.compared.named.find_run`); none for the worst
            case.
        home: Folder that holds ``outputs/``.
        primary: Primary criterion.
        key: Key under which the names were typed.

    Raises:
        UserMistakes: There is no such run, none of its cases has a verdict, or two share none.
    """
    if not like:
        return ExpectedDifferences(), (
            "Worst case: every case differs between the two runs, all cases of a source (patient) in the same way. "
            f"{KEY}=SUITE/SYSTEM estimates both from a finished run, {KEY}=[A,B] from two runs."
        )
    folders = [run_here(name, home, key=key) for name in like]
    called = [
        f"{folder.parent.parent.name}/{read_run(folder).get('system') or folder.parent.name}" for folder in folders
    ]
    records = [compared_records(folder, Wanted.from_folder(folder)) for folder in folders]
    differences = (
        expected_of_one(records[0], primary) if len(records) == 1 else expected_of_two(records[0], records[1], primary)
    )
    if differences is None and len(records) == 2:
        raise no_shared_case(called[0], called[1], common_cases(records), key=key).as_error()
    if differences is None:
        raise typed_error(
            key, f"{like[0]}, which has no case judged by {primary.score}", "a run of a suite with this criterion"
        )
    return differences, _origin(differences, called)


def _origin(shares: ExpectedDifferences, called: Sequence[str]) -> str:
    behind = f"{shares.cases:,} cases of {shares.clusters:,} {'seed' if shares.clusters == 1 else 'seeds (patients)'}"
    alike = f"clustering ρ = {shares.overall.clustering:.2f}"
    share = f"{100 * shares.overall.discordant:.2g} % of cases differ"
    if shares.measured:
        rates = " and ".join(percent(rate) for rate in shares.percent)
        return f"From the differences of {' and '.join(called)} ({rates}, {behind}): {share}, {alike}."
    rate = f"{percent(shares.percent[0])} of {behind} violated"
    return f"From {called[0]} ({rate}, {alike}), against an independent run with the same rate: {share}."


def detectable(plan: Outline, expected: ExpectedDifferences, margin_percent: float) -> list[Detectable]:
    """Return a row for all relations and one for each.

    Args:
        plan: The plan.
        expected: Expected differences of two runs.
        margin_percent: Margin for the upper end of the interval of the difference, in points.
    """
    shares = [share for share in plan.relations if share.id != UNCHANGED and share.cases]
    cases = sum(share.cases for share in shares)
    if not cases or not plan.clusters:
        return []
    rows = [_row("all relations", cases, plan, expected.overall, margin_percent)] if len(shares) > 1 else []
    rows += [_row(share.id, share.cases, plan, expected.of(share.id), margin_percent, share) for share in shares]
    if len({(row.smallest, row.seeds) for row in rows}) == 1:  # Whole clusters count, however many cases they have.
        return [replace(rows[0], name="all relations, or a single one", cell=rows[-1].cell)]
    return rows


def gate_lines(plan: Outline, expected: ExpectedDifferences) -> Iterator[str]:
    """Yield, for each gate on a finished run, the number of seeds it needs.

    Args:
        plan: The plan.
        expected: Expected differences of two runs.
    """
    for gate in plan.suite.gates:
        if not isinstance(gate, PairedGate):
            continue
        shares = [share for share in plan.relations if gate.relation in (share.id, "overall") and share.id != UNCHANGED]
        cases = sum(share.cases // (1 if gate.severity == "all" else max(1, len(share.severities))) for share in shares)
        if not cases or not plan.clusters:
            continue
        paired = expected.overall if gate.relation == "overall" else expected.of(gate.relation)
        if not gate.margin_percent:
            yield f"Gate {describe(gate)}: a margin of 0 cannot pass with any number of seeds, even if the runs agree."
            continue
        # Failed sources, errors and skips are expected to agree, which needs this many clusters.
        agree = _of_clusters(agreeing_clusters(gate.margin_percent / 100), plan)
        needed = max(_seeds(gate.margin_percent, paired, cases, plan), agree)
        planned = sum(plan.datasets.values())
        enough = "enough" if needed <= planned else "too few"
        need = f"needs {needed:,} seeds to pass in 80 % of runs that are no worse"
        yield f"Gate {describe(gate)}: {need}; the plan has {planned:,}, which is {enough}."


def _row(
    name: str, cases: int, plan: Outline, paired: PairedShares, margin: float, share: RelationOutline | None = None
) -> Detectable:
    cell = math.nan
    if share is not None:
        cell = smallest_shown(replace(paired, touched=paired.discordant), share.per_cell, share.independent)
    return Detectable(
        name=name,
        cases=cases,
        clusters=plan.clusters,
        smallest=100 * smallest_shown(paired, cases, plan.clusters),
        cell=100 * cell,
        seeds=_seeds(margin, paired, cases, plan),
    )


def _seeds(margin_percent: float, paired: PairedShares, cases: int, plan: Outline) -> int:
    needed = clusters_for_margin(margin_percent / 100, paired, cases, plan.clusters)
    return _of_clusters(needed, plan)


def _of_clusters(needed: int, plan: Outline) -> int:
    """Return the number of seeds in a number of clusters."""
    return math.ceil(needed * sum(plan.datasets.values()) / plan.clusters)
