"""One system that is asked questions: the thread that draws its calls from units and records what comes back."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from medtest.api.redact import redact
from medtest.core.cases import Address, Ask, Verdict
from medtest.core.errors import MedtestError
from medtest.runner.pool.messages import Spent
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.units.judging import SourceAnswer
from medtest.runner.units.open_units import OpenUnit, Recorder, Share
from medtest.runner.units.parts import MadeCase, SystemAnswer, describe
from medtest.runner.units.seeing import ReadingStage
from medtest.systems.answering.asking import Asked, Asking, AskingSystem

TOGETHER = "together"
"""Stands for the question in the label of a call that asks all of them."""

Unread: TypeAlias = "tuple[Any, Callable[[Any], None]]"
"""What is to be read of an answer, and who is told what it says."""
_WORDS = ("text", "state", "model", "why", "revised_prompt")
_WAIT_SECONDS = 0.02
_SEED_BITS = 31


class Asker:
    """One system's thread: draws calls from its units and records what comes back.

    Args:
        recorder: What its worker has.
        system: The opened system.
        number: Its index.
        names: How ids may be shown.
        finished: Told of every unit that the system has finished.
        stage: Where answers are read, if the suite's reader reads in processes of its own; None where it reads here.
    """

    def __init__(
        self,
        recorder: Recorder,
        system: AskingSystem,
        number: int,
        names: ShownNames,
        finished: Callable[[OpenUnit], None],
        stage: ReadingStage | None = None,
    ) -> None:
        self._recorder, self._system, self._number = recorder, system, number
        self._names, self._finished = names, finished
        self._stage, self._reading = stage, 0
        self._shares: queue.SimpleQueue[Share | None] = queue.SimpleQueue()
        self._calls: dict[int, tuple[Share, Asking, tuple[int, ...]]] = {}
        self._next = 0
        self._lock = threading.Condition(threading.Lock())
        self._open: list[Share] = []
        self._dropped: set[int] = set()
        self._silent = 0.0
        self._closed = False
        self._ended = self._halted = False
        self._thread = threading.Thread(target=self._live, name=f"system-{number}", daemon=True)
        self._thread.start()

    @property
    def limited(self) -> bool:
        """Whether the system bounds the time of every call itself."""
        return self._system.own_limits

    @property
    def busy(self) -> bool:
        """Whether it has a unit that is not done."""
        return bool(self._open) or not self._shares.empty()

    def give(self, share: Share) -> None:
        """Take a unit."""
        self._shares.put(share)

    def counters(self) -> str:
        """Return how its calls stand; what breaks there tells nothing, and harms nobody."""
        try:
            return self._system.counters()
        except Exception:  # noqa: BLE001 - the system under test may raise anything
            return ""

    def halt(self) -> None:
        """Draw nothing further: the stream ends, and the system with it once its calls under way have."""
        self._ended = self._halted = True
        try:
            self._system.stop()
        except Exception:  # noqa: BLE001 - its stream ends all the same
            return

    def mind_silence(self, seconds: float) -> None:
        """Count so many seconds more without an answer, and give up what is open where they are too many.

        It is told of time instead of looking at a clock, for a process that was stopped for an hour was not silent.
        """
        with self._lock:
            self._silent = self._silent + seconds if self._calls else 0.0
            if not (self.limited and self._silent > self._system.silent_seconds):
                return
            self._silent = 0.0
            reason = f"no answer came: nothing was heard for {self._system.silent_seconds:g} s while the call was open"
            given_up = [call for _, call, _ in self._calls.values()]
            self._dropped |= {call.number for call in given_up}
            outputs = [Asked(number=call.number, outputs=(reason,) * len(call.addresses)) for call in given_up]
            shares = [self._settle(asked)[0] for asked in outputs]
        for share in shares:
            self._close_if_done(share)

    def end(self) -> None:
        """Let the stream end and wait for it."""
        self._shares.put(None)
        self._thread.join()

    def _live(self) -> None:
        reason = ""
        try:
            for asked in self._system.ask(self._stream()):
                self._take(asked)
            if not self._ended:
                reason = "it stopped before every question was answered"
        except MedtestError as stopped:
            self._recorder.outbox.send(Spent(self._number, str(stopped), stopped.exit_code))
        except BaseException as error:  # noqa: BLE001 - the system under test may raise anything
            reason = "" if self._halted else describe(error)
        with self._lock:
            while self._reading:  # what was answered and paid for is recorded, once it is read
                self._lock.wait()
        self._give_up(reason)

    def _stream(self) -> Iterator[Asking | None]:
        while not self._halted:
            try:
                share = self._shares.get(timeout=_WAIT_SECONDS)
            except queue.Empty:
                yield None
                continue
            if share is None or self._closed:
                self._ended = self._ended or share is None
                self._shares.put(share)  # for :meth:`_give_up`, which ends with it
                return
            yield from self._calls_of(share)

    # ------------------------------------------------------------------------------------------- from a unit to calls

    def _calls_of(self, share: Share) -> Iterator[Asking]:
        opened = share.open
        row = opened.unit.row
        todo = opened.task.todo[self._number]
        with self._lock:
            if self._closed:
                self._shares.put(share)  # for :meth:`_give_up`, which may have looked through the open ones already
                return
            self._open.append(share)
        count = len(opened.unit.cases) // row  # a prompt is one call, as a question is
        questions = [k for k in range(count) if any(todo[k * row : (k + 1) * row])]
        if opened.seed.together and questions:
            questions = list(range(count))  # another set of questions would be another call
        for number in range(row):
            wanted = [k for k in questions if number == 0 or todo[k * row + number] or opened.seed.together]
            if not any(number == 0 or todo[k * row + number] for k in wanted):
                continue
            made = opened.made(number)
            if made.follow is None:
                self._without_input(share, made, number, wanted)
                continue
            for group in (wanted,) if opened.seed.together else [(k,) for k in wanted]:
                if self._halted:
                    return
                yield self._call(share, made, number, tuple(group))
        share.drawn = True
        self._close_if_done(share)

    def _call(self, share: Share, made: MadeCase, number: int, questions: tuple[int, ...]) -> Asking:
        opened = share.open
        cases = tuple(k * opened.unit.row + number for k in questions)
        addresses = tuple(opened.unit.cases[case] for case in cases)
        asks: tuple[Ask, ...] = tuple(opened.seed.asks[k] for k in questions if opened.seed.asks)
        if made.follow is None:
            raise ValueError("a case without an input is asked about")
        call = Asking(
            number=self._next,
            label=self._label(addresses[0], together=opened.seed.together),
            addresses=addresses,
            image=made.follow.image,
            prompt=made.follow.prompt,
            source_prompt=None if made.follow.prompt is None else opened.seed.prompt,
            sha256=made.sha256,
            asks=asks,
            together=opened.seed.together,
            seed=answer_seed(self._recorder.parts.suite.seed, addresses[0]),
        )
        self._next += 1
        with self._lock:
            share.under_way += 1
            self._calls[call.number] = (share, call, cases)
        return call

    def _label(self, address: Address, *, together: bool) -> str:
        shown = self._names.seed_id(address.dataset, address.seed_id)
        item = TOGETHER if together else address.item
        return f"{address.dataset}/{shown}/{address.stem}/{item}"

    def _without_input(self, share: Share, made: MadeCase, number: int, questions: Sequence[int]) -> None:
        """Record a follow-up that could not be made; its reason does not depend on the source's answer."""
        row = share.open.unit.row
        for k in questions:
            case = k * row + number
            answer = SystemAnswer(output=None, verdict=made.verdict, reason=made.reason)
            with self._lock:
                share.record(case, made, answer, SourceAnswer())
        self._recorder.outbox.flush()

    # ------------------------------------------------------------------------------------------ from answers to records

    def _take(self, asked: Asked) -> None:
        with self._lock:
            self._silent = 0.0
            if asked.number in self._dropped:  # it came after all, too late
                self._dropped.discard(asked.number)
                return
            share, unread = self._settle(asked)
        if not self._system.own_limits:
            self._recorder.outbox.begin(share.open.task.index)
        for content, taken in unread:
            if self._stage is not None:
                self._stage.submit(content, taken)  # waits where readers are slow, and with it what draws calls
        self._close_if_done(share)

    def _settle(self, asked: Asked) -> tuple[Share, list[Unread]]:
        """Record what came of a call, or that nothing did, the lock being held.

        Returns:
            Whose call it was, and what is to be read elsewhere before it can be recorded.
        """
        share, call, cases = self._calls.pop(asked.number)
        row = share.open.unit.row
        unread: list[Unread] = []
        each = None if asked.seconds is None else 1000.0 * asked.seconds / len(call.addresses)
        for case, output in zip(cases, asked.outputs, strict=True):
            made = share.open.made(case % row)
            if isinstance(output, str):
                answer = SystemAnswer(output=None, verdict=Verdict.ERROR, reason=output, elapsed_ms=each)
            else:
                # Before anything is read from it: evidence must stand in the words as they are kept.
                words: Mapping[str, Any] = {
                    name: redact(getattr(output, name)) for name in _WORDS if _has(output, name)
                }
                answer = SystemAnswer(output=replace(output, **words), elapsed_ms=each)
                content = None if self._stage is None else self._recorder.parts.content(share.open.seed, answer)
                if content is not None:
                    self._reading += 1
                    share.under_way += 1
                    unread.append((content, partial(self._read, share, case, made, answer, content)))
                    continue
                if self._stage is None:
                    (answer,) = self._recorder.parts.read(share.open.seed, [answer])
            share.take(case, made, answer)
        self._recorder.outbox.flush()
        share.under_way -= 1
        return share, unread

    def _read(self, share: Share, case: int, made: MadeCase, answer: SystemAnswer, content: Any, facts: Any) -> None:
        """Record an answer that was read in another process."""
        with self._lock:
            try:
                share.take(case, made, self._recorder.parts.with_facts(answer, content, facts))
                self._recorder.outbox.flush()
            finally:
                share.under_way -= 1
                self._reading -= 1
                self._lock.notify_all()
        self._close_if_done(share)

    def _close_if_done(self, share: Share) -> None:
        with self._lock:
            over = share.drawn and share.under_way == 0 and share in self._open
            if over:
                self._open.remove(share)
        if over:
            self._finished(share.open)

    def _give_up(self, reason: str) -> None:
        """The stream ended: finish what was begun, and let go of every further unit.

        Args:
            reason: Why the system failed; "" where the run ended or a budget was reached, which records nothing.
        """
        self._closed = True
        self._let_go(reason)
        while (share := self._shares.get()) is not None:
            with self._lock:
                self._open.append(share)
            self._let_go(reason)
        self._let_go(reason)  # what another thread had drawn at that moment

    def _let_go(self, reason: str) -> None:
        with self._lock:
            begun, self._open = self._open, []
            self._calls.clear()
        for share in begun:
            if reason:
                self._fail(share, reason)
            self._finished(share.open)

    def _fail(self, share: Share, reason: str) -> None:
        lost = SourceAnswer(verdict=Verdict.ERROR, reason=reason)
        for case in sorted(share.left):
            made = share.open.made(case % share.open.unit.row)
            answer = SystemAnswer(output=None, verdict=Verdict.ERROR, reason=reason)
            share.record(case, made, answer, share.sources.get(case // share.open.unit.row, lost))
        self._recorder.outbox.flush()


def _has(output: object, name: str) -> bool:
    return isinstance(getattr(output, name, None), str)


def answer_seed(suite_seed: int, address: Address) -> int:
    """Return the seed of an answer's random numbers, 0 to 2³¹ - 1: of suite, address and question."""
    text = f"{suite_seed}\n{address}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> (64 - _SEED_BITS)
