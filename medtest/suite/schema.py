"""Pydantic models of the fixed blocks of a suite and of the options of a run."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from medtest.suite.sharding import Shard

Percent = Annotated[float, Field(ge=0, le=100)]
Threshold = Annotated[float, Field(ge=0, lt=1)]
Prose = Annotated[str, Field(min_length=1, max_length=2000)]
AgainstName = Literal["truth", "source", "input"]

SUITE_KEYS: tuple[str, ...] = (
    "name",
    "version",
    "description",
    "intended_use",
    "seed",
    "seeds",
    "relations",
    "systems",
    "oracles",
    "gates",
    "privacy",
    "prepare",
    "answers",
    "exclude",
    "may_alter",
    "max_error_percent",
    "extends",
)
"""Keys of a suite, in the order of its composed form."""


class Block(BaseModel):
    """Base of the blocks: unknown keys and wrong types are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TraceBlock(Block):
    """Keys of gates and relations that tie them to a technical file; no result depends on them.

    Attributes:
        requirement: Requirement that is verified, with its id, such as ``SRS-14``.
        hazard: Hazard that is looked at, with its id.
        rationale: Reason for this relation, or for this bound.
        acceptance: When a result is acceptable, in the words of the technical file.
    """

    requirement: Prose | None = None
    hazard: Prose | None = None
    rationale: Prose | None = None
    acceptance: Prose | None = None


class UseBlock(TraceBlock):
    """Keys of a relation that stand beside the settings of its part.

    Attributes:
        search: Search between the levels: ``mildest`` looks for the mildest failing picture, ``worst`` for the worst.
    """

    search: Literal["mildest", "worst"] | None = None


