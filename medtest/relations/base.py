"""What a metamorphic relation is.

Sampling is apart from applying: :meth:`Relation.sample` draws JSON parameters from a generator, :meth:`Relation.apply`
turns them into pixels and draws nothing. The parameters are kept in the record and replay the case exactly; noise is
drawn from a ``noise_seed`` parameter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from medtest.core.cases import FollowUp, Params, PreparedSeed
from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import Part, PartSettings, wrong_at
from medtest.core.probes import CraftCase, Need, Probe
from medtest.core.tasks.base import PICTURE

PUBLISHED_SEVERITY = 0
"""Severity of a case whose parameters are drawn from published ranges."""


class RelationSettings(PartSettings):
    """Settings every relation has; a relation adds its own ``levels`` model and options.

    Attributes:
        known_severities: Those that there are, where the settings have no ``levels``; empty where any will do.
        severities: Which of the levels to run.
        repeats: Draws per seed and severity.
    """

    # every relation had it once; now those alone whose parameters can be drawn from published ranges

    known_severities: ClassVar[tuple[int, ...]] = ()

    severities: list[int] = Field(default=[1, 2, 3, 4, 5], min_length=1)
    repeats: int = Field(default=1, ge=1, le=1000)

    @model_validator(mode="before")
    @classmethod
    def _check_ranges(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("mode") == "published" and "mode" not in cls.model_fields:
            raise wrong_at("mode", "levels, or no such key: this relation has no published ranges to draw from")
        return given

    @model_validator(mode="after")
    def _check_severities(self) -> Self:
        levels = getattr(self, "levels", None)
        known = levels if isinstance(levels, Mapping) else self.known_severities
        missing = [severity for severity in self.severities if severity not in known]
        if known and missing:
            there = ", ".join(str(severity) for severity in sorted(known))
            raise wrong_at("severities", f"severities that have a level: {there}; not {missing[0]}")
        return self

    @property
    def drawn(self) -> bool:
        """Whether parameters are drawn from published ranges and not taken from levels."""
        return False


class Relation(Part, ABC):
    """A change of the input that must not change the answer, or must change it in a known way.

    Args:
        settings: An instance of the class's ``Settings``.

    Attributes:
        group: lighting, motion, objects, non_objects, floor …
        takes: What it changes: ``picture`` (any picture, volume or film, whatever the task), or names of tasks.
        scale_unit: Unit of :attr:`FollowUp.scale`, for axes of figures.
        touches_frame: True when it may change pixels on the black frame (text alone).
        any_image: True when it takes images of every dtype, range and dimension (noise), not 8-bit RGB alone.
        effects: What it does to the picture, where that bears on what can rightly be said of it: ``relight``,
            ``recolour``, ``hide``, ``move``, ``resize``, ``insert_instrument``, ``insert_text``, ``insert_finding``
            (``medtest/language/questions/expectations.yaml`` says what each may do to an answer), or a name of its own,
            which may change every answer. Empty: no answer may become another; None: it does not say, and is taken so.
        alters: Words of diagnoses that it would alter (``vascular``): classes named so are refused in a suite of
            labels, unless the suite says ``may_alter``.
        alters_why: Why, in a phrase.
        beside_attacks: Whether its follow-ups stand beside attacks of the same scale: attacks, and noise of their ε.
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
    beside_attacks: ClassVar[bool] = False

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def severities(self) -> tuple[int, ...]:
        """Return the severities to run, ascending; ``(0,)`` in published mode."""
        if self.settings.drawn:
            return (PUBLISHED_SEVERITY,)
        return tuple(sorted(self.settings.severities))

    def repeats(self) -> int:
        """Return how many draws there are for each seed and severity."""
        return int(self.settings.repeats)

    def frames(self) -> int:
        """Return how many frames a sequence has; 1 where a follow-up is a single image."""
        return 1

    def fingerprint(self) -> dict[str, Any]:
        """Return what the run's digest must cover beside settings and revision (digests of files), JSON values."""
        return {}

    @abstractmethod
    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the parameters of one follow-up, JSON values only.

        Args:
            seed: The prepared source case.
            severity: 1–5, or 0 for a draw from the published ranges.
            rng: The case's own generator.

        Raises:
            NotApplicable: The seed has no room for it, with the reason.
        """

    @property
    def needs(self) -> Need:
        """What it needs of a system: nothing, unless it is a :class:`CraftedRelation`."""
        return Need.NOTHING

    @abstractmethod
    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Make the follow-up from what :meth:`sample` gave, deterministically; ``seed`` stays untouched."""

    def follow_up(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> FollowUp:
        """Sample and apply.

        Raises:
            NotApplicable: As :meth:`sample`.
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
            rng: The frame's own generator.
            sequence: A generator that starts alike for every frame of the sequence, for what its frames share.

        Raises:
            NotApplicable: As :meth:`sample`.
        """
        return self.sample(seed, severity, rng)


class CraftedSettings(RelationSettings):
    """Settings of relations that need a system.

    Attributes:
        crafted_on: ``each``: every system under test gets follow-ups made on itself (white box). A system's name: they
            are made on that one and shown to all (transfer); it need not be among those tested. Or such a system with
            settings, as in ``systems``: ``{use: NAME, ...}``.
    """

    crafted_on: str | dict[str, Any] = "each"


class CraftedRelation(Relation):
    """A relation that needs a system: its pixels are made from a seed, parameters and a probe.

    :meth:`sample` draws what is random of a case (start noise, target), as for every relation, and knows no system.
    Pixels are made by :meth:`craft`, in batches cut from the full plan, on one thread of torch.

    Attributes:
        gathers: Whether :attr:`~medtest.core.probes.CraftCase.beside` holds what the suite's other attacks of no larger
            scale, and noise, have made of the same image, so that the worst of all can be kept.
    """

    Settings: ClassVar[type[CraftedSettings]] = CraftedSettings
    beside_attacks: ClassVar[bool] = True
    gathers: ClassVar[bool] = False

    @property
    @abstractmethod
    def needs(self) -> Need:
        """What its probe must give: scores or gradients."""

    @abstractmethod
    def craft(self, cases: Sequence[CraftCase], probe: Probe) -> Sequence[FollowUp | Exception]:
        """Make follow-ups of images of one size.

        Args:
            cases: What to make.
            probe: Of the system on which they are made.

        Returns:
            For each case its follow-up, with ``crafting`` set, or why there is none: a
            :class:`~medtest.core.errors.NotApplicable` makes it SKIP, any other exception ERROR with its text.
        """

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Refuse: without a system there are no pixels.

        Raises:
            MedtestError: Always.
        """
        raise MedtestError("its follow-ups are made on a system and cannot be made from the source image alone")

    def fingerprint_on(self, system: str) -> dict[str, Any]:
        """Return what the run's digest must cover of files that belong to the system on which it is crafted.

        Args:
            system: Digest of that system, :attr:`~medtest.core.probes.Probe.digest`.
        """
        return {}

    def missing_on(self, system: str, name: str, *, size: int | None = None, typed: str = "") -> Sequence[Mistake]:
        """Return what it lacks to be crafted on a system (something trained against it); asked before anything loads.

        Args:
            system: Digest of that system.
            name: Its name in records.
            size: Side in pixels of the prepared images; None where they keep their own.
            typed: What names suite, system and training images on a command line, ``suite=… model=… phantoms=…``.
        """
        return ()

    def unfit_for(self, task: str) -> tuple[str, str] | None:
        """Return the setting and what it allows, where one does not go with a suite's task; None where all do."""
        return None

    def leads_towards(self) -> Sequence[str]:
        """Return the names of the classes that its settings say to lead towards; empty where they name none."""
        return ()

    def network_passes(self, severity: int) -> int:
        """Return about how many images a system is asked about for one follow-up, for plans; 0: not known."""
        return 0
