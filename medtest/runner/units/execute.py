"""Systems that answer batches: one seed, all its follow-ups, all systems.

A follow-up is made once and shown to every system. A batch is inferred whole even if only a part of it is recorded,
because answers of the same weights differ by about 1e-6 between batch sizes. The source's batch is always inferred, as
follow-ups are compared with its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from medtest.core.cases import Address, Verdict
from medtest.core.errors import MedtestError, UserMistakes
from medtest.runner.pool.messages import SHARED, UnitTask
from medtest.runner.units.crafting import Crafter, with_distances
from medtest.runner.units.made_case import MadeCase, SystemAnswer, given_up_case
from medtest.runner.units.open_units import OpenUnit, Recorder, Share
from medtest.runner.units.parts import answers
from medtest.suite.checking.misfits.classes import other_classes


class UnitRunner:
    """Runner of units.

    Args:
        recorder: Shared objects of the worker.
        crafter: Crafts follow-ups, if a relation needs a system; otherwise None.
    """

    def __init__(self, recorder: Recorder, crafter: Crafter | None = None) -> None:
        self._recorder = recorder
        self._crafter = crafter
        self._answering: set[int] = set()

    def run(self, task: UnitTask) -> None:
        """Run one unit and send its rows.

        Raises:
            UserMistakes: A classifier's whole first batch has scores for a different number of classes than the seeds.
        """
        opened = self._recorder.open(task)
        if opened is not None:
            shares = [Share(opened, system) for system in range(len(self._recorder.systems))]
            for batch in range(len(opened.unit.batches)):
                self._batch(opened, batch, [share for share in shares if self._is_needed(share, batch)])
        self._recorder.outbox.flush(now=True)

    def _batch(self, opened: OpenUnit, batch: int, shares: Sequence[Share]) -> None:
        if not shares:
            return
        shared = self._make(opened, batch)
        start, _ = opened.unit.batches[batch]
        for share in shares:
            cases = [
                self._made_for(opened, share, index) if case is None else case
                for index, case in enumerate(shared, start)
            ]
            answered = self._recorder.parts.read(opened.seed, self._answers(share, batch, cases))
            self._check_first(share, answered)
            is_lost = (share.system, 0) in opened.task.given_up
            if batch == 0 and self._crafter is not None:
                again = partial(self._again, share, cases)
                crafting = self._crafter.of_source(opened, share.system, answered[0], again)
                cases = [replace(cases[0], crafting=crafting), *cases[1:]]
            for case, (case_made, answer) in enumerate(zip(cases, answered, strict=True), start):
                share.take(case, case_made, answer, lost=is_lost)
            self._recorder.outbox.flush()

    def _again(self, share: Share, cases: Sequence[MadeCase]) -> SystemAnswer:
        """Ask a system about the source once more."""
        place = (share.system, 0)
        system = self._recorder.systems[share.system]
        return answers(system, cases[:1], lambda: self._recorder.outbox.begin(share.open.task.index, place))[0]

    def _made_for(self, opened: OpenUnit, share: Share, index: int) -> MadeCase:
        """Return a case that is made for one system."""
        searcher = self._recorder.searcher
        if searcher is not None and searcher.searches(opened.unit.cases[index]):
            given_up = opened.task.given_up.get((SHARED, opened.unit.batch_of(index)))
            if given_up is not None:
                return given_up_case(opened.unit.cases[index], given_up)
            case = searcher.made(share, index)
            return case if self._crafter is None else with_distances(opened.seed, case)
        if self._crafter is None:
            raise MedtestError(f"{opened.unit.cases[index]} needs a system, and none makes it")
        return self._crafter.made(opened, share.system, index)

    def _make(self, opened: OpenUnit, batch: int) -> list[MadeCase | None]:
        """Make the cases shared by all systems; None marks crafted cases."""
        start, stop = opened.unit.batches[batch]
        parts, given_up = self._recorder.parts, opened.task.given_up.get((SHARED, batch))
        if given_up is None:
            self._recorder.outbox.begin(opened.task.index, (SHARED, batch))
        shared: list[MadeCase | None] = []
        for address in opened.unit.cases[start:stop]:
            if self._is_own(address):
                shared.append(None)
            elif given_up is not None and not address.is_source:
                shared.append(given_up_case(address, given_up))
            else:
                case = parts.make(opened.seed, address)
                shared.append(case if self._crafter is None else with_distances(opened.seed, case))
        return shared

    def _is_own(self, address: Address) -> bool:
        """Return True if each system is shown a different follow-up."""
        searcher = self._recorder.searcher
        return (self._crafter is not None and self._crafter.crafts(address)) or (
            searcher is not None and searcher.searches(address)
        )

    def _is_needed(self, share: Share, batch: int) -> bool:
        """Return True if a batch has a case to record, the source, or a case on which an open search depends."""
        start, stop = share.open.unit.batches[batch]
        todo = share.open.task.todo[share.system]
        if any(todo[start:stop]) or (batch == 0 and any(todo)):
            return True
        searcher = self._recorder.searcher
        return searcher is not None and any(searcher.needed(share, case) for case in range(start, stop))

    def _check_first(self, share: Share, answered: list[SystemAnswer]) -> None:
        """End the run if all first answers of a classifier have another number of classes: later ones will too.

        Raises:
            UserMistakes: The numbers differ.
        """
        inferred = [answer for answer in answered if answer.elapsed_ms is not None]
        if share.system in self._answering or not inferred:
            return
        counts, classes = {answer.classes for answer in inferred}, share.open.seed.classes
        if len(counts) == 1 and 0 not in counts and classes is not None:
            self._recorder.outbox.flush(now=True)
            raise UserMistakes([other_classes(self._recorder.systems[share.system], counts.pop(), classes)])
        self._answering.add(share.system)

    def _answers(self, share: Share, batch: int, cases: list[MadeCase]) -> list[SystemAnswer]:
        opened, place, source = share.open, (share.system, batch), share.sources.get(0)
        ready = [case for case in cases if case.follow is not None and not _equals_source(case, opened)]
        given_up = opened.task.given_up.get(place)
        if given_up is not None:
            results = [SystemAnswer(output=None, verdict=Verdict.ERROR, reason=given_up) for _ in ready]
        elif not ready or (source is not None and source.lost):
            results = [SystemAnswer(output=None, verdict=Verdict.SKIP) for _ in ready]
        else:
            system = self._recorder.systems[share.system]
            results = answers(system, ready, lambda: self._recorder.outbox.begin(opened.task.index, place))
        by_case = iter(results)
        answered: list[SystemAnswer] = []
        for case in cases:
            if case.follow is None:
                answered.append(SystemAnswer(output=None, verdict=case.verdict, reason=case.reason))
            elif _equals_source(case, opened):
                first = answered[0] if source is None else source.answer
                verdict = Verdict.SKIP if first.output is None else first.verdict  # the system is blamed at the source
                answered.append(replace(first, verdict=verdict, elapsed_ms=None))
            else:
                answered.append(next(by_case))
        return answered


def _equals_source(case: MadeCase, opened: OpenUnit) -> bool:
    """Return True if a follow-up equals the source image, as measured; the system has already answered that."""
    return not case.address.is_source and case.follow is not None and case.follow.image is opened.seed.image
