"""Thread of one system that is asked questions: draws calls from units and records the answers."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from medtest.api.redact import redact
from medtest.core.cases import Address, Ask, Reason, ReasonCode, Verdict
from medtest.core.errors import MedtestError, NotApplicable
from medtest.runner.pool.messages import Spent
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.units.judging import SourceAnswer
from medtest.runner.units.made_case import MadeCase, SystemAnswer, describe, not_made
from medtest.runner.units.open_units import OpenUnit, Recorder, Share
from medtest.runner.units.searching.waiting import WaitingSearches
from medtest.runner.units.seeing import ReadingStage
from medtest.systems.answering.asking import Asked, Asking, AskingSystem
from medtest.systems.base import Missing

TOGETHER = "together"
"""Placeholder for the question in the label of a call that asks all of them."""

Unread: TypeAlias = "tuple[Any, Callable[[Any], None]]"
"""Content of an answer to be read, and the callback for its facts."""
_WORDS = ("text", "state", "model", "why", "revised_prompt")
_WAIT_SECONDS = 0.02
_SEED_BITS = 31


class Asker:
    """Thread of one system that draws calls from its units and records the answers.

    Args:
        recorder: Shared objects of the worker.
        system: The opened system.
        number: Its index.
        names: Display of ids.
        finished: Called for every unit that the system has finished.
        stage: Reading stage, if the suite's reader has its own processes; None to read in this process.
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
        self._searches = WaitingSearches(recorder.searcher, self._lock)
        self._open: list[Share] = []
        self._dropped: set[int] = set()
        self._silent = 0.0
        self._closed = False
        self._ended = self._halted = False
        self._thread = threading.Thread(target=self._run, name=f"system-{number}", daemon=True)
        self._thread.start()

    @property
    def limited(self) -> bool:
        """True if the system limits the time of every call itself."""
        return self._system.own_limits

    @property
    def busy(self) -> bool:
        """True if it has an unfinished unit."""
        return bool(self._open) or not self._shares.empty()

    def give(self, share: Share) -> None:
        """Add a unit."""
        self._shares.put(share)

    def counters(self) -> str:
        """Return the status of its calls; errors in it are ignored."""
        try:
            return self._system.counters()
        except Exception:  # noqa: BLE001 - the system under test may raise anything
            return ""

    def halt(self) -> None:
        """Draw no further calls: the stream ends, and the system after its running calls."""
        self._ended = self._halted = True
        try:
            self._system.stop()
        except Exception:  # noqa: BLE001 - its stream ends all the same
            return

    def check_silence(self, seconds: float) -> None:
        """Add seconds of silence, and give up open calls after too many.

        The time is passed in rather than measured, because a process that was suspended for an hour was not silent.
        """
        with self._lock:
            self._silent = self._silent + seconds if self._calls else 0.0
            if not (self.limited and self._silent > self._system.silent_seconds):
                return
            self._silent = 0.0
            reason = (
                f"no answer: the system did not respond for {self._system.silent_seconds:g} s while the call was open"
            )
            given_up = [call for _, call, _ in self._calls.values()]
            self._dropped |= {call.number for call in given_up}
            outputs = [Asked(number=call.number, outputs=(reason,) * len(call.addresses)) for call in given_up]
            shares = [self._settle(answered, ReasonCode.TIMEOUT)[0] for answered in outputs]
        for share in shares:
            self._close_if_done(share)

    def end(self) -> None:
        """End the stream and wait for it."""
        self._shares.put(None)
        self._thread.join()

    def _run(self) -> None:
        reason = ""
        try:
            for answered in self._system.ask(self._stream()):
                self._take(answered)
            if not self._ended:
                reason = "the system stopped before it had answered every question"
        except MedtestError as stopped:
            self._recorder.outbox.send(Spent(self._number, str(stopped), stopped.exit_code))
        except BaseException as error:  # noqa: BLE001 - the system under test may raise anything
            reason = "" if self._halted else describe(error)
        with self._lock:
            while self._reading:  # answers that were paid for are recorded once they are read
                self._lock.wait()
        self._give_up(reason)

    def _stream(self) -> Iterator[Asking | None]:
        while not self._halted:
            for share, case, number in self._searches.ready():
                yield from self._calls_about(share, case, number, share.questions())
            for share in self._searches.finished():
                self._end_drawing(share)
            try:
                next_share = self._shares.get(timeout=_WAIT_SECONDS)
            except queue.Empty:
                yield None
                continue
            if next_share is None and self._searches and not self._closed:  # queries still wait for answers
                self._shares.put(next_share)
                yield None
                continue
            if next_share is None or self._closed:
                self._ended = self._ended or next_share is None
                self._shares.put(next_share)  # for :meth:`_give_up`, which ends with it
                return
            yield from self._calls_of(next_share)

    # --------------------------------------------------------------------------------------------- from units to calls

    def _calls_of(self, share: Share) -> Iterator[Asking]:
        opened = share.open
        row = opened.unit.row
        todo = opened.task.todo[self._number]
        with self._lock:
            if self._closed:
                self._shares.put(share)  # for :meth:`_give_up`, which may already have processed the open ones
                return
            self._open.append(share)
        everything = share.questions()  # a prompt is one call, like a question
        questions = [k for k in everything if any(todo[k * row : (k + 1) * row])]
        searches = share.searches is not None and any(map(share.requests, share.searches.by_query))
        if questions and (opened.seed.together or searches):
            questions = list(everything)  # another set of questions would be another call, or another search
        for number in range(row):
            if self._searches.is_query(share, number):
                continue
            whole = opened.seed.together or self._searches.needs(share, number)
            requested = [k for k in questions if number == 0 or todo[k * row + number] or whole]
            if not any(number == 0 or todo[k * row + number] for k in requested) and not (
                requested and self._searches.needs(share, number)
            ):
                continue
            case = opened.made(number)
            if case.follow is not None:
                requested = self._presumed(share, case, number, requested)
            yield from self._calls_about(share, case, number, requested)
        if not self._halted and not self._searches.begin(share):
            self._end_drawing(share)

    def _calls_about(self, share: Share, case: MadeCase, number: int, questions: Sequence[int]) -> Iterator[Asking]:
        """Yield the calls about one follow-up."""
        if case.follow is None:
            self._without_input(share, case, number, questions)
            return
        for group in (questions,) if share.open.seed.together else [(k,) for k in questions]:
            if self._halted:
                return
            yield self._call(share, case, number, tuple(group))

    def _end_drawing(self, share: Share) -> None:
        share.drawn = True
        self._close_if_done(share)

    def _presumed(self, share: Share, case: MadeCase, number: int, requested: list[int]) -> list[int]:
        """Return the questions that a follow-up asks, and record the others, which it has no wording for."""
        changed = None if case.follow is None else case.follow.asks
        if changed is None:
            return requested
        posed = [k for k in requested if share.open.seed.asks[k].item in changed]
        unasked = not_made(case.address, NotApplicable("the question presumes nothing that can be exchanged"))
        self._without_input(share, unasked, number, [k for k in requested if k not in posed])
        return posed

    def _call(self, share: Share, case_made: MadeCase, number: int, questions: tuple[int, ...]) -> Asking:
        opened = share.open
        cases = tuple(k * opened.unit.row + number for k in questions)
        addresses = tuple(opened.unit.cases[case] for case in cases)
        if case_made.follow is None:
            raise ValueError("a case without an input is asked about")
        changed = case_made.follow.asks or {}
        own: tuple[Ask, ...] = tuple(opened.seed.asks[k] for k in questions if opened.seed.asks)
        asks = tuple(changed.get(ask.item, ask) for ask in own)
        call = Asking(
            number=self._next,
            label=self._label(addresses[0], together=opened.seed.together),
            addresses=addresses,
            image=case_made.follow.image,
            prompt=case_made.follow.prompt,
            source_prompt=None if case_made.follow.prompt is None else opened.seed.prompt,
            sha256=case_made.sha256,
            asks=asks,
            together=opened.seed.together,
            seed=answer_seed(self._recorder.parts.suite.seed, addresses[0]),
            again=self._searches.again(share, number),
            repeats=() if case_made.follow.prompt is None else share.repeats(number),
        )
        self._next += 1
        with self._lock:
            share.under_way += 1
            self._calls[call.number] = (share, call, cases)
        return call

    def _label(self, address: Address, *, together: bool) -> str:
        shown_id = self._names.seed_id(address.dataset, address.seed_id)
        item = TOGETHER if together else address.item
        return f"{address.dataset}/{shown_id}/{address.stem}/{item}"

    def _without_input(self, share: Share, case_made: MadeCase, number: int, questions: Sequence[int]) -> None:
        """Record a follow-up that could not be made; its reason does not depend on the source's answer."""
        row = share.open.unit.row
        for k in questions:
            case = k * row + number
            answer = SystemAnswer(output=None, verdict=case_made.verdict, reason=case_made.reason)
            with self._lock:
                share.record(case, case_made, answer, SourceAnswer())
        self._recorder.outbox.flush()

    # ------------------------------------------------------------------------------------------ from answers to records

    def _take(self, answered: Asked) -> None:
        with self._lock:
            self._silent = 0.0
            if answered.number in self._dropped:  # a late answer
                self._dropped.discard(answered.number)
                return
            share, unread = self._settle(answered)
        if not self._system.own_limits:
            self._recorder.outbox.begin(share.open.task.index)
        for content, callback in unread:
            if self._stage is not None:
                self._stage.submit(content, callback)  # waits for slow readers, which also delays new calls
        self._close_if_done(share)

    def _settle(self, answered: Asked, failure: ReasonCode = ReasonCode.SYSTEM_ERROR) -> tuple[Share, list[Unread]]:
        """Record the result of a call, or its failure, while the lock is held.

        Returns:
            Share of the call, and contents to be read elsewhere before they can be recorded.
        """
        share, call, cases = self._calls.pop(answered.number)
        row = share.open.unit.row
        unread: list[Unread] = []
        milliseconds = None if answered.seconds is None else 1000.0 * answered.seconds / len(call.addresses)
        for case, output in zip(cases, answered.outputs, strict=True):
            case_made = share.made(case % row)
            if isinstance(output, str):
                reason = Reason(failure, output)
                answer = SystemAnswer(
                    output=None,
                    verdict=Verdict.ERROR,
                    reason=reason,
                    elapsed_ms=milliseconds,
                    spent=_spent(answered),
                )
            elif isinstance(output, Missing):
                reason = Reason(ReasonCode.NO_PREDICTION, output.reason)
                answer = SystemAnswer(output=None, verdict=Verdict.SKIP, reason=reason)
            else:
                # Before anything is read from it: evidence must match the stored words.
                words: Mapping[str, Any] = {
                    name: redact(getattr(output, name))
                    for name in _WORDS
                    if isinstance(getattr(output, name, None), str)
                }
                answer = SystemAnswer(output=replace(output, **words), elapsed_ms=milliseconds)
                content = None if self._stage is None else self._recorder.parts.content(share.open.seed, answer)
                if content is not None:
                    self._reading += 1
                    share.under_way += 1
                    unread.append((content, partial(self._read, share, case, case_made, answer, content)))
                    continue
                if self._stage is None:
                    (answer,) = self._recorder.parts.read(share.open.seed, [answer])
            share.take(case, case_made, answer)
        self._recorder.outbox.flush()
        share.under_way -= 1
        return share, unread

    def _read(
        self, share: Share, case: int, case_made: MadeCase, answer: SystemAnswer, content: Any, facts: Any
    ) -> None:
        """Record an answer that was read in another process."""
        with self._lock:
            try:
                share.take(case, case_made, self._recorder.parts.with_facts(answer, content, facts))
                self._recorder.outbox.flush()
            finally:
                share.under_way -= 1
                self._reading -= 1
                self._lock.notify_all()
        self._close_if_done(share)

    def _close_if_done(self, share: Share) -> None:
        with self._lock:
            is_finished = share.drawn and share.under_way == 0 and share in self._open
            if is_finished:
                self._open.remove(share)
        if is_finished:
            self._finished(share.open)

    def _give_up(self, reason: str) -> None:
        """Finish running calls after the end of the stream, and release every further unit.

        Args:
            reason: Why the system failed; "" if the run ended or a budget was reached, which records nothing.
        """
        self._closed = True
        self._release_units(reason)
        while (share := self._shares.get()) is not None:
            with self._lock:
                self._open.append(share)
            self._release_units(reason)
        self._release_units(reason)  # calls that another thread had drawn at that moment

    def _release_units(self, reason: str) -> None:
        with self._lock:
            begun, self._open = self._open, []
            self._calls.clear()
        for share in begun:
            if reason:
                self._fail(share, Reason(ReasonCode.SYSTEM_ERROR, reason))
            self._finished(share.open)

    def _fail(self, share: Share, reason: Reason) -> None:
        lost_source = SourceAnswer(verdict=Verdict.ERROR, reason=reason)
        for case in sorted(share.left):
            case_made = share.made(case % share.open.unit.row)
            answer = SystemAnswer(output=None, verdict=Verdict.ERROR, reason=reason)
            share.record(case, case_made, answer, share.sources.get(case // share.open.unit.row, lost_source))
        self._recorder.outbox.flush()


def _spent(answered: Asked) -> Mapping[str, float | None]:
    """Return the share of one case in what a failed call cost."""
    if answered.failed_usd is None:
        return {}
    return {"cost_usd": answered.failed_usd / len(answered.outputs), "attempts": float(answered.attempts)}


def answer_seed(suite_seed: int, address: Address) -> int:
    """Return the random seed of an answer, 0 to 2³¹ - 1, from suite seed, address and question."""
    text = f"{suite_seed}\n{address}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> (64 - _SEED_BITS)
