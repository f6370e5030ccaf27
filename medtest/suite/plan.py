"""Plan: the cases of suite and seeds in a fixed order, divided into units (one seed each) and batches.

A seed with several questions has all its cases once per question, one question after the other. Queries of a search
follow all other cases; what they show depends on the answers to earlier ones.

Batches are cut from the full plan: with the same weights outputs differ by about 1e-6 between batch sizes, so the
unfinished cases must not decide which cases share a batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from medtest.core.cases import Address, SeedRef
from medtest.relations.base import Relation
from medtest.relations.calibration.searching.queries import queries_of
from medtest.suite.model import Selection
from medtest.suite.sharding import Shard


class Step(NamedTuple):
    """Follow-up of every seed: relation, severity, repeat, and the frame of a sequence."""

    relation: str
    severity: int
    repeat: int = 0
    frame: int = 0

    def address(self, ref: SeedRef) -> Address:
        """Return its address for one seed."""
        return Address(
            dataset=ref.dataset,
            seed_id=ref.seed_id,
            relation=self.relation,
            severity=self.severity,
            frame=self.frame,
            repeat=self.repeat,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """All cases of one seed: the source first, then the follow-ups by relation, severity, repeat and frame.

    A seed with several questions has one such row of cases per question, one after the other.

    Attributes:
        index: Position in the plan, from 0.
        ref: The seed.
        position: Position of the seed within its data set, from 0 (what ``limit`` counts).
        cases: Addresses, the source case first; without items if no questions are asked.
        batches: Half-open ranges into ``cases``.
        row: Number of cases of one question; of all cases without questions.
        queries: Number of queries of searches at the end of each row.
    """

    index: int
    ref: SeedRef
    position: int
    cases: tuple[Address, ...]
    batches: tuple[tuple[int, int], ...]
    row: int = 0
    queries: int = 0

    def batch_of(self, case: int) -> int:
        """Return the number of the batch of a case."""
        return next(number for number, (start, stop) in enumerate(self.batches) if start <= case < stop)

    def chosen(self, *, limit: int | None, only: Selection) -> list[int]:
        """Return the places of the cases chosen by a call that need no search; see :func:`is_chosen`."""
        return [
            index
            for index, case in enumerate(self.cases)
            if index % self.row < self.row - self.queries and is_chosen(case, self.position, limit=limit, only=only)
        ]


class ChosenSeed(NamedTuple):
    """Seed with chosen cases: its place in the plan and in its data set, and its chosen questions."""

    unit: int
    position: int
    ref: SeedRef
    items: list[int]


class Plan:
    """Every case of a suite, generated on demand.

    Args:
        refs: All seeds, in order.
        relations: Relations by id, in the suite's order.
        batch_size: Images per batch.

    Attributes:
        planned: Follow-ups of every seed that do not depend on answers: all but the queries of searches.
    """

    def __init__(self, refs: Sequence[SeedRef], relations: Mapping[str, Relation], batch_size: int) -> None:
        self.refs = tuple(refs)
        self.planned = tuple(
            Step(relation_id, severity, repeat, frame)
            for relation_id, relation in relations.items()
            for severity in relation.severities()
            for repeat in range(relation.repeats())
            for frame in range(relation.frames())
        )
        queries = tuple(
            Step(relation_id, 0, repeat, frame)
            for relation_id, relation in relations.items()
            for repeat in range(relation.repeats())
            for frame in range(len(queries_of(relation)))
        )
        self.shape: tuple[Step, ...] = (*self.planned, *queries)
        self._queries = len(queries)
        self.batch_size = batch_size

    @property
    def row(self) -> int:
        """Number of cases of one question of one seed, including the source."""
        return 1 + len(self.shape)

    @property
    def cases_per_seed(self) -> int:
        """Largest number of cases of a seed, including sources."""
        return self.row * max((len(ref.items) for ref in self.refs), default=1)

    @property
    def total(self) -> int:
        """Number of all cases, including sources, for one system."""
        return self.row * sum(len(ref.items) for ref in self.refs)

    def unit(self, index: int, position: int) -> Unit:
        """Return one unit."""
        ref = self.refs[index]
        case_row = (ref.source, *(step.address(ref) for step in self.shape))
        cases = case_row if ref.items == ("",) else tuple(replace(case, item=i) for i in ref.items for case in case_row)
        step = self.batch_size
        end = len(cases) - self._queries  # queries wait for one another, so that each is a batch
        batches = tuple((start, min(start + step, end)) for start in range(0, end, step))
        batches += tuple((start, start + 1) for start in range(end, len(cases)))
        return Unit(
            index=index, ref=ref, position=position, cases=cases, batches=batches, row=self.row, queries=self._queries
        )

    def units(self) -> Iterator[Unit]:
        """Yield every unit in order."""
        for index, position in self._positions():
            yield self.unit(index, position)

    def _positions(self) -> Iterator[tuple[int, int]]:
        """Yield every unit's index and the position of its seed within its data set."""
        positions: dict[str, int] = {}
        for index, ref in enumerate(self.refs):
            position = positions.get(ref.dataset, 0)
            positions[ref.dataset] = position + 1
            yield index, position

    def chosen_steps(self, only: Selection) -> list[bool]:
        """Return which cases of one question of one seed ``only`` chooses, the source first: the same for all seeds."""
        return [True, *(_step_chosen(step.relation, step.severity, only) for step in self.shape)]

    def needed(self, *, limit: int | None, only: Selection) -> set[tuple[str, str]]:
        """Return data set and id of the seeds with chosen cases."""
        return {(seed.ref.dataset, seed.ref.seed_id) for seed in self.chosen_seeds(limit=limit, only=only)}

    def chosen_seeds(self, *, limit: int | None, only: Selection, shard: Shard | None = None) -> Iterator[ChosenSeed]:
        """Yield the seeds with chosen cases in order, without generating their cases.

        Args:
            limit: First N seeds of each data set.
            only: Part of the plan.
            shard: Part of the plan as well; ``limit`` counts all seeds.
        """
        for index, position in self._positions():
            ref = self.refs[index]
            if (shard is not None and not shard.holds(index)) or not _seed_chosen(
                ref.dataset, ref.seed_id, position, limit=limit, only=only
            ):
                continue
            items = [index for index, item in enumerate(ref.items) if not only.questions or item in only.questions]
            if items:
                yield ChosenSeed(index, position, ref, items)


