"""Systems that answer batches: one seed, all its follow-ups, all systems.

A follow-up is made once and shown to every system. A batch of which only a part is to be recorded is inferred whole,
for with the same weights answers differ by about 1e-6 between batch sizes. The source's batch is always inferred, as
its answer is what follow-ups are compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from medtest.cases import Verdict
from medtest.errors import UserMistakes
from medtest.runner.pool.messages import SHARED, UnitTask
from medtest.runner.units.open_units import OpenUnit, Recorder, Share
from medtest.runner.units.parts import MadeCase, SystemAnswer, answers
from medtest.suite.fitting import other_classes


class UnitRunner:
    """Runs units.

    Args:
        recorder: What its worker has.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._answering: set[int] = set()

    def run(self, task: UnitTask) -> None:
        """Run one unit and send its rows.

        Raises:
            UserMistakes: A classifier's first batch is all of scores of another number of classes than the seeds have.
        """
        opened = self._recorder.open(task)
        if opened is not None:
            shares = [Share(opened, system) for system in range(len(self._recorder.systems))]
            for batch in range(len(opened.unit.batches)):
                self._batch(opened, batch, [share for share in shares if _wanted(share, batch)])
        self._recorder.outbox.flush(now=True)

    def _batch(self, opened: OpenUnit, batch: int, shares: Sequence[Share]) -> None:
        if not shares:
            return
        cases = self._make(opened, batch)
        start, _ = opened.unit.batches[batch]
        for share in shares:
            answered = self._recorder.parts.read(opened.seed, self._answers(share, batch, cases))
            self._check_first(share, answered)
            lost = (share.system, 0) in opened.task.given_up
            for case, (made, answer) in enumerate(zip(cases, answered, strict=True), start):
                share.take(case, made, answer, lost=lost)
            self._recorder.outbox.flush()

    def _make(self, opened: OpenUnit, batch: int) -> list[MadeCase]:
        start, stop = opened.unit.batches[batch]
        parts, given_up = self._recorder.parts, opened.task.given_up.get((SHARED, batch))
        if given_up is None:
            self._recorder.outbox.begin(opened.task.index, (SHARED, batch))
        return [
            parts.make(opened.seed, address)
            if given_up is None or address.is_source
            else MadeCase(address=address, follow=None, verdict=Verdict.ERROR, reason=f"relation: {given_up}")
            for address in opened.unit.cases[start:stop]
        ]

    def _check_first(self, share: Share, answered: list[SystemAnswer]) -> None:
        """End the run where a classifier's first answers are all of another number of classes: so will the others be.

        Raises:
            UserMistakes: They are.
        """
        asked = [answer for answer in answered if answer.elapsed_ms is not None]
        if share.system in self._answering or not asked:
            return
        counts, classes = {answer.classes for answer in asked}, share.open.seed.classes
        if len(counts) == 1 and 0 not in counts and classes is not None:
            self._recorder.outbox.flush(now=True)
            raise UserMistakes([other_classes(self._recorder.systems[share.system], counts.pop(), classes)])
        self._answering.add(share.system)

    def _answers(self, share: Share, batch: int, cases: list[MadeCase]) -> list[SystemAnswer]:
        opened, place, source = share.open, (share.system, batch), share.sources.get(0)
        ready = [case for case in cases if case.follow is not None and not _is_the_source(case, opened)]
        given_up = opened.task.given_up.get(place)
        if given_up is not None:
            found = [SystemAnswer(output=None, verdict=Verdict.ERROR, reason=given_up) for _ in ready]
        elif not ready or (source is not None and source.lost):
            found = [SystemAnswer(output=None, verdict=Verdict.SKIP) for _ in ready]
        else:
            system = self._recorder.systems[share.system]
            found = answers(system, ready, lambda: self._recorder.outbox.begin(opened.task.index, place))
        by_case = iter(found)
        answered: list[SystemAnswer] = []
        for case in cases:
            if case.follow is None:
                answered.append(SystemAnswer(output=None, verdict=case.verdict, reason=case.reason))
            elif _is_the_source(case, opened):
                first = answered[0] if source is None else source.answer
                lost = Verdict.SKIP if first.output is None else first.verdict  # the system is blamed at the source
                answered.append(replace(first, verdict=lost, elapsed_ms=None))
            else:
                answered.append(next(by_case))
        return answered


def _wanted(share: Share, batch: int) -> bool:
    start, stop = share.open.unit.batches[batch]
    todo = share.open.task.todo[share.system]
    return any(todo[start:stop]) or (batch == 0 and any(todo))


def _is_the_source(case: MadeCase, opened: OpenUnit) -> bool:
    """Whether a follow-up is the source image itself (a measured property): the system answered it already."""
    return not case.address.is_source and case.follow is not None and case.follow.image is opened.seed.image
