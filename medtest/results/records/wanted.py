"""What tables and reports need to know of a suite; from a suite, or from the ``suite.yaml`` that a run left."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from medtest.core.errors import MedtestError, OutputProblem
from medtest.core.oracles.criteria import NO_THRESHOLD
from medtest.core.plugins import parts
from medtest.core.tasks.base import Task, task_of
from medtest.results.rates.efr import Criteria
from medtest.suite.checking.exclusion import COPY, BadListError, Exclusion, read_exclusion
from medtest.suite.model import Criterion, Gate, Suite

SUITE_FILE = "suite.yaml"
RUN_FILE = "run.json"
_BESIDE = ("oracle", "primary", "scores", "thresholds", "against", "reader")
"""Keys of the block ``oracles`` that are no settings of the oracle."""
LABEL_THRESHOLDS = (0.5, 0.7)
"""Where a probability becomes a yes, in tables on attacks: those of the paper's code (M. Xu et al., 2021)."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What of a suite its tables and report show.

    Attributes:
        suite: Name.
        version: Version.
        description: What it is for.
        seeds: Data set ids of the suite, with the name of their source.
        relations: Relation ids, in order, with the name of the part.
        systems: System ids, in order.
        primary: The criterion of the verdicts.
        scores: Scores and rules shown.
        thresholds: Thresholds shown.
        against: References shown.
        gates: Bounds.
        trained_on: Data sets the system was trained on.
        max_error_percent: Above it the run ends with exit code 3.
        images: ``samples`` or ``none``.
        hashed: Whether seed ids are hashed.
        exclude: Follow-ups that people judged unfit.
        include_source: Curves over scales begin with the source, at scale 0.
        min_step: Neighbouring scales of a measured property that are nearer are merged.
        kind: Name of the seeds' task.
        label_thresholds: Where a probability of one of several labels becomes a yes, in tables on attacks.
        judging: Settings of the oracle by name, JSON values, for tables of the task.
    """

    suite: str
    version: str
    description: str = ""
    seeds: Mapping[str, str]
    relations: Mapping[str, str]
    systems: tuple[str, ...] = ()
    primary: Criterion
    scores: tuple[str, ...]
    thresholds: tuple[float, ...]
    against: tuple[str, ...]
    gates: tuple[Gate, ...] = ()
    trained_on: tuple[str, ...] = ()
    max_error_percent: float = 1.0
    images: str = "samples"
    hashed: bool = False
    exclude: Exclusion | None = None
    include_source: bool = False
    min_step: float = 0.0
    kind: str = "mask"
    label_thresholds: tuple[float, ...] = LABEL_THRESHOLDS
    judging: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, suite: Suite, system_id: str | None = None) -> Wanted:
        """Return what is wanted of a system under a suite.

        Args:
            suite: The suite.
            system_id: The system's id in it; None where it does not matter.
        """
        trained: Sequence[str] = ()
        for plan in suite.systems:
            if plan.id == system_id:
                trained = getattr(plan.settings, "trained_on", ())
        oracle = suite.oracle
        return cls(
            suite=suite.name,
            version=suite.version,
            description=suite.description,
            seeds={plan.id: plan.info.name for plan in suite.seeds},
            relations={plan.id: plan.info.name for plan in suite.relations},
            systems=tuple(plan.id for plan in suite.systems),
            primary=oracle.primary,
            scores=oracle.scores,
            thresholds=oracle.thresholds,
            against=oracle.against,
            gates=suite.gates,
            trained_on=tuple(trained),
            max_error_percent=suite.max_error_percent,
            images=suite.privacy.images,
            hashed=suite.privacy.seed_ids == "hashed",
            exclude=suite.exclude,
            include_source=bool(getattr(oracle.part.settings, "include_source", False)),
            min_step=float(getattr(oracle.part.settings, "min_step", 0.0)),
            kind=suite.kind,
            label_thresholds=tuple(getattr(oracle.part.settings, "label_thresholds", LABEL_THRESHOLDS)),
            judging=oracle.part.settings.model_dump(mode="json"),
        )

    @classmethod
    def from_folder(cls, folder: Path, system_id: str = "") -> Wanted:
        """Return what is wanted of the system whose results lie in a folder.

        Args:
            folder: ``outputs/<suite>/<system>/<digest>``, with ``suite.yaml`` and ``run.json``, or a view in it.
            system_id: The system's id in the suite; "" for the one that ``run.json`` names.

        Raises:
            OutputProblem: ``suite.yaml`` is missing or is not what a run writes.
        """
        try:
            content = yaml.safe_load((folder / SUITE_FILE).read_text(encoding="utf-8"))
            wanted = cls._of_composed(content, _trained_on(content, folder, system_id))
            return replace(wanted, exclude=read_exclusion(folder / COPY)) if content.get("exclude") else wanted
        except BadListError as error:
            raise OutputProblem(f"{folder.name}/{COPY} {error}") from error
        except OSError as error:
            raise OutputProblem(f"{folder.name}/{SUITE_FILE} cannot be read: {error.strerror}") from error
        except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise OutputProblem(f"{folder.name}/{SUITE_FILE} is not what a run writes: {error!r}") from error

    @classmethod
    def _of_composed(cls, content: Mapping[str, Any], trained_on: tuple[str, ...]) -> Wanted:
        oracles = content["oracles"]
        return cls(
            suite=str(content["name"]),
            version=str(content["version"]),
            description=str(content.get("description", "")),
            seeds={name: str(settings["source"]) for name, settings in content["seeds"].items()},
            relations={name: str(settings["relation"]) for name, settings in content["relations"].items()},
            systems=tuple(str(name) for name in content.get("systems") or ()),
            primary=Criterion(**oracles["primary"]),
            scores=tuple(str(score) for score in oracles["scores"]),
            thresholds=tuple(float(threshold) for threshold in oracles["thresholds"]),
            against=tuple(str(against) for against in oracles["against"]),
            gates=tuple(Gate(**{**gate, "severity": str(gate["severity"])}) for gate in content.get("gates", ())),
            trained_on=trained_on,
            max_error_percent=float(content.get("max_error_percent", 1.0)),
            images=str(content.get("privacy", {}).get("images", "samples")),
            hashed=content.get("privacy", {}).get("seed_ids") == "hashed",
            include_source=bool(oracles.get("include_source", False)),
            min_step=float(oracles.get("min_step", 0.0)),
            kind=_judged_kind(oracles.get("oracle")),
            label_thresholds=tuple(float(one) for one in oracles.get("label_thresholds") or LABEL_THRESHOLDS),
            judging={name: value for name, value in oracles.items() if name not in _BESIDE},
        )

    @property
    def criteria(self) -> Criteria:
        """What the EFR table covers: what the suite shows, its primary criterion and what its gates speak of."""
        primary = self.primary
        stated: list[Criterion | Gate] = [primary, *self.gates]
        limits = {one.threshold for one in stated if one.score not in NO_THRESHOLD}
        return Criteria(
            scores=tuple(dict.fromkeys([*self.scores, primary.score, *(gate.score for gate in self.gates)])),
            thresholds=tuple(sorted({*self.thresholds, *limits})),
            against=tuple(dict.fromkeys([*self.against, primary.against, *(gate.against for gate in self.gates)])),
        )

    @property
    def references(self) -> tuple[str, ...]:
        """What curves of mean scores are against; a criterion against the input is a verdict and no curve."""
        kept = tuple(
            dict.fromkeys("truth" if name == "input" else name for name in (self.primary.against, *self.against))
        )
        return tuple(name for name in ("truth", "source") if name in kept)

    @property
    def curve_against(self) -> str:
        """What the curves of the primary criterion are against."""
        return "truth" if self.primary.against == "input" else self.primary.against

    @property
    def task(self) -> Task:
        """The task of the seeds."""
        return task_of(self.kind)

    @property
    def series(self) -> bool:
        """Whether the seeds are of a series, whose systems are compared over scales."""
        return self.task.series

    @property
    def phantom(self) -> bool:
        """Whether any of the seeds are made images."""
        return any(bool(self._source(name, "phantom")) for name in self.seeds.values())

    @property
    def needs_root(self) -> bool:
        """Whether any of the seeds come from the user's folder."""
        return any(bool(self._source(name, "needs_root")) for name in self.seeds.values())

    @staticmethod
    def _source(name: str, attribute: str) -> object:
        info = parts("seeds").get(name)
        if info is None:
            return None
        try:
            return getattr(info.load(), attribute, None)
        except MedtestError:
            return None


def _judged_kind(oracle: object) -> str:
    """Return the kind of answer that an oracle judges; a mask where it is not installed."""
    info = parts("oracles").get(str(oracle))
    try:
        return "mask" if info is None else str(info.load().task)
    except MedtestError:
        return "mask"


def _trained_on(content: Mapping[str, Any], folder: Path, system_id: str) -> tuple[str, ...]:
    """Return ``trained_on`` of the system of a folder, which its ``run.json`` names by its id in the suite."""
    systems: Mapping[str, Any] = content.get("systems") or {}
    try:
        named = system_id or json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))["system_id"]
    except (OSError, ValueError, KeyError, TypeError):
        named = next(iter(systems)) if len(systems) == 1 else None
    settings = systems.get(named) or {}
    return tuple(str(name) for name in settings.get("trained_on", ()))