@dataclass(frozen=True, slots=True)
class CraftBatch:
    """Cases that are crafted together.

    Attributes:
        number: Its number in the unit, after those of the answer batches.
        relation: The relation's id.
        cases: Their indices in the unit.
    """

    number: int
    relation: str
    cases: tuple[int, ...]


def craft_batches(unit: Unit, crafted: Collection[str], batch_size: int) -> dict[int, CraftBatch]:
    """Return the craft batch of every case of a unit whose relation needs a system, by the case's index.

    Args:
        unit: The unit.
        crafted: Relations that need a system.
        batch_size: Images per batch.
    """
    by_relation: dict[str, list[int]] = {}
    for index, case in enumerate(unit.cases):
        if case.relation in crafted:
            by_relation.setdefault(case.relation, []).append(index)
    batches: dict[int, CraftBatch] = {}
    number = len(unit.batches)
    for relation, cases in by_relation.items():
        for start in range(0, len(cases), batch_size):
            batch = CraftBatch(number, relation, tuple(cases[start : start + batch_size]))
            batches |= dict.fromkeys(batch.cases, batch)
            number += 1
    return batches


def is_chosen(address: Address, position: int, *, limit: int | None, only: Selection) -> bool:
    """Return True if this invocation must execute the case; a source is chosen with any of its follow-ups."""
    if not _seed_chosen(address.dataset, address.seed_id, position, limit=limit, only=only):
        return False
    if only.questions and address.item not in only.questions:
        return False
    return address.is_source or _step_chosen(address.relation, address.severity, only)


def _seed_chosen(dataset: str, seed_id: str, position: int, *, limit: int | None, only: Selection) -> bool:
    if limit is not None and position >= limit:
        return False
    if only.datasets and dataset not in only.datasets:
        return False
    return not only.seeds or seed_id in only.seeds


def _step_chosen(relation: str, severity: int, only: Selection) -> bool:
    if only.relations and relation not in only.relations:
        return False
    return not only.severities or severity in only.severities
