"""A worker's task where systems answer questions: one seed, all its follow-ups, all its questions, all systems.

Every system draws its calls from a stream that does not end between seeds, so that as many calls are under way at the
end of one seed as in the middle. A case is recorded when its own answer and its source's are there. Where a budget
ends a stream, or the user stops the run, cases without an answer are not recorded: they are still to be run.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from medtest.cases import Address, PreparedSeed, Verdict
from medtest.errors import MedtestError
from medtest.preparation import seed_factors
from medtest.records import SOURCE_FAILED
from medtest.runner.pool.messages import SHARED, Begin, Done, Message, Told, UnitTask
from medtest.runner.privacy import ShownNames
from medtest.runner.records.rows import FinishedCase, RowMaker
from medtest.runner.units.asker import Asker
from medtest.runner.units.execute import Outbox
from medtest.runner.units.open_units import OpenUnit, Share
from medtest.runner.units.parts import MadeCase, Parts, describe
from medtest.suite.plan import Unit
from medtest.systems.asking import AskingSystem

_TOLD_SECONDS = 0.5
_BEATS = 10
_SEED_BITS = 31


class AskingRunner:
    """Runs units whose seeds ask questions; every system has a thread of its own.

    Args:
        parts: The suite's parts.
        systems: The opened systems, in the suite's order.
        maker: Makes rows.
        outbox: Takes them.
        names: How ids may be shown.
        memory: Returns the process's resident bytes.
    """

    def __init__(
        self,
        parts: Parts,
        systems: Sequence[AskingSystem],
        maker: RowMaker,
        outbox: Outbox,
        names: ShownNames,
        memory: Callable[[], int],
    ) -> None:
        self.parts, self.systems, self.maker, self.names = parts, systems, maker, names
        self._outbox, self._memory = outbox, memory
        self._sending = threading.RLock()
        self._halted = False
        self._threads = [Asker(self, number) for number in range(len(systems))]
        self._ended = threading.Event()
        self._index = SHARED
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def run(self, task: UnitTask) -> None:
        """Prepare a seed and hand it to every system; it is done when the last of them says so."""
        if self._halted:
            return
        self._index = task.index
        self.began(task.index)
        unit = self.parts.unit(task.ref)
        given_up = task.given_up.get((SHARED, SHARED))
        if given_up is not None:
            self._none(task, unit, given_up)
            return
        try:
            seed = self.parts.prepared(task.source, task.ref)
            factors = seed_factors(seed)
            check_asks(seed)
        except Exception as error:  # noqa: BLE001 - a seed source may be anybody's plug-in, a file may have changed
            self._none(task, unit, f"the seed cannot be prepared: {describe(error)}")
            return
        opened = OpenUnit(task, unit, seed, factors, [None] * unit.row, len(self.systems))
        for thread in self._threads:
            thread.give(Share(opened))

    def halt(self) -> None:
        """Draw nothing further and let calls under way end, in all systems at once; wait for none of them."""
        self._halted = True
        for thread in self._threads:
            thread.halt()

    def close(self) -> None:
        """End every stream and wait until its last answer is recorded."""
        for thread in self._threads:
            thread.end()
        self._ended.set()

    def made(self, opened: OpenUnit, number: int) -> MadeCase:
        """Return the image of a case of the unit, made once for all questions and systems."""
        with opened.lock:
            found = opened.made[number]
            if found is None:
                found = self.parts.make(opened.seed, opened.unit.cases[number])
                opened.made[number] = found
        return found

    def answer_seed(self, address: Address) -> int:
        """Return the seed of an answer's random numbers."""
        return answer_seed(self.parts.suite.seed, address)

    def began(self, index: int) -> None:
        """Tell the parent that work goes on."""
        with self._sending:
            self._outbox.send(Begin(index, (SHARED, SHARED)))

    def send(self, message: Message) -> None:
        """Send a message."""
        with self._sending:
            self._outbox.send(message)

    def row(self, system: int, opened: OpenUnit, case: int, finished: FinishedCase) -> None:
        """Record a case."""
        address, ref = opened.unit.cases[case], opened.task.ref
        name, sha256 = self.systems[system].record_name, opened.seed.sha256
        made = self.maker.row(name, address, ref, opened.factors, sha256, finished)
        with self._sending:
            self._outbox.add(opened.task.index, system, case, made)
            self._outbox.flush()

    def done(self, opened: OpenUnit) -> None:
        """Take notice that a system has finished a unit."""
        with opened.lock:
            opened.left -= 1
            left = opened.left
        if not left:
            self._done(opened.task.index)

    def _done(self, index: int) -> None:
        with self._sending:
            self._outbox.flush(now=True)
            self._outbox.send(Done(index, self._memory()))

    def _beat(self) -> None:
        beats = 0
        while not self._ended.wait(_TOLD_SECONDS):
            beats += 1
            if self._only_limited() and beats % _BEATS == 0:
                self.began(self._index)
            for number, thread in enumerate(self._threads):
                with suppress(Exception):  # an oracle that cannot judge an ERROR must not end the beat
                    thread.mind_silence(_TOLD_SECONDS)
                if text := thread.counters():
                    self.send(Told(number, text))

    def _only_limited(self) -> bool:
        """Say whether all systems that are being asked bound the time of their calls themselves."""
        return all(thread.limited or not thread.busy for thread in self._threads)

    def _none(self, task: UnitTask, unit: Unit, reason: str) -> None:
        for system, todo in enumerate(task.todo):
            for case, address in enumerate(unit.cases):
                if not todo[case]:
                    continue
                verdict = Verdict.ERROR if address.is_source else Verdict.SKIP
                text = reason if address.is_source else f"{SOURCE_FAILED}: {reason}"
                finished = FinishedCase(
                    follow=None, sha256="", verdict=verdict, reason=text, scores={}, source_scores={}
                )
                name = self.systems[system].record_name
                with self._sending:
                    row = self.maker.row(name, address, task.ref, {}, "", finished)
                    self._outbox.add(task.index, system, case, row)
        self._done(task.index)


def check_asks(seed: PreparedSeed) -> None:
    """Check that a seed asks what it was listed with.

    Raises:
        MedtestError: It does not.
    """
    items = tuple(ask.item for ask in seed.asks)
    if items != seed.ref.items:
        raise MedtestError(f"its questions are {', '.join(items) or 'none'}; {', '.join(seed.ref.items)} were listed")


def answer_seed(suite_seed: int, address: Address) -> int:
    """Return the seed of an answer's random numbers, 0 to 2³¹ - 1: of suite, address and question."""
    text = f"{suite_seed}\n{address}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> (64 - _SEED_BITS)
