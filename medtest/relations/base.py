"""Base classes of metamorphic relations.

Sampling is separate from applying: :meth:`Relation.sample` draws JSON parameters from a generator,
:meth:`Relation.apply` turns them into pixels and draws nothing. The parameters are stored in the record and replay the
case exactly; noise is drawn from a ``noise_seed`` parameter.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from medtest.core.cases import UNCHANGED, Address, FollowUp, Params, PreparedSeed
from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import Part, PartSettings, wrong_at
from medtest.core.probes import CraftCase, Need, Probe
from medtest.core.tasks.base import PICTURE
from medtest.relations.calibration.settings import Calibration

PUBLISHED_SEVERITY = 0
"""Severity of a case whose parameters are drawn from published ranges."""
BY_SEVERITY = "severity"
"""``scale_unit`` where no number of the levels grows with the severity, so that the scale is the severity itself."""


class RelationSettings(PartSettings):
    """Settings shared by all relations; a relation adds its own ``levels`` model and options.

    Attributes:
        known_severities: Valid severities if the settings have no ``levels``; empty if any is valid.
        severities: Levels to run.
        repeats: Draws per seed and severity.
        calibrate: Targets of similarity to the source, which replace the severities.
    """

    known_severities: ClassVar[tuple[int, ...]] = ()

    severities: list[int] = Field(default=[1, 2, 3, 4, 5], min_length=1)
    repeats: int = Field(default=1, ge=1, le=1000)
    calibrate: Calibration | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_mode(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("mode") == "published" and "mode" not in cls.model_fields:
            raise wrong_at("mode", "levels, or no such key: this relation has no published ranges to draw from")
        return values

    @model_validator(mode="after")
    def _check_severities(self) -> Self:
        levels = getattr(self, "levels", None)
        levels_known = levels if isinstance(levels, Mapping) else self.known_severities
        missing = [severity for severity in self.severities if severity not in levels_known]
        if levels_known and missing:
            valid = ", ".join(str(severity) for severity in sorted(levels_known))
            raise wrong_at("severities", f"severities that have a level: {valid}; not {missing[0]}")
        return self

    @property
    def drawn(self) -> bool:
        """Whether parameters are drawn from published ranges instead of levels."""
        return False

    def counted(self) -> dict[str, Any]:
        """Return the settings that enter digests, without an unset ``calibrate``."""
        counted = super().counted()
        return counted if self.calibrate else {key: value for key, value in counted.items() if key != "calibrate"}


class Relation(Part, ABC):
    """Base class of metamorphic relations: changes of the input with a known effect on the answer.

    Args:
        settings: An instance of the class's ``Settings``.

    Attributes:
        group: lighting, motion, objects, non_objects, floor …
        takes: Inputs that it changes: ``picture`` (any picture, volume or film of any task), or names of tasks.
        scale_unit: Unit of :attr:`FollowUp.scale`, shown on axes.
        touches_frame: Whether it may change pixels on the black frame (only text).
        any_image: Whether it accepts images of every dtype, range and dimension (noise), not only 8-bit RGB.
        effects: Effects on the picture that may change correct answers: ``relight``,
            ``recolour``, ``hide``, ``move``, ``resize``, ``insert_instrument``, ``insert_text``, ``insert_finding``
            (``medtest/language/questions/expectations.yaml`` lists the answers that each may change), or a custom name,
            which may change every answer. Empty: no answer changes; None: unspecified, treated as empty.
        alters: Words of diagnoses that it would alter (``vascular``): such classes are refused in a suite of
            labels, unless the suite sets ``may_alter``.
        alters_why: Reason, in a phrase.
        nested: Whether the severities of a seed share their random draws, so that a level changes what the level
            below changed, and more: the generator is that of severity 0 at every severity.
        tells_places: Whether pixels are where the effect says; otherwise only tasks without places take it.
        beside_attacks: Whether its follow-ups are compared with attacks of the same scale (attacks, noise of their ε).
        sham: For a control of evidence: name of the relation that it is compared with.
        control: For group ``controls``: ``evidence`` if it removes what an answer rests on, ``sham`` if it removes as
            much of something else (:mod:`medtest.core.oracles.controls`); "" for every other relation.
        searched: Search of this use in a suite: ``mildest``, ``worst``, or "" for none.
    """

    Settings: ClassVar[type[RelationSettings]] = RelationSettings
    group: ClassVar[str] = "other"
    takes: ClassVar[frozenset[str]] = frozenset({PICTURE})
    scale_unit: ClassVar[str] = ""
    touches_frame: ClassVar[bool] = False
    any_image: ClassVar[bool] = False
    effects: ClassVar[frozenset[str] | None] = None
    alters: ClassVar[frozenset[str]] = frozenset()
    alters_why: ClassVar[str] = ""
    nested: ClassVar[bool] = False
    tells_places: ClassVar[bool] = True
    beside_attacks: ClassVar[bool] = False
    control: ClassVar[str] = ""
    sham: ClassVar[str] = UNCHANGED
    searched: Literal["", "mildest", "worst"] = ""

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def severities(self) -> tuple[int, ...]:
        """Return the severities to run, ascending; ``(0,)`` in published mode."""
        if self.settings.drawn:
            return (PUBLISHED_SEVERITY,)
        return tuple(sorted(self.settings.severities))

    def repeats(self) -> int:
        """Return the number of draws for each seed and severity."""
        return int(self.settings.repeats)

    def frames(self) -> int:
        """Return the number of frames of a sequence; 1 if a follow-up is a single image."""
        return 1

    def fingerprint(self) -> dict[str, Any]:
        """Return values for the run's digest besides settings and revision (such as file digests), as JSON values."""
        return {}

    def levels(self) -> Mapping[int, Any]:
        """Return the levels by severity; empty without any."""
        levels = getattr(self.settings, "levels", None)
        return levels if isinstance(levels, Mapping) else {}

    def with_levels(self, levels: Mapping[int, Any]) -> Self:
        """Return the relation with other levels."""
        changed = copy.copy(self)
        changed.settings = self.settings.model_copy(update={"levels": dict(levels)})
        return changed

    def scale_of(self, level: Any) -> float:
        """Return the scale of a level of the settings, which may be a number."""
        return float(getattr(level, "scale", level))

    def generator(self, address: Address, suite_seed: int) -> np.random.Generator:
        """Return the random generator of a case; all severities share it if the relation is :attr:`nested`."""
        return (replace(address, severity=0) if self.nested else address).generator(suite_seed)

    def named_classes(self) -> list[tuple[str, str]]:
        """Return the seeds' classes that the settings name: setting and class."""
        return []

    def unfit_for(self, task: str) -> tuple[str, str] | None:
        """Return a setting that does not fit a suite's task, with its allowed values; None if all fit."""
        return None

    @abstractmethod
    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the parameters of one follow-up, JSON values only.

        Args:
            seed: The prepared source case.
            severity: 1–5, or 0 for a draw from the published ranges.
            rng: The case's random generator.

        Raises:
            NotApplicable: The relation does not apply to the seed; the message gives the reason.
        """

    @property
    def needs(self) -> Need:
        """Requirement on a system: nothing, except for a :class:`CraftedRelation`."""
        return Need.NOTHING

    @abstractmethod
    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Make the follow-up from the parameters of :meth:`sample`, deterministically; ``seed`` is not modified."""

    def follow_up(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> FollowUp:
        """Sample and apply.

        Raises:
            NotApplicable: As in :meth:`sample`.
        """
        return self.apply(seed, self.sample(seed, severity, rng))

    def sample_frame(
        self, seed: PreparedSeed, severity: int, frame: int, rng: np.random.Generator, sequence: np.random.Generator
    ) -> dict[str, Any]:
        """Draw the parameters of one frame of a sequence; by default those of :meth:`sample`.

        Args:
            seed: The prepared source case.
            severity: As in :meth:`sample`.
            frame: From 0 to ``frames() - 1``.
            rng: The frame's random generator.
            sequence: A generator with the same start for every frame, for values shared by the sequence.

        Raises:
            NotApplicable: As in :meth:`sample`.
        """
        return self.sample(seed, severity, rng)


class CraftedSettings(RelationSettings):
    """Settings of relations that are crafted on a system.

    Attributes:
        crafted_on: ``each``: every system under test gets follow-ups crafted on itself (white box). A system's name:
            they are crafted on that one and shown to all (transfer); it need not be under test. Or such a system with
            settings, as in ``systems``: ``{use: NAME, ...}``.
    """

    crafted_on: str | dict[str, Any] = "each"


class CraftedRelation(Relation):
    """Relation that is crafted on a system: its pixels depend on a seed, parameters and a probe.

    :meth:`sample` draws the random parameters of a case (start noise, target) independently of any system. Pixels are
    made by :meth:`craft`, in batches cut from the full plan, on one thread of torch.

    Attributes:
        gathers: Whether :attr:`~medtest.core.probes.CraftCase.beside` holds the results of the suite's other attacks of
            no larger scale, and of noise, for the same image, so that the worst of all can be kept.
    """

    Settings: ClassVar[type[CraftedSettings]] = CraftedSettings
    beside_attacks: ClassVar[bool] = True
    gathers: ClassVar[bool] = False

    @property
    @abstractmethod
    def needs(self) -> Need:
        """Requirement on the probe: scores or gradients."""

    @abstractmethod
    def craft(self, cases: Sequence[CraftCase], probe: Probe) -> Sequence[FollowUp | Exception]:
        """Make follow-ups of images of one size.

        Args:
            cases: The cases to craft.
            probe: Probe of the system on which they are crafted.

        Returns:
            For each case its follow-up, with ``crafting`` set, or the exception: a
            :class:`~medtest.core.errors.NotApplicable` makes it SKIP, any other exception ERROR with its text.
        """

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Raise an error, because pixels need a system.

        Raises:
            MedtestError: Always.
        """
        raise MedtestError("its follow-ups are made on a system and cannot be made from the source image alone")

    def fingerprint_on(self, system: str) -> dict[str, Any]:
        """Return values for the run's digest of files that belong to the system on which it is crafted.

        Args:
            system: Digest of that system, :attr:`~medtest.core.probes.Probe.digest`.
        """
        return {}

    def missing_on(self, system: str, name: str, *, size: int | None = None, typed: str = "") -> Sequence[Mistake]:
        """Return requirements missing for crafting on a system (such as a trained generator); called before loading.

        Args:
            system: Digest of that system.
            name: Its name in records.
            size: Side in pixels of the prepared images; None if they keep their own size.
            typed: Command-line words for suite, system and training images, ``suite=… model=… phantoms=…``.
        """
        return ()

    def network_passes(self, severity: int) -> int:
        """Return the approximate number of queries per follow-up, for plans; 0 if unknown."""
        return 0
