"""Tables of one system's folder, a pure function of its records and the suite's display settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.deferred import pd
from medtest.core.errors import OutputProblem
from medtest.core.files.written import WrittenFiles
from medtest.core.oracles import criteria
from medtest.core.oracles.base import Oracle
from medtest.core.tasks.results import TaskResults
from medtest.results.attacks.searched import SearchTables, search_tables
from medtest.results.attacks.tables import AttackTables, attack_tables
from medtest.results.cube.axes import Axes, axes
from medtest.results.gating import gates
from medtest.results.installed import InstalledTables, installed_tables
from medtest.results.published.paper import Paper, paper_of
from medtest.results.rates import curves, efr, factors, images, pivot, slices
from medtest.results.rates.reliance import reliance_table
from medtest.results.records.counts import Counts, counts_of
from medtest.results.records.exclusion import leave_out
from medtest.results.records.judged import make_columns
from medtest.results.records.records_io import Records
from medtest.results.records.rejudging import rejudged_records
from medtest.results.records.wanted import LABEL_THRESHOLDS, Wanted
from medtest.results.series import alpha_sigma
from medtest.results.series.series_records import measured_rows
from medtest.runner.records.case_set import CaseSet
from medtest.runner.records.spreadsheets import frame_for_csv
from medtest.suite.model import Suite

if TYPE_CHECKING:
    from medtest.readers.base import Readings

FOLDER = "tables"
SHARED = ".answers"
"""Folder next to those of the suites that all runs share, :attr:`medtest.suite.model.Invocation.shared`."""
NO_QUALITY = (*images.COUNTED, "confidence")
"""Scores whose curves over severities do not measure quality."""
SEED_FACTS = ("dataset", "seed_id", "cluster", "source_sha256", "verdict")
"""Columns of ``seeds.csv`` before the scores."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Context:
    """Information on a run for its task, in addition to records (:meth:`medtest.core.tasks.roles.TaskTables.results`).

    Attributes:
        place: Axes of the follow-ups.
        phantom: True if any seeds are phantoms.
        reference: Value from :meth:`medtest.core.tasks.roles.TaskTables.reference` for the reference system.
        label_thresholds: Probability thresholds for multi-label answers in tables on attacks.
        judging: Settings of the oracle by name, JSON values.
        folder: Folder of the run, for files that records name by SHA-256; None if the records have no folder.
        shared: Folder shared by all runs, for files stored by content; None if the records have no folder.
        hashed: True if file names may identify patients and must not appear in tables.
    """

    place: Axes
    phantom: bool = False
    reference: Any = None
    label_thresholds: tuple[float, ...] = LABEL_THRESHOLDS
    judging: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    shared: Path | None = None
    hashed: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """Tables of one system.

    Attributes:
        system: Name of the system in its records.
        trained_on: Data sets on which it was trained.
        efr: Error-finding rates, with the columns of the results contract.
        pivots: Tables in the report's layout by file name.
        severity: Mean scores by severity.
        alpha_sigma: (α,σ) of each relation.
        factors: Rates by quartile of each factor.
        model: Logistic model of all factors.
        slices: Combinations of factors that fail more often.
        strata: Rates by metadata column.
        worst: Largest losses under the primary criterion, with their addresses.
        violations: Every violation under the primary criterion, with its address.
        images: One row for each image, the one with most violations first.
        warnings: Data sets whose source cases score low, one line each.
        gates: Results of the suite's gates.
        seeds: Seeds that were used, one row each.
        counts: Verdicts and seeds.
        shown: Records of the follow-ups most worth looking at, with their sources, for the report's browser.
        paper: Tables of the MedTest report, if the suite repeats its study.
        excluded: Follow-ups that people judged unfit, if the suite excludes them.
        excluded_words: Sentence on them; "" if the suite excludes none.
        reliance: Rates of controls; empty without any.
        attacks: Tables on attacks, if the suite has relations that need a system.
        searched: Tables and pictures of searches.
        own: Tables and sections of the task.
        installed: Tables of other packages.
    """

    system: str
    trained_on: tuple[str, ...]
    efr: pd.DataFrame
    pivots: Mapping[str, pd.DataFrame]
    severity: pd.DataFrame
    alpha_sigma: pd.DataFrame
    factors: pd.DataFrame
    model: pd.DataFrame
    slices: slices.FailingSlices
    strata: pd.DataFrame
    worst: pd.DataFrame
    violations: pd.DataFrame
    images: pd.DataFrame
    seeds: pd.DataFrame
    reliance: pd.DataFrame
    counts: Counts
    shown: Records | None = None
    gates: tuple[gates.GateResult, ...] = field(default=())
    warnings: tuple[str, ...] = ()
    paper: Paper | None = None
    excluded: pd.DataFrame | None = None
    excluded_words: str = ""
    attacks: AttackTables = field(default_factory=AttackTables)
    searched: SearchTables = field(default_factory=SearchTables)
    own: TaskResults = field(default_factory=TaskResults)
    installed: InstalledTables = field(default_factory=InstalledTables)

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices to read before any figure, one line each."""
        return (*self.warnings, *self.slices.notices, *self.attacks.notices, *self.installed.notices)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables by file name, without empty ones."""
        return {name: frame for name, frame in self.named().items() if name == "efr.csv" or not frame.empty}

    def named(self) -> dict[str, pd.DataFrame]:
        """Return every table by its file name."""
        return {
            "efr.csv": self.efr,
            **self.pivots,
            "severity.csv": self.severity,
            "alpha_sigma.csv": self.alpha_sigma,
            "factors.csv": self.factors,
            "factors_model.csv": self.model,
            "slices.csv": self.slices.frame,
            "strata.csv": self.strata,
            "worst.csv": self.worst,
            "violations.csv": self.violations,
            "images.csv": self.images,
            "gates.csv": gates.gates_table(self.gates),
            "gate_conditions.csv": gates.conditions_table(self.gates),
            "seeds.csv": self.seeds,
            "reliance.csv": self.reliance,
            **(self.paper.frames() if self.paper is not None else {}),
            **({"excluded.csv": self.excluded} if self.excluded is not None else {}),
            **self.attacks.named,
            **self.searched.named,
            **self.own.frames(),
            **self.installed.frames,
        }

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write ``tables/*.csv`` (the report's also as LaTeX) below a folder and remove tables that no longer exist.

        Files that medtest did not write stay as they are. Texts that a spreadsheet would take for formulas get an
        apostrophe in front.

        Raises:
            OutputProblem: A file cannot be written.
        """
        target = folder / FOLDER
        files = {
            name: frame_for_csv(frame).to_csv(index=False, lineterminator="\n").encode()
            for name, frame in self.frames().items()
        }
        files |= {name: text.encode() for name, text in (self.paper.latex() if self.paper is not None else {}).items()}
        try:
            older = [path.name for path in (*target.glob("*.csv"), *target.glob("*.tex"))]
            return tuple(WrittenFiles(target).write(files, remove=older))
        except OSError as error:
            raise OutputProblem(
                f"the tables of {folder.name} cannot be written: {error.strerror}. "
                "Its records are complete; run the same command again."
            ) from error


def make_tables(
    folder: Path,
    suite: Suite | Wanted | None = None,
    *,
    reference: Any = None,
    oracle: Oracle | None = None,
    readings: Readings | None = None,
    asked: CaseSet | None = None,
    shared: Path | None = None,
) -> Tables:
    """Build the tables of one system's folder from its records; nothing is written and no system is run.

    Args:
        folder: ``outputs/<suite>/<system>/<digest>``.
        suite: The suite, or its display settings; None reads the folder's ``suite.yaml``.
        reference: Reference of some of the task's figures (:meth:`medtest.core.tasks.roles.TaskTables.reference`).
        oracle: Oracle that re-evaluates the records; None keeps their verdicts.
        readings: Readings of another reader; requires ``oracle``.
        asked: Selection of cases; None for all in the folder.
        shared: Folder shared by all runs; None for the one next to the suites' folders.

    Raises:
        OutputProblem: The folder has no readable records, or no ``suite.yaml`` where it is needed.
    """
    if suite is None:
        settings = Wanted.from_folder(folder)
    else:
        settings = Wanted.of(suite) if isinstance(suite, Suite) else suite
    extra = ["followup_sha256"] if settings.exclude is not None else []
    records = Records.read(folder, [*make_columns(folder), *extra], asked)
    files = (folder, shared or folder.resolve().parent.parent.parent / SHARED)
    judged = records if oracle is None else rejudged_records(records, oracle, readings)
    tables = tables_of(judged, settings, reference=reference, files=files)
    if oracle is None or readings is None or not readings.marks:
        return tables
    return replace(tables, own=tables.own.read_by(records, readings))


def tables_of(
    records: Records, wanted: Wanted, *, reference: Any = None, files: tuple[Path, Path] | None = None
) -> Tables:
    """Build the tables from records in memory.

    Args:
        records: Records of one system.
        wanted: Display settings of the suite.
        reference: As in :func:`make_tables`.
        files: Folder of the run and the one shared by all runs; None if the records have no folder.
    """
    counts = counts_of(records)
    excluded, excluded_words = None, ""
    if wanted.exclude is not None:
        records, excluded, excluded_words = leave_out(records, wanted.exclude)
    primary, selected = wanted.primary, wanted.criteria
    order = list(wanted.relations)
    reliance = reliance_table(records, wanted)
    records, controls = records.parted()
    place = axes(records, order)
    cases = images.CaseLosses(records, primary)
    rates = efr.efr_table(records, selected, place)
    failing = slices.failing_slices(records, primary, place, categories=wanted.task.tables.categories, losses=cases)
    references: list[str] = [name for name in selected.against if name in wanted.references] or list(wanted.references)
    curve_scores = [s for s in dict.fromkeys((*records.scores, *records.self_scores)) if s not in NO_QUALITY]
    property_rows = [row for score in curve_scores for row in measured_rows(records, score, wanted.min_step)]
    pivots = {
        pivot.file_name(threshold, against): pivot.pivot_table(
            rates, threshold=threshold, against=against, scores=scores, trained_on=wanted.trained_on
        )
        for against in dict.fromkeys(rates["against"])
        for threshold, scores in _pages(selected)
    }
    system = str(records.followups["system"].iloc[0]) if not records.followups.empty else ""
    tables = Tables(
        system=system,
        trained_on=wanted.trained_on,
        efr=rates,
        pivots=pivots,
        severity=curves.severity_table(records, [*curve_scores, *NO_QUALITY], references, place),
        alpha_sigma=_with_measured(
            alpha_sigma.alpha_sigma_table(
                records, curve_scores, references, place, include_source=wanted.include_source
            ),
            property_rows,
        ),
        factors=factors.factor_table(records, primary, place),
        model=factors.factor_model(records, primary, place),
        slices=failing,
        strata=curves.strata_table(records, primary, order),
        worst=cases.worst(),
        violations=cases.violations(),
        images=cases.images(place),
        warnings=cases.source_warnings(),
        shown=cases.shown(first=failing.addresses).beside(controls),
        reliance=reliance,
        seeds=seeds_table(records),
        counts=counts,
        gates=gates.evaluate(wanted.gates, rates),
        paper=paper_of(
            rates, system=system, seeds=counts.seeds, relations=wanted.relations, thresholds=selected.thresholds
        ),
        excluded=excluded,
        excluded_words=excluded_words,
        attacks=attack_tables(records, place, relations=wanted.relations, task=wanted.task, primary=primary),
        searched=search_tables(records, order, primary),
        own=wanted.task.tables.results(
            records,
            Context(
                place=place,
                phantom=wanted.phantom,
                reference=reference,
                label_thresholds=wanted.label_thresholds,
                judging=wanted.judging,
                folder=None if files is None else files[0],
                shared=None if files is None else files[1],
                hashed=wanted.hashed,
            ),
        ),
    )
    return replace(tables, installed=installed_tables(wanted.kind, records, tables.named()))


def _with_measured(table: pd.DataFrame, rows: list[dict[str, object]]) -> pd.DataFrame:
    """Append the rows of measured properties."""
    if not rows:
        return table
    added = pd.DataFrame(rows, columns=list(alpha_sigma.COLUMNS))
    return added if table.empty else pd.concat([table, added], ignore_index=True)


def _pages(shown: efr.Criteria) -> list[tuple[float | None, list[str]]]:
    """Return the thresholds of pivots with their scores; rules without a threshold share one page."""
    free = [score for score in shown.scores if score in criteria.NO_THRESHOLD]
    bound = _across(tuple(score for score in shown.scores if score not in free))
    pages: list[tuple[float | None, list[str]]] = [(None, free)] if free else []
    return [*pages, *((threshold, bound) for threshold in shown.thresholds if bound)]


def _across(scores: tuple[str, ...]) -> list[str]:
    """Return the scores of a pivot: the report's two, then the others."""
    first = [score for score in ("dice", "iou") if score in scores]
    return first + [score for score in scores if score not in first]


def seeds_table(records: Records) -> pd.DataFrame:
    """Return one row for each source case, for MLflow's data set and for readers."""
    names = [*SEED_FACTS, *records.scores]
    frame = records.sources
    table = frame[[name for name in names if name in frame.columns]].copy()
    for name in table.columns:
        if str(table[name].dtype) == "category":
            table[name] = table[name].astype(str)
    return table