class Head(Block):
    """Head of a suite: name, version, description, and settings of the whole suite.

    Attributes:
        name: Name of the suite, of its MLflow experiment and of its folder below ``outputs/``.
        version: Version of the content; raise it when results stop being comparable.
        description: Purpose of the suite, for lists and reports.
        intended_use: Intended use of the systems under test, for a technical file.
        seed: Seed of all random numbers, with the address of each case.
        answers: Form of stored answers, with which oracles can judge again: ``compact``, ``maps`` (with probability
            maps) or ``none``.
        may_alter: Relations that may alter the diagnosis of a suite of labels.
        max_error_percent: Largest percentage of cases that may end in ERROR; above it the run ends with exit code 3.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    version: str = Field(min_length=1, max_length=40)
    description: str = ""
    intended_use: str = ""
    seed: int = Field(ge=0, le=2**63 - 1)
    answers: Literal["compact", "maps", "none"] = "compact"
    may_alter: list[str] = []
    max_error_percent: Percent = 1.0


class PrimaryBlock(Block):
    """Criterion that decides the verdict of a case.

    Attributes:
        score: Score column, or a rule over several: ``both`` or ``either`` of Dice and IoU.
        threshold: Relative loss of the score above which a follow-up is a violation.
        against: Reference of the loss: ``truth`` (the expected answer), ``source`` (the system's own answer to the
            source) or ``input`` (the system's input, if answers are images).
    """

    score: str = "dice"
    threshold: Threshold = 0.25
    against: AgainstName = "truth"


class ShownBlock(Block):
    """Table columns in addition to the primary criterion.

    Attributes:
        scores: Score columns and rules in tables.
        thresholds: Thresholds in tables.
        against: References in tables.
    """

    scores: list[str] = Field(default=["dice", "iou", "both", "either"], min_length=1)
    thresholds: list[Threshold] = Field(default=[0.25, 0.5], min_length=1)
    against: list[AgainstName] = Field(default=["truth", "source"], min_length=1)


class GatedRate(TraceBlock):
    """Rate that a gate judges; missing criterion keys default to the primary criterion.

    Attributes:
        score: Score column or rule; default: that of the primary criterion.
        threshold: Threshold; default: that of the primary criterion.
        against: Reference; default: that of the primary criterion.
        dataset: Id of a data set, or ``all``.
        relation: Id of a relation, ``overall`` (all cases) or ``overall_cells`` (mean over the cells).
        severity: Severity, or ``all``.
    """

    score: str
    threshold: Threshold
    against: AgainstName
    dataset: str = "all"
    relation: str = "overall"
    severity: Literal["all", 0, 1, 2, 3, 4, 5, "0", "1", "2", "3", "4", "5"] = "all"


class GateBlock(GatedRate):
    """Bound on the percentage of violations.

    Attributes:
        max_percent: Largest percentage of violations.
        bound: Number that is compared: ``ci_high`` (upper end of the 95 % interval) or ``efr_percent`` (the rate).
        max_source_failed_percent: Largest percentage of judgeable cases without a source to compare with; default 10.
    """

    max_percent: Percent
    bound: Literal["ci_high", "efr_percent"] = "ci_high"
    max_source_failed_percent: Percent | None = None


class PairedGateBlock(GatedRate):
    """One item of ``gates`` that names a finished run."""

    no_worse_than: str = Field(min_length=1)
    margin_percent: Percent = 2.0
    source_margin_percent: Percent | None = None


class PrivacyBlock(Block):
    """Restrictions on what records and reports show; a suite can only tighten those of ``conf/``.

    Attributes:
        seed_ids: ``plain``, or ``hashed``: ids of seeds are replaced by a hash.
        images: ``samples``, or ``none``: no pictures in reports and folders.
        prompts: ``plain``, or ``none``: words of prompts are left out.
    """

    seed_ids: Literal["plain", "hashed"] = "plain"
    images: Literal["samples", "none"] = "samples"
    prompts: Literal["plain", "none"] = "plain"


class PrepareBlock(Block):
    """Preparation of images.

    Attributes:
        size: Side of the square in pixels to which images are resized, or ``native``.
        resize: Length of the shorter side in pixels before the central square is cropped; labels only.
    """

    size: Literal["native"] | Annotated[int, Field(ge=64, le=4096)] = 512
    resize: Annotated[int, Field(ge=64, le=4096)] | None = None


class ExcludeBlock(Block):
    """Exclusion of follow-ups by a human study.

    Attributes:
        study: CSV file beside the suite with the flagged follow-ups, as ``medtest study report`` writes it.
    """

    study: str = Field(min_length=1)


def _alias(name: str) -> str:
    if re.fullmatch(r"latest|v\d+", name, flags=re.IGNORECASE):
        raise ValueError("another name: MLflow reserves latest and v1, v2, …")
    return name


class TrackingBlock(Block):
    """The group ``tracking``."""

    enabled: bool = True
    uri: str | None = None
    tag_model: bool = False
    alias: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,254}$"), AfterValidator(_alias)] | None = None


class ExecutorBlock(Block):
    """The group ``executor``: location of workers; all keys but the name belong to Ray.

    Attributes:
        name: ``local``, or ``ray`` for workers on the nodes of a Ray cluster.
        address: ``auto`` or ``HOST:PORT`` of an existing cluster; None to start Ray on this machine.
        cpus: Processors of one worker.
        gpus: GPUs of one worker; 0.5 lets two share one.
        ahead: Seeds per worker at a time: the current one and those queued.
        wheel: A medtest wheel to install on the nodes during the run; None if they have medtest.
        cache_gb: GiB of data from a URL per worker on a node's disk.
        wait_seconds: Time without room for any worker, or without a cluster, after which the run ends.
    """

    name: Literal["local", "ray"] = "local"
    address: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    cpus: Annotated[float, Field(gt=0, le=1024)] = 1.0
    gpus: Annotated[float, Field(ge=0, le=64)] = 0.0
    ahead: Annotated[int, Field(ge=1, le=64)] = 2
    wheel: str | None = None
    cache_gb: Annotated[float, Field(gt=0, le=1e6)] = 20.0
    wait_seconds: Annotated[float, Field(gt=0, le=86_400)] = 300.0


class BudgetBlock(Block):
    """``budget``: spending limits of a run for calls of one system over an API."""

    max_usd: Annotated[float, Field(gt=0, le=1e9)] | None = None
    max_calls: Annotated[int, Field(ge=1)] | None = None


class JudgeBlock(BudgetBlock):
    """``judge``: a model over an API that reads answers in which the parser finds no value."""

    use: str | None = None
    base_url: str | None = None
    key_variable: str | None = None
    model_name: str | None = None


class ReportBlock(Block):
    """``report``: form of the report."""

    browser: Literal["page", "folder"] = "page"


class PowerBlock(Block):
    """``power``: assumptions of ``plan=true`` about the differences between two runs."""

    like: str | Annotated[list[str], Field(min_length=1, max_length=2)] | None = None
    margin_percent: Annotated[float, Field(gt=0, le=100)] | None = None


def _as_shard(typed: object) -> str | None:
    return None if typed is None else str(Shard.typed(str(typed)))


class RunBlock(Block):
    """The options of a run: ``conf/config.yaml`` and the command line."""

    system_name: str | None = None
    data: str | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    only: str | list[str] | None = None
    shard: Annotated[str, BeforeValidator(_as_shard)] | None = None
    plan: bool = False
    power: PowerBlock = PowerBlock()
    fresh: bool = False
    device: str = "auto"
    workers: Annotated[int, Field(ge=1, le=512)] | None = None
    threads: Annotated[int, Field(ge=1, le=512)] | None = None
    batch_size: int = Field(default=8, ge=1, le=4096)
    batch_seconds: float = Field(default=300.0, gt=0, le=86_400)
    followups: Literal["make", "store"] = "make"
    reference: str | None = None
    junit: Literal["cells", "cases"] | None = None
    report: ReportBlock = ReportBlock()
    budget: BudgetBlock = BudgetBlock()
    cache: Literal["use", "refresh", "off"] = "use"
    judge: JudgeBlock = JudgeBlock()
    track: bool = True
    quiet: bool = False
    tracking: TrackingBlock = TrackingBlock()
    executor: ExecutorBlock = ExecutorBlock()
