"""Rate limiter for a server: limits the calls in flight and schedules the next one.

The decisions are made in :mod:`medtest.api.pacing.throttle`; here calls wait in one queue and are let through one by
one, so that the end of a pause wakes no herd. Systems of one process that use one server with one key share its limiter
(:func:`shared_limiter`): each has its own thread and event loop, but the server has one limit for all.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from medtest.api.pacing.throttle import START, Permit, Throttle
from medtest.api.pool import GivenUp, StopSignal


@dataclass(frozen=True, slots=True)
class GateCounters:
    """State of the limiter.

    Attributes:
        in_flight: Calls in flight.
        waiting: Calls waiting for their turn.
        limit: Current limit of concurrent calls.
        let_through: Calls let through so far.
        throttled: Replies so far with "too many" (429).
        pause: Seconds until the next call may leave, while the limiter is closed.
        pace: Calls per second learned from refusals; None without a limit.
    """

    in_flight: int
    waiting: int
    limit: int
    let_through: int
    throttled: int
    pause: float
    pace: float | None


class LimiterClosed(Exception):
    """The server accepts nothing for longer than a call may wait.

    Attributes:
        seconds: Time until it does, according to the server.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"closed for {seconds:.0f} s")
        self.seconds = seconds


@dataclass(slots=True, eq=False)
class _Waiter:
    """Call waiting for its turn, in its sender's event loop."""

    tokens: float
    patience: float
    stop: StopSignal | None
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Permit]
    crowded: float
    permit: Permit | None = None


