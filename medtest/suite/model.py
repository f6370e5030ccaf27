"""Data model of a checked suite, and of a call that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from medtest.core.cases import Address, FollowUp, Json, PreparedSeed
from medtest.core.oracles.base import Oracle
from medtest.core.oracles.controls import roles_of
from medtest.core.oracles.criteria import components
from medtest.core.plugins import PartInfo, parts
from medtest.core.tasks.base import Task, task_of
from medtest.readers.base import BatchReader
from medtest.relations.base import CraftedRelation, Relation
from medtest.relations.calibration.relation import calibrated
from medtest.seeds.base import SeedSource
from medtest.suite.checking.exclusion import Exclusion
from medtest.suite.sharding import Shard
from medtest.systems.answering.asking import BudgetLimits
from medtest.systems.base import System

if TYPE_CHECKING:
    from medtest.suite.schema import ExecutorBlock

Against = Literal["truth", "source", "input"]
Stored = Literal["compact", "maps", "none"]
"""Form of stored answers, with which oracles can judge them again."""
MAPS: Stored = "maps"
EACH = "each"
"""``crafted_on`` of a relation whose follow-ups are made separately on every system under test."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Ties of a gate or relation to a technical file, texts with ids such as ``SRS-14``; no result depends on them."""

    requirement: str | None = None
    hazard: str | None = None
    rationale: str | None = None
    acceptance: str | None = None


TRACE: tuple[str, ...] = tuple(Trace.__dataclass_fields__)
"""Names of the ties."""


@dataclass(frozen=True, kw_only=True)
class PartPlan:
    """Part as used by a suite.

    Attributes:
        id: Its name in this suite.
        info: The plug-in.
        settings: Validated settings: defaults from YAML, the suite's, the command line's, in that order.
        shown: For a system: its name in records if that is not its own; not in any digest.
        trace: For a relation: its ties to a technical file; not in any digest.
        search: For a relation: ``mildest`` or ``worst`` if its follow-ups are searched, else "".
    """

    id: str
    info: PartInfo
    settings: Any
    shown: str = ""
    trace: Trace = Trace()
    search: Literal["", "mildest", "worst"] = ""


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """Criterion for violations.

    Attributes:
        score: Score column, or a rule over several (``both``, ``either``).
        threshold: t of the report's equation 6, in [0, 1).
        against: ``truth`` (the expected answer), ``source`` (the system's own answer to the source) or, if answers are
            images, ``input`` (the system's input: is its answer worse?).
    """

    score: str = "dice"
    threshold: float = 0.25
    against: Against = "truth"


MOST_SOURCE_FAILED = 10.0
"""Default limit for the percentage of cases without a source to compare with."""


@dataclass(frozen=True, kw_only=True)
class Gate(Trace):
    """Bound that the run must hold, else exit code 1.

    Attributes:
        max_source_failed_percent: Limit for the percentage of judgeable cases without a source to compare with; None if
            unbounded, as against the source's own answer.
    """

    score: str = "dice"
    threshold: float = 0.25
    against: Against = "truth"
    dataset: str = "all"
    relation: str = "overall"
    severity: str = "all"
    max_percent: float
    bound: Literal["ci_high", "efr_percent"] = "ci_high"
    max_source_failed_percent: float | None = MOST_SOURCE_FAILED


@dataclass(frozen=True, kw_only=True)
class PairedGate(Gate):
    """Bound on the loss of a run against a finished one, on their common cases; only set on the command line.

    Attributes:
        no_worse_than: The finished run: a folder, ``suite/system``, or the id of an MLflow run of this machine.
        margin_percent: Bound for the upper end of the 95 % interval of the paired difference, in points: of violations,
            failed sources, errors and skipped cases.
        source_margin_percent: The same for the decrease of the source score; None for ``margin_percent``.
    """

    max_percent: float = 100.0
    max_source_failed_percent: float | None = None
    no_worse_than: str
    margin_percent: float = 2.0
    source_margin_percent: float | None = None


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """Privacy settings of the seeds. A suite can only tighten those of conf/."""

    seed_ids: Literal["plain", "hashed"] = "plain"
    images: Literal["samples", "none"] = "samples"
    prompts: Literal["plain", "none"] = "plain"

    def stated(self) -> dict[str, str]:
        """Return the privacy block of a composed suite, without a default ``prompts``."""
        prompts = {} if self.prompts == "plain" else {"prompts": self.prompts}
        return {"seed_ids": self.seed_ids, "images": self.images, **prompts}


