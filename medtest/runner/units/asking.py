"""Systems that answer questions: one seed, all its follow-ups, all its questions, all systems.

Every system draws its calls from a stream that continues across seeds, so that as many calls are running at the end of
a seed as in the middle. A case is recorded when its own answer and its source's have arrived. If a budget ends a
stream, or the user stops the run, cases without an answer are not recorded and remain unfinished.
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
    """Runner of units whose seeds ask questions; every system has its own thread.

    Args:
        recorder: Shared objects of the worker.
        systems: The opened systems, in the suite's order.
        names: Display of ids.
        memory: Returns the process's resident bytes.
        stage: Reading stage, if the suite's reader has its own processes; closed together with this runner.
        batch_seconds: Silence after which the parent ends this process; the runner reports at least three times as
            often.
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
        """Prepare a seed and pass it to every system; it is done when the last of them has finished."""
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
        """Draw no further calls and let running ones end, in all systems at once, without waiting."""
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
        """Handle a unit that a system has finished."""
        with opened.lock:
            opened.left -= 1
            remaining = opened.left
        if not remaining:
            self._done(opened.task.index)

    def _done(self, index: int) -> None:
        self._recorder.outbox.flush(now=True)
        self._recorder.outbox.send(Done(index, self._memory()))

    def _beat(self) -> None:
        beats = 0
        while not self._ended.wait(_TOLD_SECONDS):
            beats += 1
            # all systems in use limit the time of their calls themselves
            reading = self._stage is not None and self._stage.busy  # reading has its own limit
            if beats % self._every == 0 and (
                reading or all(thread.limited or not thread.busy for thread in self._threads)
            ):
                self._recorder.outbox.begin(self._index)
            for number, thread in enumerate(self._threads):
                with suppress(Exception):  # an oracle that cannot judge an ERROR must not end the heartbeat
                    thread.check_silence(_TOLD_SECONDS)
                if text := thread.counters():
                    self._recorder.outbox.send(Told(number, text))