class RateLimiter:
    """Rate limiter, shared by the campaigns of one server, each in its own thread and event loop.

    Args:
        max_in_flight: Maximum number of calls in flight.
        start: Initial limit of calls in flight.
        clock: Seconds, monotonic.
    """

    def __init__(
        self, *, max_in_flight: int = 32, start: int = START, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if max_in_flight < 1:
            raise ValueError("max_in_flight must be at least 1")
        self.limits = Throttle(most=max_in_flight, start=start)
        self._clock = clock
        self._lock = threading.Lock()
        self._again: deque[_Waiter] = deque()
        self._first: deque[_Waiter] = deque()
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None
        self._crowded, self._crowded_since = 0.0, math.nan

    def at_most(self, max_in_flight: int) -> None:
        """Reduce the maximum number of calls in flight, if it is larger."""
        with self._lock:
            self.limits.most = max(1, min(self.limits.most, max_in_flight))
            self.limits.limit = min(self.limits.limit, float(self.limits.most))

    async def enter(
        self, tokens: float = 0.0, *, again: bool = False, patience: float = math.inf, stop: StopSignal | None = None
    ) -> Permit:
        """Wait for permission to send a call.

        Args:
            tokens: Tokens that it is expected to use, question and answer.
            again: Whether it was sent before: it precedes those that were not.
            patience: Longest pause of the server, in seconds, that it waits for.
            stop: Signal after which nothing waits; see :meth:`dismiss`.

        Raises:
            LimiterClosed: The server asks for a longer pause.
            GivenUp: The stop signal was given.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            waiter = _Waiter(tokens, patience, stop, loop, loop.create_future(), self._crowding(self._clock()))
            if stop is not None and stop.given:
                raise GivenUp
            (self._again if again else self._first).append(waiter)
            self._pump(loop)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            with self._lock:
                if waiter.permit is not None:
                    self.limits.never_sent()  # it was let through, but its sender was cancelled
                else:
                    self._forget(waiter)
                if waiter.future.done() and not waiter.future.cancelled():
                    waiter.future.exception()  # marked as seen, because asyncio warns about exceptions never retrieved
                self._pump(loop)
            raise

    def leave(
        self,
        permit: Permit,
        *,
        status: int | None,
        headers: Mapping[str, str],
        late: bool = False,
        seconds: float | None = None,
        allowed: float = math.inf,
    ) -> None:
        """Return a permit with the result of the call; see :meth:`medtest.api.pacing.throttle.Throttle.answered`."""
        now = self._clock()
        with self._lock:
            self.limits.answered(
                permit, status=status, headers=headers, now=now, late=late, seconds=seconds, allowed=allowed
            )
            self._pump(_running_loop())

    def give_back(self, permit: Permit) -> None:
        """Return a permit that was not used."""
        with self._lock:
            self.limits.never_sent()
            self._pump(_running_loop())

    def dismiss(self, stop: StopSignal) -> None:
        """Dismiss all waiting calls with this stop signal; thread-safe."""
        with self._lock:
            for waiter in [candidate for candidate in self._waiting() if candidate.stop is stop]:
                self._forget(waiter)
                self._resolve(waiter, GivenUp())
            self._pump(_running_loop())

    def counters(self) -> GateCounters:
        """Return the current state of the limiter."""
        with self._lock:
            now = self._clock()
            return GateCounters(
                in_flight=self.limits.in_flight,
                waiting=len(self._again) + len(self._first),
                limit=int(self.limits.limit),
                let_through=self.limits.let_through,
                throttled=self.limits.throttled,
                pause=max(0.0, self.limits.paused_until - now),
                pace=self.limits.pace.rate(),
            )

    def _waiting(self) -> list[_Waiter]:
        return [*self._again, *self._first]

    def _forget(self, waiter: _Waiter) -> None:
        for queue in (self._again, self._first):
            with contextlib.suppress(ValueError):
                queue.remove(waiter)

    def _pump(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Let through the calls that the limits allow, holding the lock; ``loop`` is this thread's event loop."""
        self._stop_timer(loop)
        now = self._clock()
        self._crowded, self._crowded_since = self._crowding(now), math.nan
        while queue := self._again or self._first:
            waiter = queue[0]
            closed = self.limits.closed_for(waiter.tokens, now)
            if closed > 0 and self._send_away(closed):
                continue
            if self.limits.in_flight >= int(self.limits.limit):
                self._crowded_since = now
                return
            wait = self.limits.ready_in(waiter.tokens, now, patience=waiter.patience)
            if wait > 0:
                if self._start_timer(waiter, wait, loop):
                    return
                continue
            queue.popleft()
            waiter.permit = self.limits.take(waiter.tokens, now)
            waiter.permit.queued = self._crowded - waiter.crowded
            self._resolve(waiter, None)

    def _crowding(self, now: float) -> float:
        """Return the total seconds so far in which calls waited only for others to end."""
        return self._crowded + (0.0 if math.isnan(self._crowded_since) else now - self._crowded_since)

    def _send_away(self, closed: float) -> bool:
        """Dismiss all calls that will not wait this long, and return True if there were any."""
        impatient = [waiter for waiter in self._waiting() if waiter.patience < closed]
        for waiter in impatient:
            self._forget(waiter)
            self._resolve(waiter, LimiterClosed(closed))
        return bool(impatient)

    def _resolve(self, waiter: _Waiter, error: Exception | None) -> None:
        """Pass a permit, or an error, to a waiting call in its own event loop."""

        def settle() -> None:
            if waiter.future.done():  # cancelled in the meantime: :meth:`enter` returns its permit
                return
            if error is not None:
                waiter.future.set_exception(error)
            elif waiter.permit is not None:
                waiter.future.set_result(waiter.permit)

        if waiter.loop is _running_loop():
            settle()
            return
        try:
            waiter.loop.call_soon_threadsafe(settle)
        except RuntimeError:  # its loop is closed
            if waiter.permit is not None:
                self.limits.never_sent()

    def _start_timer(self, waiter: _Waiter, seconds: float, loop: asyncio.AbstractEventLoop | None) -> bool:
        """Check again after some seconds, in the next call's event loop; return False if that loop is closed."""
        seconds = max(seconds, 0.001)
        if waiter.loop is loop:
            self._timer = (loop, loop.call_later(seconds, self._look))
            return True
        try:
            waiter.loop.call_soon_threadsafe(self._look)  # timers are set in the thread of their loop
        except RuntimeError:
            self._forget(waiter)
            return False
        return True

    def _look(self) -> None:
        with self._lock:
            self._pump(_running_loop())

    def _stop_timer(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Stop the timer if it belongs to this thread; another thread's checks once too often, which is harmless."""
        if self._timer is not None and self._timer[0] is loop:
            self._timer[1].cancel()
        self._timer = None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_shared: weakref.WeakValueDictionary[str, RateLimiter] = weakref.WeakValueDictionary()
_sharing = threading.Lock()


def shared_limiter(server: str, max_in_flight: int) -> RateLimiter:
    """Return the only limiter of a server in this process, creating it if necessary.

    Args:
        server: Scope of the limits: host and key (:attr:`medtest.api.calls.client.Endpoint.limited_as`).
        max_in_flight: Maximum number of calls in flight; the smallest value of all sharers applies.
    """
    with _sharing:
        limiter = _shared.get(server)
        if limiter is None:
            limiter = _shared[server] = RateLimiter(max_in_flight=max_in_flight)
        limiter.at_most(max_in_flight)
        return limiter