@dataclass(frozen=True, kw_only=True)
class Prepare:
    """Preparation of images.

    Attributes:
        size: Side of the square in pixels, or None for the native size.
        resize: Length of the shorter side before the centre square is cropped; None stretches the image.
    """

    size: int | None = 512
    resize: int | None = None

    def covers(self) -> dict[str, int | None]:
        """Return the data for digests, without an unset ``resize``."""
        return {"size": self.size, **({} if self.resize is None else {"resize": self.resize})}


@dataclass(frozen=True, kw_only=True)
class OraclePlan:
    """The oracle, its primary criterion, further table columns, and its reader."""

    part: PartPlan
    primary: Criterion
    scores: tuple[str, ...]
    thresholds: tuple[float, ...]
    against: tuple[Against, ...]
    reader: PartPlan | None = None


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Checked suite; its parts can be built without user mistakes."""

    name: str
    version: str
    description: str
    seed: int
    seeds: tuple[PartPlan, ...]
    relations: tuple[PartPlan, ...]
    systems: tuple[PartPlan, ...]
    oracle: OraclePlan
    gates: tuple[Gate, ...] = ()
    privacy: Privacy = Privacy()
    prepare: Prepare = Prepare()
    max_error_percent: float = 1.0
    exclude: Exclusion | None = None
    answers: Stored = "compact"
    """Form of stored answers; it does not change a case."""
    held: tuple[str, ...] = ()
    """Additional recorded scores: those in existing records, or named by the command line."""
    intended_use: str = ""
    """Intended use of the systems, for a technical file."""
    may_alter: tuple[str, ...] = ()
    """Relations that may alter the diagnosis of a suite of labels."""
    composed: Mapping[str, Any] = field(default_factory=dict)
    """The composed YAML as plain data, for ``suite.yaml``; never holds a path or a key."""
    crafters: Mapping[str, PartPlan] = field(default_factory=dict)
    """Crafting system of each relation that names one, by relation id."""

    def build_seeds(self, data: Path | None) -> tuple[SeedSource, ...]:
        """Build the seed sources; ``data`` is the user's root."""
        return tuple(
            p.info.load()(dataset=p.id, settings=p.settings, root=data, suite_seed=self.seed) for p in self.seeds
        )

    def build_relations(self) -> dict[str, Relation]:
        """Build the relations by id, in the suite's order."""
        relations: dict[str, Relation] = {}
        for plan in self.relations:
            relations[plan.id] = calibrated(plan.info.load()(plan.settings))
            relations[plan.id].searched = plan.search
        return relations

    def build_systems(self) -> dict[str, System]:
        """Build the systems by id, in the suite's order, without loading them."""
        return {plan.id: self._system(plan) for plan in self.systems}

    def build_crafters(self) -> dict[str, System]:
        """Build the named crafting systems, by relation id, without loading them."""
        systems = {id(plan): self._system(plan) for plan in self.crafters.values()}
        return {name: systems[id(plan)] for name, plan in self.crafters.items()}

    def _system(self, plan: PartPlan) -> System:
        system: System = plan.info.load()(plan.id, plan.settings)
        system.kind, system.shown = self.kind, plan.shown
        system.squared = self.prepare.size is not None and not self.task.series
        return system

    @property
    def crafts(self) -> bool:
        """True if any of its relations needs a system; records then describe the crafting of each follow-up."""
        return any(issubclass(plan.info.load(), CraftedRelation) for plan in self.relations)

    @property
    def controls(self) -> Mapping[str, str]:
        """Ids of its controls with their roles; records then say what each keeps of an answer."""
        return roles_of({plan.id: plan.info.name for plan in self.relations})

    @property
    def searches(self) -> bool:
        """True if any relation is searched; records then describe the queries."""
        return any(plan.search for plan in self.relations)

    @property
    def kind(self) -> str:
        """Name of the seeds' task."""
        return str(self.seeds[0].info.load().task)

    @property
    def task(self) -> Task:
        """The seeds' task."""
        return task_of(self.kind)

    def build_reader(self) -> BatchReader[Any, Any] | None:
        """Build the reader whose facts the oracle uses, None for an oracle that needs none."""
        plan, own = self.oracle.reader, self.oracle.part.info.load().reads
        if plan is None and own:
            info = parts("readers")[own]
            plan = PartPlan(id=own, info=info, settings=info.load().Settings(**info.defaults))
        reader: BatchReader[Any, Any] | None = None if plan is None else plan.info.load()(plan.id, plan.settings)
        return reader

    def judging(self) -> dict[str, Json]:
        """Return the data that determine scores and texts of records: the oracle's settings, and the reader."""
        return {**self.build_oracle().judging(), **reader_entry(self.build_reader())}

    @property
    def named_scores(self) -> tuple[str, ...]:
        """Score columns used by the suite's criteria, gates and tables."""
        stated = [self.oracle.primary.score, *self.oracle.scores, *(gate.score for gate in self.gates)]
        return tuple(dict.fromkeys(name for score in stated for name in components(score)))

    @property
    def needs_maps(self) -> bool:
        """True if any recorded score needs the maps of answers."""
        oracle = self.build_oracle()
        return any(oracle.needs.get(name) == MAPS for name in oracle.recorded)

    def build_oracle(self) -> Oracle:
        """Build the oracle."""
        oracle: Oracle = self.oracle.part.info.load()(self.oracle.part.settings, primary=self.oracle.primary)
        oracle.relations = {plan.id: plan.info.name for plan in self.relations}
        oracle.effects = {plan.id: plan.info.load().effects for plan in self.relations}
        oracle.controls = self.controls
        required = {*self.named_scores, *self.held}
        oracle.recorded = tuple(
            name for name in oracle.scores if self.answers == MAPS or name in required or oracle.needs.get(name) != MAPS
        )
        return oracle


