"""A composed and checked suite, and what this invocation is to do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from medtest.core.cases import Address, FollowUp, Json, PreparedSeed
from medtest.core.oracles.base import Oracle
from medtest.core.oracles.criteria import components
from medtest.core.plugins import PartInfo, parts
from medtest.core.tasks.base import Task, task_of
from medtest.readers.base import BatchReader
from medtest.relations.base import CraftedRelation, Relation
from medtest.seeds.base import SeedSource
from medtest.suite.checking.exclusion import Exclusion
from medtest.suite.sharding import Shard
from medtest.systems.answering.asking import BudgetLimits
from medtest.systems.base import System

Against = Literal["truth", "source", "input"]
Stored = Literal["compact", "maps", "none"]
"""What runs keep of answers, so that oracles can judge them again."""
MAPS: Stored = "maps"
EACH = "each"
"""``crafted_on`` of a relation whose follow-ups are made on every system under test, for itself."""


@dataclass(frozen=True, kw_only=True)
class PartPlan:
    """A part as a suite uses it.

    Attributes:
        id: Its name in this suite.
        info: The plug-in.
        settings: Validated settings: defaults from YAML, the suite's, the command line's, in that order.
        shown: Of a system: its name in records where that is not its own; in no digest.
    """

    id: str
    info: PartInfo
    settings: Any
    shown: str = ""


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """When a case counts as a violation.

    Attributes:
        score: Score column, or a rule over several (``both``, ``either``).
        threshold: t of the report's equation 6, in [0, 1).
        against: ``truth`` (the expected answer), ``source`` (the system's own answer to the source) or, where answers
            are images, ``input`` (what the system was given: is its answer worse than that?).
    """

    score: str = "dice"
    threshold: float = 0.25
    against: Against = "truth"


MOST_SOURCE_FAILED = 10.0
"""Percent of cases that may lack a source to compare with, where a gate says nothing of it."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A bound that the run must hold, else exit code 1.

    Attributes:
        max_source_failed_percent: At most this share of the cases that could be judged may have no source to compare
            with; None where that is not bounded, as against the source's own answer.
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
    """A bound on how much worse a run may be than a finished one, on the cases that both have; typed, never a suite's.

    Attributes:
        no_worse_than: The finished run: a folder, ``suite/system``, or the id of an MLflow run of this machine.
        margin_percent: The upper end of the 95 % interval of the paired difference must lie below it, in points: of
            violations, failed sources, errors and skipped cases.
        source_margin_percent: The same of the fall of the source score; None for ``margin_percent``.
    """

    max_percent: float = 100.0
    max_source_failed_percent: float | None = None
    no_worse_than: str
    margin_percent: float = 2.0
    source_margin_percent: float | None = None


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """What of the seeds may be shown. A suite can only tighten what conf/ says."""

    seed_ids: Literal["plain", "hashed"] = "plain"
    images: Literal["samples", "none"] = "samples"
    prompts: Literal["plain", "none"] = "plain"

    def stated(self) -> dict[str, str]:
        """Return what a composed suite says of it; ``prompts`` where it is no default, so that older suites stay."""
        prompts = {} if self.prompts == "plain" else {"prompts": self.prompts}
        return {"seed_ids": self.seed_ids, "images": self.images, **prompts}


@dataclass(frozen=True, kw_only=True)
class Prepare:
    """How images are prepared.

    Attributes:
        size: Side of the square in pixels, or None for the native size.
        resize: Length that the shorter side gets before the square is cut out of the middle; None stretches the image.
    """

    size: int | None = 512
    resize: int | None = None

    def covers(self) -> dict[str, int | None]:
        """Return what digests cover; what a suite does not state is left out, so that older digests stay."""
        return {"size": self.size, **({} if self.resize is None else {"resize": self.resize})}


@dataclass(frozen=True, kw_only=True)
class OraclePlan:
    """The oracle, its primary criterion, what tables show beside it, and who reads the answers for it."""

    part: PartPlan
    primary: Criterion
    scores: tuple[str, ...]
    thresholds: tuple[float, ...]
    against: tuple[Against, ...]
    reader: PartPlan | None = None


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What is tested. Everything here has been checked; parts build without the user's mistakes being possible."""

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
    """What is kept of answers; nothing of it changes a case."""
    held: tuple[str, ...] = ()
    """Scores that are recorded beside those that the suite names: records hold them, or the command line names them."""
    may_alter: tuple[str, ...] = ()
    """Relations that may alter the diagnosis of a suite of labels."""
    composed: Mapping[str, Any] = field(default_factory=dict)
    """The composed YAML as plain data, for ``suite.yaml``; never holds a path or a key."""
    crafters: Mapping[str, PartPlan] = field(default_factory=dict)
    """By id of each relation that is crafted on one named system, that system."""

    def build_seeds(self, data: Path | None) -> tuple[SeedSource, ...]:
        """Make the seed sources; ``data`` is the user's root."""
        return tuple(
            p.info.load()(dataset=p.id, settings=p.settings, root=data, suite_seed=self.seed) for p in self.seeds
        )

    def build_relations(self) -> dict[str, Relation]:
        """Make the relations by id, in the suite's order."""
        return {p.id: p.info.load()(p.settings) for p in self.relations}

    def build_systems(self) -> dict[str, System]:
        """Make the systems by id, in the suite's order, without loading them."""
        return {plan.id: self._system(plan) for plan in self.systems}

    def build_crafters(self) -> dict[str, System]:
        """Make the systems on which relations are crafted that name one, by the relation's id, without loading them."""
        made = {id(plan): self._system(plan) for plan in self.crafters.values()}
        return {name: made[id(plan)] for name, plan in self.crafters.items()}

    def _system(self, plan: PartPlan) -> System:
        system: System = plan.info.load()(plan.id, plan.settings)
        system.kind, system.shown = self.kind, plan.shown
        system.squared = self.prepare.size is not None and not self.task.series
        return system

    @property
    def crafts(self) -> bool:
        """Whether any of its relations needs a system; records then say how each follow-up was crafted."""
        return any(issubclass(plan.info.load(), CraftedRelation) for plan in self.relations)

    @property
    def kind(self) -> str:
        """Name of the task that the seeds are for."""
        return str(self.seeds[0].info.load().task)

    @property
    def task(self) -> Task:
        """The task that the seeds are for."""
        return task_of(self.kind)

    def build_reader(self) -> BatchReader[Any, Any] | None:
        """Make the reader whose facts the oracle judges by, None for an oracle that judges answers as they are."""
        plan, own = self.oracle.reader, self.oracle.part.info.load().reads
        if plan is None and own:
            info = parts("readers")[own]
            plan = PartPlan(id=own, info=info, settings=info.load().Settings(**info.defaults))
        reader: BatchReader[Any, Any] | None = None if plan is None else plan.info.load()(plan.id, plan.settings)
        return reader

    def judging(self) -> dict[str, Json]:
        """Return what scores and texts of records follow: the oracle's settings, and the reader."""
        oracle, reader = self.build_oracle(), self.build_reader()
        return {**oracle.judging(), **reader_entry(reader)}

    @property
    def stores(self) -> Stored:
        """What is kept of answers where privacy allows it."""
        return "none" if self.privacy.images == "none" else self.answers

    @property
    def named_scores(self) -> tuple[str, ...]:
        """Score columns that the suite's criteria, gates and tables look at."""
        stated = [self.oracle.primary.score, *self.oracle.scores, *(gate.score for gate in self.gates)]
        return tuple(dict.fromkeys(name for score in stated for name in components(score)))

    @property
    def needs_maps(self) -> bool:
        """Whether any score that is recorded needs the maps of answers."""
        oracle = self.build_oracle()
        return any(oracle.needs.get(name) == MAPS for name in oracle.recorded)

    def build_oracle(self) -> Oracle:
        """Make the oracle."""
        oracle: Oracle = self.oracle.part.info.load()(self.oracle.part.settings, primary=self.oracle.primary)
        oracle.relations = {plan.id: plan.info.name for plan in self.relations}
        oracle.effects = {plan.id: plan.info.load().effects for plan in self.relations}
        asked = {*self.named_scores, *self.held}
        oracle.recorded = tuple(
            name for name in oracle.scores if self.answers == MAPS or name in asked or oracle.needs.get(name) != MAPS
        )
        return oracle


def reader_entry(reader: BatchReader[Any, Any] | None) -> dict[str, Json]:
    """Return what digests cover of a suite's reader: nothing of one that the oracle's ``revision`` stands for."""
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
    """Where follow-ups may be taken from instead of being made; workers get it by pickle."""

    def find(self, seed: PreparedSeed, address: Address) -> FollowUp | str | None:
        """Return the follow-up, the reason why there is none (a SKIP), or None: it has to be made."""


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """Workers live on the nodes of a Ray cluster.

    Attributes:
        address: ``auto`` or ``HOST:PORT`` of a cluster that is there; None to start Ray on this machine.
        cpus: Processors of one worker.
        gpus: GPUs of one worker; 0.5 lets two share one.
        ahead: Seeds that a worker has at a time: one under way, the others waiting beside it.
        wheel: A wheel of medtest that nodes are given for the time of the run; None where they have it.
        cache_gb: GiB of data from a URL that a node's disk may hold for one worker.
        wait_seconds: Time without room for any worker, or without a cluster, after which the run ends.
    """

    address: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    ahead: int = 2
    wheel: Path | None = None
    cache_gb: float = 20.0
    wait_seconds: float = 300.0


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """How this call runs the suite; nothing here enters the digest of a run.

    Attributes:
        home: Folder that holds ``outputs/`` and ``mlruns/``.
        data: The user's data root, or None.
        limit: First N seeds of each data set; None for all.
        only: Part of the plan.
        shard: Which of several equal parts of the plan, into a folder of its own; None for all of it.
        device: ``cpu`` or ``cuda:N`` (``auto`` already resolved by the runner), or ``auto``.
        workers: Worker processes; None lets the runner choose.
        threads: Torch threads a worker; None lets the runner choose.
        batch_size: Images per call of a system (enters the plan, not the digest).
        batch_seconds: Time limit of one batch; a worker that exceeds it is killed and its cases are ERROR.
        fresh: Move an earlier folder aside.
        tracking_uri: MLflow store; None for the default under ``home``.
        tag_model: The version of the registry that was tested is told whether gates hold.
        alias: The registry's alias that is moved to that version once every gate holds; "" for none.
        track: False switches MLflow off.
        quiet: No progress bar.
        command: The command line that gives this run, for its report ("python run.py suite=…"), without secrets.
        sweep_command: The command line of the sweep that this run is a job of, or "".
        kept: Where follow-ups may be taken from instead of being made; records are the same either way.
        budget: What may be spent on each system that is asked over an API.
        cache: ``use``, ``refresh`` or ``off``: whether answers of earlier runs are taken.
        reference: System, or folder of its results, that classifiers' flips and errors are relative to; None for none.
        cluster: Where workers live if not on this machine; None for this machine.
        data_url: The URL from which ``data`` was fetched, or "".
        junit: ``cells`` or ``cases``: what a test case of ``junit.xml`` is; "" writes none.
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
    cluster: ClusterSettings | None = None
    data_url: str = ""
    junit: str = ""

    @property
    def shared(self) -> Path:
        """The folder that all runs share: answers and facts by content."""
        return self.home / "outputs" / ".answers"
