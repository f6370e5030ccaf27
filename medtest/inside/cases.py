"""The cases that are looked at: chosen from a suite as in a run, made once, crafted ones as the run keeps them."""

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
from medtest.runner.units.parts import MadeCase, Parts
from medtest.suite.checking.misfits.inputs import check_images
from medtest.suite.digest import system_digest
from medtest.suite.plan import Unit, craft_batches

if TYPE_CHECKING:
    from medtest.runner.prepared import PreparedRun
    from medtest.suite.model import Invocation
    from medtest.systems.base import System

KEPT, CRAFTED, MADE = "the run's", "crafted anew", "made"
"""Where a follow-up's pixels come from."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LookedAt:
    """A follow-up that is looked at.

    Attributes:
        made: The case with its image.
        pixels: Where its pixels come from.
    """

    made: MadeCase
    pixels: str

    @property
    def case(self) -> Address:
        """Its address."""
        return self.made.address

    @property
    def image(self) -> Image:
        """The follow-up, uint8 H×W×3."""
        assert self.made.follow is not None  # noqa: S101 - only cases with an image are looked at
        return self.made.follow.image

    @property
    def name(self) -> str:
        """The follow-up in short: relation, severity, and frame and repeat where there are several."""
        parts = [self.case.relation.replace("_", " ")]
        parts += [f"s{self.case.severity}"] if self.case.severity else []
        parts += [f"frame {self.case.frame}"] if self.case.frame else []
        parts += [f"repeat {self.case.repeat}"] if self.case.repeat else []
        return " ".join(parts)


class InspectedCases:
    """InspectedCases of one system of a suite.

    Args:
        prepared: The suite with its plan and what is chosen of it.
        invocation: How it is called.
        number: The system's place in the suite.
        system: It, opened.
        device: Where it runs.

    Attributes:
        left_out: How many follow-ups there are not, by reason.
    """

    def __init__(self, prepared: PreparedRun, invocation: Invocation, number: int, system: System, device: str) -> None:
        check_images(prepared.suite, "medtest inspect")
        self.prepared, self._number, self._system = prepared, number, system
        self.parts = Parts(prepared.suite, invocation.data, invocation.batch_size, kept=invocation.kept)
        self.parts.crafted = CraftedCases(prepared.folders, prepared.names)
        self.device = device
        self._crafter: Crafter | None = None
        self._others: list[System] = []
        self.left_out: dict[str, int] = {}

    def units(self, most: int) -> list[Unit]:
        """Return the seeds that are looked at: those chosen, at equal distances where that were more cases than most.

        Args:
            most: InspectedCases, sources included.
        """
        plan, chosen = self.prepared.plan, self.prepared.chosen.reshape(len(self.prepared.plan.refs), -1)
        with_cases = np.flatnonzero(chosen.any(axis=1))
        each = max(1, int(chosen[with_cases].sum(axis=1).max(initial=1)))
        count = max(1, min(len(with_cases), most // each))
        places = np.unique(np.round(np.linspace(0, len(with_cases) - 1, count)).astype(int))
        return [plan.unit(int(with_cases[place]), 0) for place in places]

    def others(self, most: int, units: Sequence[Unit]) -> Iterator[PreparedSeed]:
        """Yield sources of the suite that are not among those looked at, nor of their clusters, at equal distances."""
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
        """Return the chosen follow-ups of a seed that can be made; of the others it is counted why not."""
        chosen = self.prepared.chosen.reshape(len(self.prepared.plan.refs), -1)[unit.index]
        found: list[LookedAt] = []
        crafted: dict[int, MadeCase] = {}
        for index, case in enumerate(unit.cases[: unit.row]):
            if case.is_source or not chosen[index]:
                continue
            made, pixels = self.parts.make(seed, case, self._number), MADE
            if isinstance(self.parts.relations.get(case.relation), CraftedRelation):
                pixels = KEPT
                if made.follow is None and not self._recorded(seed, case):
                    if index not in crafted:
                        crafted |= self._craft(unit, seed, index)
                    made, pixels = crafted[index], CRAFTED
            if made.follow is None:
                reason = made.reason or str(made.verdict)
                self.left_out[reason] = self.left_out.get(reason, 0) + 1
                continue
            found.append(LookedAt(made=made, pixels=pixels))
        return found

    def _recorded(self, seed: PreparedSeed, case: Address) -> bool:
        """Whether the run says why there are no pixels."""
        assert self.parts.crafted is not None  # noqa: S101 - set above
        known = self.parts.crafted.look(self._number, seed, case)
        return known is not None and not known.record["followup_sha256"]

    def _craft(self, unit: Unit, seed: PreparedSeed, index: int) -> dict[int, MadeCase]:
        """Craft the whole batch of a case, as a run would.

        Of a relation that gathers, what the others made of the image is made first.
        """
        crafts = {name for name, one in self.parts.relations.items() if isinstance(one, CraftedRelation)}
        batch = craft_batches(unit, crafts, self.parts.batch_size)[index]
        relation = self.parts.relations[batch.relation]
        assert isinstance(relation, CraftedRelation)  # noqa: S101 - craft_batches takes no others
        crafter = self._own_crafter()
        system = crafter.named.get(batch.relation) or self._system
        addresses, others = {at: unit.cases[at] for at in batch.cases}, {}
        if relation.gathers:
            known: dict[int, MadeCase] = {}
            make = partial(self._other, unit, seed, known)
            others = {at: beside(self.parts.relations, unit.cases, at, make) for at in batch.cases}
        return crafter.batch(relation, system, seed, addresses, lambda: None, others)

    def _other(self, unit: Unit, seed: PreparedSeed, known: dict[int, MadeCase], index: int) -> MadeCase:
        """Return a case that a relation which gathers is handed; ``known`` takes what its batch made beside."""
        if not isinstance(self.parts.relations[unit.cases[index].relation], CraftedRelation):
            return self.parts.make(seed, unit.cases[index], self._number)
        if index not in known:
            known |= self._craft(unit, seed, index)
        return known[index]

    def _own_crafter(self) -> Crafter:
        """Return what crafts, once the systems are opened on which that is done."""
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
        """Let go of systems that only crafted."""
        for system in self._others:
            system.close()
