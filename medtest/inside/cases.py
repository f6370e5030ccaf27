"""Inspected cases: selected from a suite as in a run and made once; crafted ones are taken from the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from medtest.core.cases import Address, Image, PreparedSeed
from medtest.relations.base import CraftedRelation
from medtest.runner.records.crafted import CraftedCases
from medtest.runner.units.beside import beside
from medtest.runner.units.crafting import Crafter
from medtest.runner.units.made_case import MadeCase
from medtest.runner.units.parts import Parts
from medtest.suite.checking.misfits.inputs import check_images
from medtest.suite.digest import system_digest
from medtest.suite.plan import Unit, craft_batches

if TYPE_CHECKING:
    from medtest.runner.prepared import PreparedRun
    from medtest.suite.model import Invocation
    from medtest.systems.base import System

KEPT, CRAFTED, MADE = "the run's", "crafted anew", "made"
"""Origins of a follow-up's pixels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LookedAt:
    """An inspected follow-up.

    Attributes:
        made_case: The case with its image.
        pixels: Origin of its pixels.
    """

    made_case: MadeCase
    pixels: str

    @property
    def case(self) -> Address:
        """Address of the case."""
        return self.made_case.address

    @property
    def image(self) -> Image:
        """The follow-up, uint8 H×W×3."""
        assert self.made_case.follow is not None  # noqa: S101 - only cases with an image are inspected
        return self.made_case.follow.image

    @property
    def name(self) -> str:
        """Short name of the follow-up: relation, severity, and frame and repeat if not 0."""
        parts = [self.case.relation.replace("_", " ")]
        parts += [f"s{self.case.severity}"] if self.case.severity else []
        parts += [f"frame {self.case.frame}"] if self.case.frame else []
        parts += [f"repeat {self.case.repeat}"] if self.case.repeat else []
        return " ".join(parts)


