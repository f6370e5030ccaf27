"""A unit while it is answered: the answers of every system end here."""

from __future__ import annotations

from typing import Any

import pytest
from runner_parts import Blobs, make_suite

from medtest.core.cases import MaskOutput, Reason, ReasonCode
from medtest.runner.pool.messages import SHARED, TaskResult, UnitTask
from medtest.runner.privacy.rules import Scrubber, ShownNames
from medtest.runner.records.rows import COLUMN, RowMaker
from medtest.runner.units.made_case import SystemAnswer
from medtest.runner.units.open_units import OpenUnit, Outbox, Recorder, Share
from medtest.runner.units.parts import Parts


def recorder(sent: list[Any]) -> Recorder:
    parts = Parts(make_suite(seeds=1), None, 4)
    names = ShownNames()
    maker = RowMaker(
        suite=("units", "1"),
        groups={name: relation.group for name, relation in parts.relations.items()},
        oracle=parts.oracle,
        strata=(),
        names=names,
        scrub=Scrubber(names),
    )
    systems = list(parts.suite.build_systems().values())
    return Recorder(parts=parts, systems=systems, maker=maker, outbox=Outbox(sent.append, 60.0))


def task(own: Recorder, **more: Any) -> UnitTask:
    ref = own.parts.sources[0].refs()[0]
    return UnitTask(index=0, source=0, ref=ref, todo=(bytes([1]) * len(own.parts.unit(ref).cases),), **more)


def opened(own: Recorder) -> OpenUnit:
    unit = own.open(task(own))
    assert unit is not None
    return unit


def rows(own: Recorder, sent: list[Any]) -> dict[int, tuple[Any, ...]]:
    """Return the rows that were sent, by case."""
    own.outbox.flush(now=True)
    return {case: row for message in sent if isinstance(message, TaskResult) for _, case, row, _ in message.content}


def answered(order: list[int]) -> dict[int, tuple[Any, ...]]:
    """Return the rows of a unit whose cases are answered in this order; one answer is wrong, by its case."""
    sent: list[Any] = []
    own = recorder(sent)
    unit = opened(own)
    share = Share(unit, 0)
    truth = unit.seed.mask
    assert truth is not None
    for case in order:
        share.take(case, unit.made(case), SystemAnswer(output=MaskOutput(mask=~truth if case == 3 else truth)))
    assert not share.left and not share.waiting
    return rows(own, sent)


def test_answers_may_come_in_any_order() -> None:
    inorder = list(range(11))
    expected = answered(inorder)
    assert len(expected) == 11
    assert expected[3][COLUMN["verdict"]] == "FAIL"
    assert answered(inorder[::-1]) == expected
    assert answered([5, 3, 0, *(n for n in inorder if n not in (0, 3, 5))]) == expected


def test_a_case_waits_for_its_source_and_is_recorded_once() -> None:
    sent: list[Any] = []
    own = recorder(sent)
    unit = opened(own)
    share = Share(unit, 0)
    answer = SystemAnswer(output=MaskOutput(mask=unit.seed.mask))
    share.take(4, unit.made(4), answer)
    assert not rows(own, sent)
    share.take(0, unit.made(0), answer)
    share.take(4, unit.made(4), answer)
    assert sorted(rows(own, sent)) == [0, 4]
    assert sum(len(message.content) for message in sent if isinstance(message, TaskResult)) == 2


@pytest.mark.parametrize("hung", ["the seed cannot be prepared: ", ""])
def test_a_unit_that_was_given_up_is_recorded_whole(hung: str) -> None:
    sent: list[Any] = []
    own = recorder(sent)
    assert (
        own.open(task(own, given_up={(SHARED, SHARED): Reason(ReasonCode.TIMEOUT, "no answer within 2 s")}), hung=hung)
        is None
    )
    recorded = rows(own, sent)
    source = recorded.pop(0)
    assert (source[COLUMN["verdict"]], source[COLUMN["reason_code"]]) == ("ERROR", "timeout")
    assert source[COLUMN["reason"]] == f"{hung}no answer within 2 s"
    codes = {(row[COLUMN["verdict"]], row[COLUMN["reason_code"]]) for row in recorded.values()}
    assert codes == {("SKIP", "source_failed")} and len(recorded) == 10


def test_a_seed_that_cannot_be_read_is_the_reason_of_all_its_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    own = recorder(sent)

    def gone(self: Blobs, ref: object) -> None:
        raise OSError("it is gone")

    monkeypatch.setattr(Blobs, "load", gone)
    assert own.open(task(own)) is None
    source = rows(own, sent)[0]
    assert source[COLUMN["reason_code"]] == "seed_error" and "OSError: it is gone" in source[COLUMN["reason"]]
