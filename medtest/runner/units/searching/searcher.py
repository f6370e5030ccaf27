"""Searches of a worker: which queries are to be made, and what each shows to which system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from medtest.core.cases import Address, PreparedSeed, Reason, ReasonCode, Verdict
from medtest.relations.base import Relation
from medtest.relations.calibration.searching.queries import MILDEST
from medtest.runner.pool.messages import UnitTask
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.records.crafted import rows_of
from medtest.runner.units.made_case import MadeCase, not_made
from medtest.runner.units.parts import Parts
from medtest.runner.units.searching.mildest import Mildest
from medtest.runner.units.searching.outcomes import QueryOutcome, recorded_outcome, together
from medtest.runner.units.searching.query import Over
from medtest.runner.units.searching.worst import WorstSearch
from medtest.suite.plan import Unit

_STEP = ("relation", "severity", "frame", "repeat", "item")


@dataclass
class SearchOfShare:
    """Search of one relation and repeat for one system and seed.

    Attributes:
        relation: The relation.
        levels: Numbers of the cases of its levels, by severity.
        queries: Numbers of the cases of its queries, in order.
        search: The search, once its levels have outcomes.
    """

    relation: Relation
    levels: dict[int, int]
    queries: list[int]
    search: Mildest | WorstSearch | None = None


@dataclass
class Searches:
    """Searches of one system in one unit.

    Attributes:
        by_query: For the number of each query, its search and its place in it.
        earlier: Outcomes recorded by an earlier session, by case.
        cases: Cases of the queries so far, by number.
    """

    by_query: dict[int, tuple[SearchOfShare, int]]
    earlier: Mapping[int, QueryOutcome] | None = None
    cases: dict[int, MadeCase] = field(default_factory=dict)


class SearchedUnit(Protocol):
    """Unit in progress (:class:`medtest.runner.units.open_units.OpenUnit`)."""

    task: UnitTask
    unit: Unit
    seed: PreparedSeed


class SearchingShare(Protocol):
    """Share of one system in a unit in progress (:class:`medtest.runner.units.open_units.Share`)."""

    @property
    def open(self) -> SearchedUnit:
        """The unit."""

    system: int
    searches: Searches | None
    outcomes: dict[int, QueryOutcome]

    def requests(self, number: int) -> bool:
        """Return True if a case of any question must be recorded."""


@dataclass(kw_only=True)
class Searcher:
    """Maker of queries in a worker.

    Attributes:
        parts: The suite's parts.
        folders: The systems' folders, from whose records an interrupted search continues.
        names: Display of ids in records.
    """

    parts: Parts
    folders: Sequence[Path]
    names: ShownNames

    def searches(self, address: Address) -> bool:
        """Return True if an address is a query."""
        relation = self.parts.relations.get(address.relation)
        return relation is not None and bool(relation.searched) and address.severity == 0

    def watches(self, address: Address) -> bool:
        """Return True if a search depends on the outcome of a case."""
        relation = self.parts.relations.get(address.relation)
        return relation is not None and bool(relation.searched)

    def open(self, unit: Unit) -> Searches:
        """Return the searches of a unit."""
        by_query: dict[int, tuple[SearchOfShare, int]] = {}
        searches: dict[tuple[str, int], SearchOfShare] = {}
        for number, address in enumerate(unit.cases[: unit.row]):
            relation = self.parts.relations.get(address.relation)
            if relation is None or not relation.searched:
                continue
            key = (address.relation, address.repeat)
            search = searches.setdefault(key, SearchOfShare(relation, {}, []))
            if address.severity:
                search.levels[address.severity] = number
            else:
                by_query[number] = (search, len(search.queries))
                search.queries.append(number)
        return Searches(by_query)

    def needed(self, share: SearchingShare, number: int) -> bool:
        """Return True if a case must be answered because an unfinished query depends on it, and no record has it."""
        searches = share.searches
        if searches is None or not self.watches(share.open.unit.cases[number]):
            return False
        address = share.open.unit.cases[number]
        later = [
            query
            for query, (search, _) in searches.by_query.items()
            if query > number
            and (number in search.levels.values() or number in search.queries)
            and (search.relation.searched == MILDEST or address.severity == 0)
        ]
        return any(map(share.requests, later)) and self.outcome(share, number) is None

    def outcome(self, share: SearchingShare, number: int) -> QueryOutcome | None:
        """Return the outcome of a case over all its questions; None as long as one is missing."""
        outcomes = []
        for case in range(number, len(share.open.unit.cases), share.open.unit.row):
            outcome = share.outcomes.get(case)
            if outcome is None:
                outcome = self._earlier(share).get(case)
            if outcome is None:
                return None
            outcomes.append(outcome)
        return together(outcomes)

    def ready(self, share: SearchingShare, number: int) -> bool:
        """Return True if every outcome that a query depends on is there."""
        return all(outcome is not None for outcome in self._before(share, number))

    def _before(self, share: SearchingShare, number: int) -> Iterator[QueryOutcome | None]:
        searches = share.searches
        assert searches is not None  # noqa: S101 - queries exist only with searches
        search, place = searches.by_query[number]
        for case in (*(search.levels.values() if search.relation.searched == MILDEST else ()), *search.queries[:place]):
            yield self.outcome(share, case)

    def made(self, share: SearchingShare, number: int) -> MadeCase:
        """Return the change that a query shows to the share's system; its dependencies have outcomes."""
        searches = share.searches
        assert searches is not None  # noqa: S101 - as above
        if number not in searches.cases:
            searches.cases[number] = self._made(share, searches, number)
        return searches.cases[number]

    def _made(self, share: SearchingShare, searches: Searches, number: int) -> MadeCase:
        seed, address = share.open.seed, share.open.unit.cases[number]
        search, place = searches.by_query[number]
        before = [outcome for outcome in self._before(share, number) if outcome is not None]
        count = len(search.levels) if search.relation.searched == MILDEST else 0
        if search.search is None:
            levels = dict(zip(search.levels, before[:count], strict=True)) if count else {}
            search.search = Mildest(search.relation, levels) if count else WorstSearch(search.relation, seed)
        try:
            shown = search.search.query(place, before[count:], address, self.parts.suite.seed)
        except Over as over:
            waits = any(outcome.open for outcome in before)
            code = ReasonCode.SEARCH_WAITS if waits else ReasonCode.SEARCH_OVER
            text = "an earlier query is an ERROR" if waits else str(over)
            return MadeCase(address=address, follow=None, verdict=Verdict.SKIP, reason=Reason(code, text))
        except Exception as error:  # noqa: BLE001 - a relation may come from a plug-in
            return not_made(address, error)
        return self.parts.make_by(seed, address, lambda: shown.follow_up(seed))

    def again(self, share: SearchingShare, number: int) -> int:
        """Count earlier showings of the picture of a query."""
        searches = share.searches
        if searches is None or number not in searches.by_query:
            return 0
        search, place = searches.by_query[number]
        return 0 if search.search is None else search.search.again(place)

    def _earlier(self, share: SearchingShare) -> Mapping[int, QueryOutcome]:
        """Return the outcomes in the system's records; read only if a part of a search is already there."""
        searches = share.searches
        if searches is None:
            return {}
        if searches.earlier is None:
            todo = share.open.task.todo[share.system]
            is_watched = (self.watches(address) for address in share.open.unit.cases)
            begun = any(watched and not flag for watched, flag in zip(is_watched, todo, strict=False))
            searches.earlier = self._read(share) if begun else {}
        return searches.earlier

    def _read(self, share: SearchingShare) -> dict[int, QueryOutcome]:
        unit, seed = share.open.unit, share.open.seed
        keys = {tuple(getattr(case, name) for name in _STEP): number for number, case in enumerate(unit.cases)}
        conditions = {
            "dataset": unit.ref.dataset,
            "seed_id": self.names.seed_id(unit.ref.dataset, unit.ref.seed_id),
        }
        outcomes: dict[int, QueryOutcome] = {}
        if share.system >= len(self.folders) or not seed.sha256:
            return outcomes
        for row in rows_of(self.folders[share.system], conditions, None):
            number = keys.get(tuple("" if row[name] is None else row[name] for name in _STEP))
            is_done = number is not None and not share.open.task.todo[share.system][number]
            if number is not None and is_done and self.watches(unit.cases[number]):
                outcomes[number] = recorded_outcome(self.parts.oracle, row)
        return outcomes
