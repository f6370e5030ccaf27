"""Decisions on when the next call may leave, learned from answers; without waiting, and with all times passed in.

Three mechanisms hold a call back: the number in flight, which starts small, grows while that pays off
(:class:`~medtest.api.pacing.load.Load`) and falls with refusals and timeouts; the server's own quotas, tracked by token
buckets from its headers; and a pause and a learned rate (:class:`~medtest.api.pacing.pace.Pace`) after a refusal (429)
that names no quota, or one although the named quota was not used up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from medtest.api.pacing.load import Load
from medtest.api.pacing.pace import FEW, Accidents, Pace
from medtest.api.pacing.quotas import Bucket, quotas, retry_after

LATE_STATUSES = frozenset({408, 504, 524})
"""Statuses equivalent to a timeout: nothing came in time."""
START = 4
"""Initial number of calls in flight, before anything is known about the server."""

_OPENING = 0.75
"""Initial growth of the number in flight per answer."""
_FEWER, _ROUNDS = 0.75, 2
"""Factor for the number in flight if the server has a queue, and rounds of answers before it applies again."""
_LONGEST_REST, _LONGEST_GUESS = 20.0, 8.0
"""Limits in seconds of a pause if nothing comes any more, and after a refusal without a stated wait."""
_IN_VAIN, _A_LATE_ONE, _A_SOON_ONE = 15, 5, 2
"""Score of refusals in vain that drops a rate: three refusals, with lower weight after few calls."""


@dataclass(slots=True, eq=False)
class Permit:
    """Permission to send one call; returned with :meth:`RateLimiter.leave`.

    Attributes:
        tokens: Tokens that the call is expected to use.
        sent_at: Time of issue, on the limiter's clock.
        sent_before: Calls let through before it.
        tokens_before: Their tokens.
        beside: Calls in flight when it left, including itself.
        crowd: Calls in flight, integrated over the seconds until it left.
        queued: Seconds spent waiting for other calls to end, not counting the server's pauses and quotas.
    """

    tokens: float
    sent_at: float
    sent_before: int
    tokens_before: float
    beside: int
    crowd: float = 0.0
    queued: float = 0.0


class Throttle:
    """All decisions on when a call may leave, without waiting; times are passed in."""

    def __init__(self, *, most: int, start: int = START) -> None:
        self.most = most
        self.limit = float(max(1, min(start, most)))
        self.paused_until = 0.0
        self.buckets = {"requests": Bucket(), "tokens": Bucket()}
        self.pace = Pace()
        self.let_through = 0
        self.tokens = 0.0
        self.throttled = 0
        self._began: float | None = None
        self._let_through_at_cut = self._refused_since_cut = 0
        self._cut_at = -1.0
        self._counted: tuple[int, float] | None = None
        self._in_a_row = 0
        self._slow_start = True
        self._accidents = Accidents()
        self._in_vain = self._calls_in_vain = 0
        self._held: float | None = None
        self._crowd, self._crowd_at = 0.0, 0.0
        self._late_in_a_row, self._heard_at = 0, -math.inf
        self.in_flight = 0
        self._load = Load()
        self._until_less, self._eased = 0.0, False

    def ready_in(self, tokens: float, now: float, *, patience: float = math.inf) -> float:
        """Return seconds until a call with this many tokens may leave, as far as time decides.

        The reserve of a quota (:class:`~medtest.api.pacing.quotas.Bucket`) is spent if a call would otherwise wait
        longer than its patience.
        """
        stated = self._stated(tokens, now, to_the_last=False)
        if stated > patience:
            stated = self.closed_for(tokens, now)
        return max(stated, self.pace.ready_in(now))

    def closed_for(self, tokens: float, now: float) -> float:
        """Return seconds until the server would accept a call with this many tokens, as far as it states."""
        return self._stated(tokens, now, to_the_last=True)

    def _stated(self, tokens: float, now: float, *, to_the_last: bool) -> float:
        return max(
            self.paused_until - now,
            self.buckets["requests"].ready_in(1.0, now, to_the_last=to_the_last),
            self.buckets["tokens"].ready_in(tokens, now, to_the_last=to_the_last),
            0.0,
        )

    def take(self, tokens: float, now: float) -> Permit:
        """Let a call through."""
        if self._began is None:
            self._began = now
        crowd = self._crowded(now)
        self.in_flight += 1
        permit = Permit(tokens, now, self.let_through, self.tokens, self.in_flight, crowd)
        self.let_through += 1
        self.tokens += tokens
        self.buckets["requests"].take(1.0, now)
        self.buckets["tokens"].take(tokens, now)
        self.pace.take(now)
        return permit

    def never_sent(self) -> None:
        """Take back a permit that was not used."""
        self.in_flight -= 1

    def _crowded(self, now: float) -> float:
        """Return the calls in flight, integrated over the seconds until now."""
        self._crowd += self.in_flight * max(0.0, now - self._crowd_at)
        self._crowd_at = now
        return self._crowd

    def answered(
        self,
        permit: Permit,
        *,
        status: int | None,
        headers: Mapping[str, str],
        now: float,
        late: bool = False,
        seconds: float | None = None,
        allowed: float = math.inf,
    ) -> None:
        """Learn from an answer.

        Args:
            permit: The call's permit.
            status: HTTP status, None without a response.
            headers: The answer's headers, names in lower case.
            now: The clock.
            late: Whether the call ended because no complete answer came in time.
            seconds: Time spent at the server; None for the whole time since the permit was issued.
            allowed: Seconds after which the call would have been abandoned.
        """
        since_sent = now - permit.sent_at
        seconds = since_sent if seconds is None else seconds
        beside = float(permit.beside)
        if since_sent > 0:
            beside = max(beside, (self._crowded(now) - permit.crowd) / since_sent)
        self.in_flight -= 1
        wall = time.time()
        stated = quotas(headers, wall) if headers else {}
        foreseen = self.buckets["requests"].known and self.buckets["requests"].level < 0.0
        for kind, quota in stated.items():
            sent = self.let_through - permit.sent_before - 1
            since = float(sent) if kind == "requests" else self.tokens - permit.tokens_before - permit.tokens
            self.buckets[kind].learn(quota, sent_since=since, age=now - permit.sent_at, now=now)
        wait = retry_after(headers, wall) if status in (429, 503) else None
        if status == 429 or (status == 503 and wait is not None):
            used_up = any(
                quota.remaining < (1.0 if kind == "requests" else max(1.0, 2.0 * permit.tokens))
                for kind, quota in stated.items()
            )
            self._learn_from_refusal(permit, stated=used_up, foreseen=foreseen, wait=wait, now=now)
            return
        if late or status in LATE_STATUSES:
            self._learn_from_timeout(permit, beside, seconds, now)
            return
        self._accidents.add(refused=False, slow=self.pace.low(permit.sent_at))
        if status is not None and status < 400:
            self._in_a_row = self._late_in_a_row = 0
            self._heard_at = now
            self._load.answered(permit.beside, seconds)
            if self._held is not None and permit.sent_at > self._cut_at:
                self.limit, self._held = max(self.limit, self._held), None
            if self._held is None and not self._accidents.lately():
                self._grow(beside, tight=2.0 * seconds > allowed)

    def _grow(self, beside: float, *, tight: bool) -> None:
        """Increase the limit of calls in flight while that pays off; decrease it if calls only queue."""
        if self._load.full():
            self._eased = True
            self._until_less -= 1.0
            if self._until_less <= 0.0:
                self.limit = max(1.0, _FEWER * self.limit)
                self._until_less = _ROUNDS * self.limit
            return
        self._until_less = 0.0
        doubtful = self._load.doubtful()
        if doubtful and tight:
            return
        if doubtful or tight or not self._slow_start:
            step = 1.0 / self.limit
        else:
            step = 1.0 / math.sqrt(self.limit) if self._eased else _OPENING
            # At most twice the number tried: returning answers left when fewer calls were in flight.
            step = min(step, max(0.0, 2.0 * beside - self.limit))
        self.limit = min(self.limit + step, self.most, max(self.limit, self._load.ceiling))

    def _learn_from_timeout(self, permit: Permit, beside: float, seconds: float, now: float) -> None:
        """Learn from a call without an answer in time, if the server was too busy."""
        silent = self._heard_at < permit.sent_at
        if permit.sent_at <= self._cut_at or not (silent or self._load.explains(beside, seconds)):
            return  # one lesson instead of two; or a call was lost while others returned soon
        self._load.late(beside, seconds, first=not self._late_in_a_row)
        self.limit = max(1.0, min(0.5 * self.limit, self._load.ceiling))
        self._slow_start = False
        self._cut_at = now
        if self._late_in_a_row:
            # Nothing has come since the last time: the server still works on abandoned calls.
            self.paused_until = max(self.paused_until, now + min(_LONGEST_REST, 2.0 ** (self._late_in_a_row - 1)))
        self._late_in_a_row += 1

    def _learn_from_refusal(
        self, permit: Permit, *, stated: bool, foreseen: bool, wait: float | None, now: float
    ) -> None:
        """Learn from a refusal.

        Args:
            permit: The call's permit.
            stated: Whether it names a quota that is used up.
            foreseen: Whether the bucket had reason to expect it.
            wait: Requested seconds to wait, None if not stated.
            now: The clock.
        """
        self.throttled += 1
        if wait is not None:
            self.paused_until = max(self.paused_until, now + wait)
        if permit.sent_at <= self._cut_at:
            return  # it left before the last refusal was known: one lesson instead of two
        self._refused_since_cut += 1
        self._accidents.add(refused=True, slow=self.pace.low(permit.sent_at))
        if stated and not foreseen:
            for kind in ("requests", "tokens"):
                if self.buckets[kind].known and self.buckets[kind].level < 1.0:
                    self.buckets[kind].surprised()
        paced, wait_stated = self.pace.base is not None, wait is not None
        let_in, since, fresh = self._count(permit)
        self._counted = let_in, since
        if wait is None and not stated:
            if self._accidental(let_in, paced=paced, fresh=fresh):
                return
            wait = self._guessed_wait(let_in, since, now, fresh=fresh)
        if not stated or not foreseen:
            self.pace.refused(
                let_in=let_in,
                seconds=permit.sent_at - since,
                pause=wait or 0.0,
                again_at=max(now, self.paused_until),
                fresh=fresh,
                stated=self.buckets["requests"].rate if stated else None,
                sure=wait_stated or self._accidents.rare(),
            )
            if let_in < FEW or not paced:
                self.limit = max(1.0, 0.7 * self.limit)
                self._slow_start = False
        self._in_a_row += 1
        self._let_through_at_cut, self._refused_since_cut = self.let_through, 0
        self._cut_at = now
        self._accidents.learned()

    def _accidental(self, let_in: int, *, paced: bool, fresh: bool) -> bool:
        """Return True if an unexplained refusal should be forgotten: several indicate a limit, a single one may not."""
        several = self._accidents.in_a_row() or self._accidents.many(5)
        if not several and not (paced and self._accidents.rare()):
            return True
        return fresh and self._is_rate_independent(let_in)

    def _guessed_wait(self, let_in: int, since: float, now: float, *, fresh: bool) -> float:
        """Return the seconds for which a silent limit may block calls, to be tested with one call at a time."""
        # If a quota states a rate, the accepted calls plus one are what it grants in their time.
        rate = self.buckets["requests"].rate
        by_rate = min(_LONGEST_REST, (let_in + 1) / rate - (now - since)) if rate else 0.0
        wait = max(by_rate, min(_LONGEST_GUESS, 0.5 * 2.0**self._in_a_row))
        if self.pace.base is None or not fresh or let_in < FEW:
            self._held = self.limit if self._held is None else self._held
            self.limit = 1.0
            self.paused_until = max(self.paused_until, now + wait)
        return max(0.5 * wait, by_rate)

    def _is_rate_independent(self, let_in: int) -> bool:
        """Return True if refusals recur at a rate that was lowered for them; the rate is then dropped."""
        if not self.pace.lower():
            self._in_vain = 0 if self.pace.grown() else self._in_vain
            return False
        self._in_vain += _A_SOON_ONE if let_in < FEW else _A_LATE_ONE
        self._calls_in_vain += let_in
        if self._in_vain < _IN_VAIN:
            return False
        self._accidents.are(min(0.2, self._in_vain / _A_LATE_ONE / max(1, self._calls_in_vain)))
        self._in_vain = self._calls_in_vain = 0
        self.pace.forget()
        self._slow_start = True
        return True

    def _count(self, permit: Permit) -> tuple[int, float, bool]:
        """Return the calls accepted between the previous refusal and this one, since when, and if any were."""
        let_in = permit.sent_before - self._let_through_at_cut - (self._refused_since_cut - 1)
        if let_in > 0 or self._counted is None:
            return max(0, let_in), max(self._cut_at, 0.0 if self._began is None else self._began), True
        return *self._counted, False  # no call was accepted: the pauses before and after the last refusal are one
