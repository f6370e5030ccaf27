"""What is kept of a unit while questions about it are open."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from medtest.cases import PreparedSeed
from medtest.runner.pool.messages import UnitTask
from medtest.runner.units.judging import SourceAnswer
from medtest.runner.units.parts import MadeCase, SystemAnswer
from medtest.suite.plan import Unit


@dataclass(slots=True, eq=False)
class OpenUnit:
    """A unit that is being asked about.

    Attributes:
        task: The unit's task.
        unit: Its cases.
        seed: The prepared seed.
        factors: Its factor columns.
        made: The image of every case of one question, by number; all questions share it.
        left: Systems that have not finished it.
    """

    task: UnitTask
    unit: Unit
    seed: PreparedSeed
    factors: Mapping[str, float | None]
    made: list[MadeCase | None]
    left: int
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True, eq=False)
class Share:
    """One system's share of an open unit.

    Attributes:
        open: The unit.
        sources: What the system said of the source image, by question.
        waiting: Cases whose own answer is there while the source's is not: number, case, answer, by question.
        left: Cases that are to be recorded.
        drawn: Every call was handed to the system.
        under_way: Calls without an answer.
    """

    open: OpenUnit
    sources: dict[int, SourceAnswer] = field(default_factory=dict)
    waiting: dict[int, list[tuple[int, MadeCase, SystemAnswer]]] = field(default_factory=dict)
    left: set[int] = field(default_factory=set)
    drawn: bool = False
    under_way: int = 0