def reader_entry(reader: BatchReader[Any, Any] | None) -> dict[str, Json]:
    """Return the covered data of a suite's reader: empty for one covered by the oracle's ``revision``."""
    return {} if reader is None or reader.of_oracle else {"reader": reader.fingerprint()}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """``only=``: the part of the plan to execute. Empty sets choose everything."""

    relations: frozenset[str] = frozenset()
    severities: frozenset[int] = frozenset()
    datasets: frozenset[str] = frozenset()
    seeds: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset()


class KeptFollowUps(Protocol):
    """Source of existing follow-ups; pickled for workers."""

    def find(self, seed: PreparedSeed, address: Address) -> FollowUp | None:
        """Return the follow-up, or None if it must be made."""


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """Settings of a call that runs the suite; none of them enters the digest of a run.

    Attributes:
        home: Folder that holds ``outputs/`` and ``mlruns/``.
        data: The user's data root, or None.
        limit: First N seeds of each data set; None for all.
        only: Part of the plan.
        shard: One of several equal parts of the plan, with a separate folder; None for the whole plan.
        device: ``cpu`` or ``cuda:N`` (``auto`` already resolved by the runner), or ``auto``.
        workers: Worker processes; None lets the runner choose.
        threads: Torch threads per worker; None lets the runner choose.
        batch_size: Images per call of a system (enters the plan, not the digest).
        batch_seconds: Time limit of one batch; a worker that exceeds it is killed and its cases are ERROR.
        fresh: Move an earlier folder aside.
        tracking_uri: MLflow store; None for the default under ``home``.
        tag_model: Tag the tested version in the registry with the result of the gates.
        alias: The registry's alias to move to that version if every gate holds; "" for none.
        track: False switches MLflow off.
        quiet: No progress bar.
        command: The command line of this run, for its report ("python run.py suite=…"), without secrets.
        sweep_command: The command line of the sweep of this run, or "".
        kept: Source of existing follow-ups; records are the same either way.
        budget: Spending limit of each system asked over an API.
        cache: ``use``, ``refresh`` or ``off``: reuse of answers of earlier runs.
        reference: Reference system for classifiers' flips and errors, or the folder of its results; None for none.
        cluster: Cluster of the workers; None for this machine.
        data_url: The URL from which ``data`` was fetched, or "".
        junit: Meaning of a test case in ``junit.xml``: ``cells`` or ``cases``; "" writes none.
        browser: Pictures of the report's browser: ``page`` (as many as fit into it) or ``folder`` (all, beside it).
    """

    home: Path
    data: Path | None = None
    limit: int | None = None
    only: Selection = Selection()
    shard: Shard | None = None
    device: str = "auto"
    workers: int | None = None
    threads: int | None = None
    batch_size: int = 8
    batch_seconds: float = 300.0
    fresh: bool = False
    tracking_uri: str | None = None
    tag_model: bool = False
    alias: str = ""
    track: bool = True
    quiet: bool = False
    command: str = ""
    sweep_command: str = ""
    kept: KeptFollowUps | None = None
    budget: BudgetLimits = BudgetLimits()
    cache: str = "use"
    reference: str | None = None
    cluster: ExecutorBlock | None = None
    data_url: str = ""
    junit: str = ""
    browser: str = "page"

    @property
    def shared(self) -> Path:
        """The folder shared by all runs: answers and facts by content."""
        return self.home / "outputs" / ".answers"
