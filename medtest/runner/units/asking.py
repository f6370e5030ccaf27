"""Systems that answer questions: one seed, all its follow-ups, all its questions, all systems.

Every system draws its calls from a stream that does not end between seeds, so that as many calls are under way at the
end of one seed as in the middle. A case is recorded when its own answer and its source's are there. Where a budget
ends a stream, or the user stops the run, cases without an answer are not recorded: they are still to be run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from medtest.runner.pool.messages import SHARED, Done, Told, UnitTask
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.units.asker import Asker
from medtest.runner.units.open_units import OpenUnit, Recorder, Share
from medtest.runner.units.seeing import ReadingStage
from medtest.systems.answering.asking import AskingSystem

_TOLD_SECONDS = 0.5
_BEAT_SECONDS = 5.0


class AskingRunner:
    """Runs units whose seeds ask questions; every system has a thread of its own.

    Args:
        recorder: What its worker has.
        systems: The opened systems, in the suite's order.
        names: How ids may be shown.
        memory: Returns the process's resident bytes.
        stage: Where answers are read, if the suite's reader reads in processes of its own; it is closed with this.
        batch_seconds: Silence after which the parent ends this process; it hears something at least thrice as often.
    """

    def __init__(
        self,
        recorder: Recorder,
        systems: Sequence[AskingSystem],
        names: ShownNames,
        memory: Callable[[], int],
        stage: ReadingStage | None = None,
        batch_seconds: float = 60.0,
    ) -> None:
        self._every = max(1, int(min(_BEAT_SECONDS, batch_seconds / 3) / _TOLD_SECONDS))
        self._recorder, self._memory, self._stage = recorder, memory, stage
        self._halted = False
        self._threads = [
            Asker(recorder, system, number, names, self._finished, stage) for number, system in enumerate(systems)
        ]
        self._ended = threading.Event()
        self._index = SHARED
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def run(self, task: UnitTask) -> None:
        """Prepare a seed and hand it to every system; it is done when the last of them says so."""
        if self._halted:
            return
        self._index = task.index
        opened = self._recorder.open(task, hung="")
        if opened is None:
            self._done(task.index)
            return
        for number, thread in enumerate(self._threads):
            thread.give(Share(opened, number))

    def halt(self) -> None:
        """Draw nothing further and let calls under way end, in all systems at once; wait for none of them."""
        self._halted = True
        for thread in self._threads:
            thread.halt()

    def close(self) -> None:
        """End every stream and wait until its last answer is recorded."""
        for thread in self._threads:
            thread.end()
        if self._stage is not None:
            self._stage.close()
        self._ended.set()

    def _finished(self, opened: OpenUnit) -> None:
        """Take notice that a system has finished a unit."""
        with opened.lock:
            opened.left -= 1
            left = opened.left
        if not left:
            self._done(opened.task.index)

    def _done(self, index: int) -> None:
        self._recorder.outbox.flush(now=True)
        self._recorder.outbox.send(Done(index, self._memory()))

    def _beat(self) -> None:
        beats = 0
        while not self._ended.wait(_TOLD_SECONDS):
            beats += 1
            # all systems that are being asked bound the time of their calls themselves
            reading = self._stage is not None and self._stage.busy  # which has a limit of its own
            if beats % self._every == 0 and (
                reading or all(thread.limited or not thread.busy for thread in self._threads)
            ):
                self._recorder.outbox.begin(self._index)
            for number, thread in enumerate(self._threads):
                with suppress(Exception):  # an oracle that cannot judge an ERROR must not end the beat
                    thread.mind_silence(_TOLD_SECONDS)
                if text := thread.counters():
                    self._recorder.outbox.send(Told(number, text))
