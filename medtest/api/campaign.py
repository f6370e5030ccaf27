"""Processing of requests: ledger, cache, budget, limiter, call, retry, in this order.

::

    request ─▶ ledger (answered in an earlier session?) ─▶ cache ─▶ budget ─▶ limiter ─▶ ledger: sent ─▶ call
                                                                      ▲                               │
    outcome ◀── cache ◀── ledger: answered, with the outcome ◀────────┴── again? ◀── reply ◀──────────┘

A stop (:meth:`Campaign.stop`) lets calls in flight finish as usual and abandons requests that wait before the call.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from medtest.api.budget import Budget, LearnedTokens, Reservation, Tokens
from medtest.api.calls.client import Caller
from medtest.api.calls.outcomes import answered, failed, spares_of
from medtest.api.calls.request import CallState, Outcome, Request, Source, content_key
from medtest.api.calls.retry import SIMPLER, Reply, Retries, Tally, Trouble
from medtest.api.door import Door
from medtest.api.drawn.kept import KeptPictures
from medtest.api.pacing.quotas import quotas, retry_after
from medtest.api.pacing.rate_limiter import LimiterClosed, RateLimiter
from medtest.api.pacing.throttle import Permit
from medtest.api.pool import GivenUp, StopSignal, blocking, stream
from medtest.api.progress import CampaignProgress
from medtest.api.stops import CampaignStopped, ServerClosed
from medtest.api.store.cache import Cache, CacheMode, Memory
from medtest.api.store.ledger import Ledger, OpenTask
from medtest.api.store.several import Several


class Campaign:
    """Sends requests to one endpoint and stores the outcomes.

    Args:
        caller: Sends one call.
        ledger: The run's ledger, which the campaign does not close.
        cache: Answers of other runs; None for none.
        pictures: Store of generated pictures; needed for endpoints that generate some.
        budget: The run's limits, including the ledger's totals of earlier sessions; None for none.
        limiter: The server's limiter; campaigns of one server in one process may share it.
        retries: Retry policy.
        draw: Random numbers for the pauses; they do not influence results.
    """

    def __init__(
        self,
        caller: Caller,
        ledger: Ledger,
        *,
        cache: Cache | None = None,
        budget: Budget | None = None,
        limiter: RateLimiter | None = None,
        retries: Retries | None = None,
        draw: random.Random | None = None,
        pictures: KeptPictures | None = None,
    ) -> None:
        if caller.wire.draws and pictures is None:
            raise ValueError("drawn pictures need a folder")
        self.caller, self.ledger, self.pictures = caller, ledger, pictures
        self.cache = cache or Cache(None)
        self._memory = Memory(ledger, self.cache, pictures)
        self._key = partial(content_key, caller.endpoint.provider, caller.parameters)
        self._several = Several(ledger, self.cache, self._memory, self._key)
        self.budget = budget or Budget()
        self.limiter = limiter or RateLimiter()
        self.retries = retries or Retries()
        self.stopping = StopSignal()
        self._draw = draw or random.Random()  # noqa: S311 - randomises pauses
        self._flying: dict[str, asyncio.Future[Outcome | None]] = {}
        self._states: Counter[str] = Counter()
        self._sources: Counter[str] = Counter()
        self._retried = self._pausing = 0
        self._tokens = LearnedTokens(caller.parameters)
        self._door = Door(caller.endpoint.base_url, clock=_now)
        self._active = 0
        self._scouting = asyncio.Lock()
        self._scouted = False

    # ------------------------------------------------------------------------------------------------ for the runner

    def iterate(self, requests: Iterable[Request | None]) -> Iterator[Outcome]:
        """Yield the outcome of every request in the order of completion, from synchronous code.

        Raises:
            BudgetReached: After the last outcome that the budget allowed.
            ServerClosed: After the last outcome, if the server asks for a longer pause than a question may last.
            CampaignStopped: As :meth:`medtest.api.door.Door.observe`.
        """
        return blocking(lambda: self._closing(requests))

    async def _closing(self, requests: Iterable[Request | None]) -> AsyncGenerator[Outcome, None]:
        try:
            async with aclosing(self.outcomes(requests)) as results:
                async for outcome in results:
                    yield outcome
        finally:
            await self.caller.close()

    async def outcomes(self, requests: Iterable[Request | None]) -> AsyncGenerator[Outcome, None]:
        """Yield the outcome of every request in the order of completion.

        An ERROR possibly caused by the server is held back until the cause is known (if the campaign ends because of
        it, the request has no outcome), but only while other requests are active, because the consumer may wait for it
        before sending more.

        Raises:
            BudgetReached, ServerClosed, CampaignStopped: As :meth:`iterate`.
        """
        # Twice the number of calls in flight, because some wait between two calls.
        flow = stream(requests, self.ask, workers=2 * self.limiter.limits.most, stop=self.stopping)
        held_back: list[Outcome] = []
        try:
            async with aclosing(flow) as results:
                async for outcome in results:
                    held_back.append(outcome)
                    errors = [entry for entry in held_back if self._active and entry.state == CallState.ERROR]
                    doubtful = [error for error in errors if self._door.doubts(error.address)]
                    for result in held_back:
                        if result not in doubtful:
                            yield result
                    held_back = doubtful
        except CampaignStopped:
            self._states[str(CallState.ERROR)] -= len(held_back)
            raise
        except Exception:
            for result in held_back:
                yield result
            raise
        for result in held_back:
            yield result

    def stop(self) -> None:
        """Start no further call; those in flight finish as usual, and the stream with them. Thread-safe.

        Requests waiting for the limiter, the budget or the end of a pause have no outcome: the next session sends them.
        """
        self.stopping.give()
        self.limiter.dismiss(self.stopping)

    def progress(self) -> CampaignProgress:
        """Return the progress of the campaign."""
        counters = self.limiter.counters()
        return CampaignProgress(
            done=sum(self._states.values()),
            states=dict(self._states),
            sources=dict(self._sources),
            in_flight=counters.in_flight,
            waiting=counters.waiting + self._pausing,
            retried=self._retried,
            throttled=counters.throttled,
            calls=self.budget.calls,
            cost_usd=None if self.budget.price is None else self.budget.spent_usd,
            lost_before=self.ledger.lost_before,
            stopping=self.stopping.given,
        )

    # ------------------------------------------------------------------------------------------------- one request

    async def ask(self, request: Request) -> Outcome:
        """Return a request's outcome.

        Raises:
            BudgetReached: No further call is allowed.
            ServerClosed: The server lets nothing through for a long time.
            CampaignStopped: As :meth:`medtest.api.door.Door.observe`.
            GivenUp: The campaign was stopped before there was an outcome.
        """
        key = self._key(request)
        self._active += 1
        try:
            stored = await self._memory.of_run(request.address, key) or await self._several.spare(request, key)
            outcome = stored or await self._ask_once(request, key)
        finally:
            self._active -= 1
        self._states[str(outcome.state)] += 1
        self._sources[str(outcome.source)] += 1
        return outcome

    async def _ask_once(self, request: Request, key: str) -> Outcome:
        """Send a request unless its answer is stored or another address is sending the same content."""
        if self.cache.mode != CacheMode.USE:
            return await self._call(request, key)
        while (stored := await self._memory.of_all(request.address, key)) is None and key in self._flying:
            other = await asyncio.shield(self._flying[key])
            if other is not None and other.state == CallState.ANSWERED:
                line = other.to_json()
                stored = Outcome.from_json(line, address=request.address, key=key, source=Source.SHARED)
                break
        if stored is not None:
            stored = self._memory.with_paid(stored, priced=self.budget.price is not None)
            self.ledger.keep(stored)
            return stored
        self._flying[key] = asyncio.get_running_loop().create_future()
        outcome: Outcome | None = None
        try:
            outcome = await self._call(request, key)
        finally:
            self._flying.pop(key).set_result(outcome)
        return outcome

    async def _call(self, request: Request, key: str) -> Outcome:
        """Call until there is an outcome; under a budget in dollars first alone, whose answer corrects the estimate."""
        if self.budget.max_usd is not None and not self._scouted:
            async with self._scouting:
                if not self._scouted:
                    try:
                        return await self._calls(request, key)
                    finally:
                        self._scouted = True
        return await self._calls(request, key)

    async def _calls(self, request: Request, key: str) -> Outcome:
        with self._several.promised(request, key) as others:
            return await self._until_answered(request, key, others)

    async def _until_answered(self, request: Request, key: str, others: tuple[str, ...]) -> Outcome:
        calls, usd = self.ledger.paid_before(request.address, key)
        tally, reply = Tally(usd=usd, earlier=calls), Reply()
        while True:
            if self.stopping.given:
                raise GivenUp
            request = replace(request, count=1 + len(others))
            tokens = self._tokens.expected(request)
            usd = self.budget.expected(tokens)
            task = self.ledger.open_task(request.address, key) if self.caller.wire.asynchronous else None
            if task is not None and tally.sent == 0:
                tally.usd += task.usd  # an earlier session began it
            try:
                reservation, permit = await self._acquire(tokens, None if task else usd, tally)
            except TimeoutError:
                return self._failed(request, key, tally, reply)
            tally.began = tally.began if tally.sent else _now()
            self._retried += tally.sent > 0
            tally.sent += 1
            sent_at = self._door.now()
            worth = (usd if task is None else task.usd, task)
            outcome, reply = await self._send(request, key, others, tally, worth, reservation, permit)
            try:
                self._door.observe(request.address, reply, outcome, sent_at=sent_at)
            except CampaignStopped:
                self.stop()
                raise
            if outcome is not None:
                self._several.declined |= tally.declined and outcome.state == CallState.ANSWERED
                await self._memory.keep(outcome)
                return outcome
            others = () if reply.more or reply.trouble == Trouble.NO_SEVERAL else others
            await self._pause(reply, tally)

    def _failed(self, request: Request, key: str, tally: Tally, reply: Reply) -> Outcome:
        why = tally.why(reply, self.retries, _now())
        return failed(request, key, tally, why, priced=self.budget.price is not None)

    async def _acquire(self, tokens: Tokens, usd: float | None, tally: Tally) -> tuple[Reservation, Permit]:
        """Wait for budget and limiter; a call without further cost (None) does not wait for the budget.

        A question's time starts with its first call, not in the queue, and excludes later waits for other calls.

        Raises:
            TimeoutError: The question was sent before, and its time is over.
        """
        reservation, permit = await self._reserve_and_enter(tokens, usd, tally)
        if tally.sent:
            tally.queued += permit.queued
            if tally.left(self.retries, _now()) <= 0:
                self.limiter.give_back(permit)
                self.budget.settle(reservation, 0.0, billable=False)
                raise TimeoutError
        return reservation, permit

    async def _reserve_and_enter(self, tokens: Tokens, usd: float | None, tally: Tally) -> tuple[Reservation, Permit]:
        reservation = self.budget.counted() if usd is None else await self.budget.reserve(usd)
        try:
            permit = await self.limiter.enter(
                tokens.prompt + tokens.completion,
                again=tally.sent > 0,
                patience=self._patience(tally),
                stop=self.stopping,
            )
        except BaseException as error:
            self.budget.settle(reservation, 0.0, billable=False)
            if isinstance(error, LimiterClosed):
                raise self._closed(error.seconds) from None
            raise
        return reservation, permit

    def _patience(self, tally: Tally) -> float:
        """Return the longest pause requested by the server, in seconds, that a question waits for.

        A question that has also failed for other reasons has used up its time: it becomes an ERROR without stopping the
        campaign.
        """
        if not tally.sent or tally.failures:
            return self.retries.total_seconds
        return max(0.0, tally.left(self.retries, _now()))

    def _closed(self, seconds: float) -> ServerClosed:
        """Stop the campaign, and return the error to raise once calls in flight have finished."""
        self.stop()
        return ServerClosed(self.caller.endpoint.base_url, seconds, self.retries.total_seconds)

    async def _send(
        self,
        request: Request,
        key: str,
        others: tuple[str, ...],
        tally: Tally,
        worth: tuple[float, OpenTask | None],
        reservation: Reservation,
        permit: Permit,
    ) -> tuple[Outcome | None, Reply]:
        """Send one call and record it; the outcome is None if another call follows.

        ``worth`` is its maximum cost, and the task of an earlier, already counted call that it continues.
        """
        reply = Reply(trouble=Trouble.CONNECTION)
        usd, task = worth
        before, call = 0.0 if task is None else usd, 0
        cost, billable = before, False
        try:
            call = self.ledger.send(address=request.address, key=key, attempt=tally.sent, expected_usd=usd, task=task)
            cost, billable = usd, True
            reply = await self._reply_to(request, key, call, task)
            actual = self.budget.cost(reply.prompt_tokens, reply.completion_tokens, reply.pictures)
            billable = reply.maybe_billed
            cost = actual if actual is not None else (usd if billable else 0.0)
            part = (cost - before) / (1 + len(reply.more))
            spares = spares_of(reply, others, None if actual is None else part)
            tally.usd += cost - before - part * len(spares)
            outcome = self._outcome(request, key, tally, reply, actual)
            self.ledger.answer(call, reply, cost_usd=cost, outcome=outcome, spares=spares)
        except asyncio.CancelledError:
            if call:
                self.ledger.lose(call)
            raise
        finally:
            self.budget.settle(reservation, cost - before, billable=billable and task is None)
            # An empty account is not a rate limit, even if reported as 429.
            status = 402 if reply.trouble == Trouble.NO_CREDIT else reply.status
            late = reply.trouble == Trouble.TIMEOUT and not reply.unreached
            own, allowed = reply.seconds or None, self.caller.call_seconds
            self.limiter.leave(permit, status=status, headers=reply.headers, late=late, seconds=own, allowed=allowed)
        self._tokens.learn(request, reply.prompt_tokens, reply.completion_tokens)
        return outcome, reply

    async def _reply_to(self, request: Request, key: str, call: int, task: OpenTask | None) -> Reply:
        """Return the reply to a call; a picture is stored before anything refers to it."""
        if self.caller.wire.asynchronous:
            begin = partial(self.ledger.begin_task, call, request.address, key)
            reply = await self.caller.call(request, task="" if task is None else task.task, begun=begin)
        else:
            reply = await self.caller.call(request)
        return reply if self.pictures is None else await self.pictures.keep(reply)

    def _outcome(self, request: Request, key: str, tally: Tally, reply: Reply, cost: float | None) -> Outcome | None:
        if reply.state is None:
            return None if tally.again(reply, self.retries, _now()) else self._failed(request, key, tally, reply)
        return answered(request, key, reply.state, tally, reply, priced=cost is not None)

    async def _pause(self, reply: Reply, tally: Tally) -> None:
        """Wait before another call, unless the limiter does.

        Raises:
            ServerClosed: The server asks for a longer pause than the question may last.
            GivenUp: The campaign was stopped in the meantime.
        """
        if reply.trouble in SIMPLER:
            return
        wall = time.time()
        stated = retry_after(reply.headers, wall)
        if stated is not None and stated > self._patience(tally):
            raise self._closed(stated)
        if reply.trouble == Trouble.THROTTLED:
            if stated is not None or quotas(reply.headers, wall):
                return
            seconds = self.retries.pause(tally.throttled, self._draw)
        else:
            seconds = max(self.retries.pause(tally.failures, self._draw), stated or 0.0)
        self._pausing += 1
        try:
            remaining = max(0.0, tally.left(self.retries, _now()))
            if await self.stopping.within(min(seconds, remaining)):
                raise GivenUp
        finally:
            self._pausing -= 1


def _now() -> float:
    """Return the event loop's clock."""
    return asyncio.get_running_loop().time()