class InspectedCases:
    """Cases of one system of a suite.

    Args:
        prepared: The suite with its plan and selected cases.
        invocation: Options of the run.
        number: Index of the system in the suite.
        system: The opened system.
        device: Device of the system.

    Attributes:
        left_out: Number of missing follow-ups, by reason.
    """

    def __init__(self, prepared: PreparedRun, invocation: Invocation, number: int, system: System, device: str) -> None:
        check_images(prepared.suite, "medtest inspect")
        self.prepared, self._number, self._system = prepared, number, system
        self.parts = Parts(prepared.suite, invocation.data, invocation.batch_size, stored=invocation.kept)
        self.parts.crafted = CraftedCases(prepared.folders, prepared.names)
        self.device = device
        self._crafter: Crafter | None = None
        self._others: list[System] = []
        self.left_out: dict[str, int] = {}

    def units(self, most: int) -> list[Unit]:
        """Return the inspected seeds: the selected ones, evenly thinned to at most ``most`` cases.

        Args:
            most: Maximum number of cases, sources included.
        """
        plan, chosen = self.prepared.plan, self.prepared.chosen.reshape(len(self.prepared.plan.refs), -1)
        with_cases = np.flatnonzero(chosen.any(axis=1))
        each = max(1, int(chosen[with_cases].sum(axis=1).max(initial=1)))
        count = max(1, min(len(with_cases), most // each))
        places = np.unique(np.round(np.linspace(0, len(with_cases) - 1, count)).astype(int))
        return [plan.unit(int(with_cases[place]), 0) for place in places]

    def others(self, most: int, units: Sequence[Unit]) -> Iterator[PreparedSeed]:
        """Yield evenly spaced sources of the suite outside the inspected seeds and their clusters."""
        clusters = {(unit.ref.dataset, unit.ref.cluster) for unit in units}
        refs = [n for n, ref in enumerate(self.prepared.plan.refs) if (ref.dataset, ref.cluster) not in clusters]
        if refs and most:
            places = np.unique(np.round(np.linspace(0, len(refs) - 1, min(most, len(refs)))).astype(int))
            for place in places:
                number = refs[int(place)]
                yield self.parts.prepared(int(self.prepared.owners[number]), self.prepared.plan.refs[number])

    def seed(self, unit: Unit) -> PreparedSeed:
        """Load and prepare the seed of a unit."""
        return self.parts.prepared(int(self.prepared.owners[unit.index]), unit.ref)

    def followups(self, unit: Unit, seed: PreparedSeed) -> list[LookedAt]:
        """Return the selected follow-ups of a seed that can be made, and count the reasons for the others."""
        chosen = self.prepared.chosen.reshape(len(self.prepared.plan.refs), -1)[unit.index]
        inspected: list[LookedAt] = []
        crafted: dict[int, MadeCase] = {}
        for index, case in enumerate(unit.cases[: unit.row]):
            if case.is_source or not chosen[index]:
                continue
            made_case, pixels = self.parts.make(seed, case, self._number), MADE
            if isinstance(self.parts.relations.get(case.relation), CraftedRelation):
                pixels = KEPT
                if made_case.follow is None and not self._recorded(seed, case):
                    if index not in crafted:
                        crafted |= self._craft(unit, seed, index)
                    made_case, pixels = crafted[index], CRAFTED
            if made_case.follow is None:
                reason = made_case.reason.text or str(made_case.verdict)
                self.left_out[reason] = self.left_out.get(reason, 0) + 1
                continue
            inspected.append(LookedAt(made_case=made_case, pixels=pixels))
        return inspected

    def _recorded(self, seed: PreparedSeed, case: Address) -> bool:
        """Return True if the run recorded that there are no pixels."""
        assert self.parts.crafted is not None  # noqa: S101 - set above
        look = self.parts.crafted.look(self._number, seed, case)
        return look is not None and not look.record["followup_sha256"]

    def _craft(self, unit: Unit, seed: PreparedSeed, index: int) -> dict[int, MadeCase]:
        """Craft the whole batch of a case, as a run would.

        For a gathering relation, the cases of the other relations are made first.
        """
        crafts = {
            name for name, relation_part in self.parts.relations.items() if isinstance(relation_part, CraftedRelation)
        }
        batch = craft_batches(unit, crafts, self.parts.batch_size)[index]
        relation = self.parts.relations[batch.relation]
        assert isinstance(relation, CraftedRelation)  # noqa: S101 - craft_batches takes no others
        crafter = self._own_crafter()
        system = crafter.named.get(batch.relation) or self._system
        addresses, others = {at: unit.cases[at] for at in batch.cases}, {}
        if relation.gathers:
            made_beside: dict[int, MadeCase] = {}
            make = partial(self._other, unit, seed, made_beside)
            others = {at: beside(self.parts.relations, unit.cases, at, make) for at in batch.cases}
        return crafter.batch(relation, system, seed, addresses, lambda: None, others)

    def _other(self, unit: Unit, seed: PreparedSeed, made_beside: dict[int, MadeCase], index: int) -> MadeCase:
        """Return a case for a gathering relation; cases crafted in its batch are added to ``made_beside``."""
        if not isinstance(self.parts.relations[unit.cases[index].relation], CraftedRelation):
            return self.parts.make(seed, unit.cases[index], self._number)
        if index not in made_beside:
            made_beside |= self._craft(unit, seed, index)
        return made_beside[index]

    def _own_crafter(self) -> Crafter:
        """Return the crafter, opening the systems it needs on first use."""
        if self._crafter is not None:
            return self._crafter
        suite = self.prepared.suite
        plan = suite.systems[self._number]
        named: dict[str, System] = {}
        digests = {id(self._system): system_digest(plan, self.prepared.systems[self._number], suite.task)}
        for name, system in suite.build_crafters().items():
            if suite.crafters[name] == plan:
                named[name] = self._system
                continue
            if id(system) not in digests:
                system.open(device=self.device, threads=1)
                self._others.append(system)
                digests[id(system)] = system_digest(suite.crafters[name], system, suite.task)
            named[name] = system
        self._crafter = Crafter(
            parts=self.parts,
            systems=[self._system],
            named=named,
            digests=digests,
            folders=(),
            began=lambda _index, _place: None,
        )
        return self._crafter

    def close(self) -> None:
        """Close systems that were opened for crafting only."""
        for system in self._others:
            system.close()
