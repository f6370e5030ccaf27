"""Settings of a suite that tables and reports need, from a suite or from the ``suite.yaml`` of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from medtest.core.errors import MedtestError, OutputProblem
from medtest.core.files import read_object
from medtest.core.oracles.criteria import NO_THRESHOLD
from medtest.core.plugins import parts
from medtest.core.tasks.base import Task, task_of
from medtest.results.rates.efr import Criteria
from medtest.suite.checking.exclusion import COPY, BadListError, Exclusion, read_exclusion
from medtest.suite.model import Against, Criterion, Gate, Suite

SUITE_FILE = "suite.yaml"
RUN_FILE = "run.json"
_BESIDE = ("oracle", "primary", "scores", "thresholds", "against", "reader")
"""Keys of the block ``oracles`` that are not settings of the oracle."""
LABEL_THRESHOLDS = (0.5, 0.7)
"""Probability thresholds in tables on attacks: those of the paper's code (M. Xu et al., 2021)."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Settings of a suite for its tables and report.

    Attributes:
        suite: Name.
        version: Version.
        description: Purpose of the suite.
        seeds: Data set ids of the suite, each with the name of its source.
        relations: Relation ids, in order, each with the name of its part.
        systems: System ids, in order.
        primary: Criterion of the verdicts.
        scores: Scores and rules to show.
        thresholds: Thresholds to show.
        against: References to show.
        gates: Gates of the suite.
        trained_on: Data sets on which the system was trained.
        max_error_percent: Percentage of errors above which the run ends with exit code 3.
        images: ``samples`` or ``none``.
        hashed: True if seed ids are hashed.
        exclude: Follow-ups that people judged unfit.
        include_source: True if curves over scales start with the source, at scale 0.
        min_step: Distance below which neighbouring scales of a measured property are merged.
        kind: Name of the seeds' task.
        label_thresholds: Probability thresholds for multi-label answers in tables on attacks.
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
    against: tuple[Against, ...]
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
        """Return the settings for a system under a suite.

        Args:
            suite: The suite.
            system_id: Id of the system in the suite; None if irrelevant.
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
        """Return the settings for the system whose results are in a folder.

        Args:
            folder: ``outputs/<suite>/<system>/<digest>``, with ``suite.yaml`` and ``run.json``, or a view in it.
            system_id: Id of the system in the suite; "" for the one in ``run.json``.

        Raises:
            OutputProblem: ``suite.yaml`` is missing or was not written by a run.
        """
        try:
            content = yaml.safe_load((folder / SUITE_FILE).read_text(encoding="utf-8"))
            settings = cls._of_composed(content, _trained_on(content, folder, system_id))
            return replace(settings, exclude=read_exclusion(folder / COPY)) if content.get("exclude") else settings
        except BadListError as error:
            raise OutputProblem(f"{folder.name}/{COPY} {error}") from error
        except OSError as error:
            raise OutputProblem(f"{folder.name}/{SUITE_FILE} cannot be read: {error.strerror}") from error
        except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise OutputProblem(f"{folder.name}/{SUITE_FILE} is not a suite written by a run: {error!r}") from error

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
            against=tuple(oracles["against"]),
            gates=tuple(Gate(**{**gate, "severity": str(gate["severity"])}) for gate in content.get("gates", ())),
            trained_on=trained_on,
            max_error_percent=float(content.get("max_error_percent", 1.0)),
            images=str(content.get("privacy", {}).get("images", "samples")),
            hashed=content.get("privacy", {}).get("seed_ids") == "hashed",
            include_source=bool(oracles.get("include_source", False)),
            min_step=float(oracles.get("min_step", 0.0)),
            kind=_judged_kind(oracles.get("oracle")),
            label_thresholds=tuple(
                float(threshold) for threshold in oracles.get("label_thresholds") or LABEL_THRESHOLDS
            ),
            judging={name: value for name, value in oracles.items() if name not in _BESIDE},
        )

    @property
    def criteria(self) -> Criteria:
        """Criteria of the EFR table: those shown, the primary criterion and those of the gates."""
        primary = self.primary
        sources: list[Criterion | Gate] = [primary, *self.gates]
        limits = {source.threshold for source in sources if source.score not in NO_THRESHOLD}
        return Criteria(
            scores=tuple(dict.fromkeys([*self.scores, primary.score, *(gate.score for gate in self.gates)])),
            thresholds=tuple(sorted({*self.thresholds, *limits})),
            against=tuple(dict.fromkeys([*self.against, primary.against, *(gate.against for gate in self.gates)])),
        )

    @property
    def references(self) -> tuple[str, ...]:
        """References of curves of mean scores; a criterion against the input has no curve."""
        references = tuple(
            dict.fromkeys("truth" if name == "input" else name for name in (self.primary.against, *self.against))
        )
        return tuple(name for name in ("truth", "source") if name in references)

    @property
    def curve_against(self) -> str:
        """Reference of the curves of the primary criterion."""
        return "truth" if self.primary.against == "input" else self.primary.against

    @property
    def task(self) -> Task:
        """Task of the seeds."""
        return task_of(self.kind)

    @property
    def series(self) -> bool:
        """True if the seeds form a series, whose systems are compared over scales."""
        return self.task.series

    @property
    def phantom(self) -> bool:
        """True if any seeds are phantoms."""
        return any(bool(self._source(name, "phantom")) for name in self.seeds.values())

    @property
    def needs_root(self) -> bool:
        """True if any seeds come from the user's folder."""
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
    """Return the kind of answer that an oracle judges; mask if it is not installed."""
    info = parts("oracles").get(str(oracle))
    try:
        return "mask" if info is None else str(info.load().task)
    except MedtestError:
        return "mask"


def _trained_on(content: Mapping[str, Any], folder: Path, system_id: str) -> tuple[str, ...]:
    """Return ``trained_on`` of a folder's system, which ``run.json`` identifies by its id in the suite."""
    systems: Mapping[str, Any] = content.get("systems") or {}
    only = next(iter(systems)) if len(systems) == 1 else None
    system_name: Any = system_id or read_object(folder / RUN_FILE).get("system_id", only)
    settings = systems.get(system_name) or {}
    return tuple(str(name) for name in settings.get("trained_on", ()))
