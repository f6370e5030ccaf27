"""When the next call may leave: what is learned from answers, with no waiting in it and all times given.

Three things hold a call back: the number in flight, which starts small and adapts; the server's own quotas, kept by
token buckets that its headers feed; and a pause with a learned pace after a refusal (429) that names no quota.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from medtest.api.limits import Bucket, quotas, retry_after

START = 4
"""Calls in flight at first, before anything is known about the server."""

_RECENT = 20
_REMEMBERED = 200
_JUST = 2.0
_RARE = 1e-4
_GROWTH, _HASTE = 0.03, 0.004
"""A learned pace grows by these in a second, and in a second squared: slowly at first, then fast if nothing refuses."""


@dataclass(slots=True, eq=False)
class Permit:
    """Leave to send one call; given back with :meth:`Gate.leave`.

    Attributes:
        tokens: Tokens that the call is expected to use.
        sent_at: When it was given, on the gate's clock.
        sent_before: Calls let through before it.
        tokens_before: Their tokens.
    """

    tokens: float
    sent_at: float
    sent_before: int
    tokens_before: float


class Pace:
    """Calls per second, learned from refusals alone.

    A refusal tells that what was let through since the last one, spread over the time since and the pause that the
    server asks for, was about what it allows. Afterwards the pace grows slowly, and is dropped once it is four times
    as fast without a refusal.
    """

    def __init__(self) -> None:
        self.base: float | None = None
        self._since = 0.0
        self._next = 0.0

    def rate(self, now: float) -> float | None:
        """Return calls per second at this moment, None where nothing limits."""
        if self.base is None:
            return None
        since = max(0.0, now - self._since)
        growth = math.exp(min(2.0, _GROWTH * since + _HASTE * since**2))
        if growth > 4.0:
            self.base = None
            return None
        return self.base * growth

    def low(self, at: float) -> bool:
        """Say whether nothing limited at that moment, or the pace had just been lowered."""
        return self.base is None or at < self._since + _JUST

    def ready_in(self, now: float) -> float:
        """Return seconds until the next call."""
        return 0.0 if self.rate(now) is None else max(0.0, self._next - now)

    def take(self, now: float) -> None:
        """Take note that a call leaves."""
        rate = self.rate(now)
        if rate is not None:
            self._next = max(now, self._next) + 1.0 / rate

    def refused(self, *, answered: int, seconds: float, pause: float, now: float) -> None:
        """Learn from a refusal.

        Args:
            answered: Calls answered since the last refusal.
            seconds: Time since then.
            pause: Seconds of the pause that follows.
            now: The clock.
        """
        seen = max(1, answered) / max(seconds + pause, 0.05)
        now_at = self.rate(now)
        self.base = max(0.02, 0.95 * (seen if now_at is None else min(seen, now_at)))
        self._since = self._next = now + pause


class Accidents:
    """Tells refusals without a word that are a limit from those that come at random.

    A limit refuses in clusters, and nothing once the pace is below it; an overloaded server refuses one call in twenty
    whatever the pace, and pausing for that would bring everything to a crawl. So the recent refusals are held against
    their share among earlier calls that left at no pace, or at one that had just been lowered. Those that led to a
    lesson are forgotten: they were a limit's.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[bool, bool]] = deque()
        self._share, self._seen = 0.0, _RECENT

    def add(self, *, refused: bool, slow: bool) -> None:
        """Take note of an answer.

        Args:
            refused: Whether it said "too many".
            slow: Whether the call left at no pace, or at one that had just been lowered.
        """
        self._recent.append((refused, slow))
        if len(self._recent) > _RECENT:
            earlier, counts = self._recent.popleft()
            if counts:
                self._seen = min(self._seen + 1, _REMEMBERED)
                self._share += (earlier - self._share) / self._seen

    def many(self, least: int) -> bool:
        """Say whether the recent refusals are too many for accidents, and at least so many."""
        return sum(refused for refused, _ in self._recent) >= max(least, _too_many(round(self._share, 2)))

    def learned(self) -> None:
        """Forget the recent answers."""
        self._recent.clear()


@lru_cache(maxsize=128)
def _too_many(share: float) -> int:
    """Return how many of the recent answers are refused at random less often than once in ten thousand."""
    tail, refused = 0.0, _RECENT + 1
    while refused > 0 and tail < _RARE:
        refused -= 1
        tail += math.comb(_RECENT, refused) * share**refused * (1 - share) ** (_RECENT - refused)
    return refused + 1


class Limits:
    """Everything that decides when a call may leave; no waiting in here, and times are given."""

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
        self._answered = 0
        self._cut_at = -1.0
        self._in_a_row = 0
        self._slow_start = True
        self._accidents = Accidents()

    def ready_in(self, tokens: float, now: float, *, patience: float = math.inf) -> float:
        """Return seconds until a call of so many tokens may leave, as far as time decides.

        What is kept back of a quota (:class:`~medtest.api.limits.Bucket`) is spent where a call would otherwise wait
        longer than its patience.
        """
        stated = self._stated(tokens, now, to_the_last=False)
        if stated > patience:
            stated = self.closed_for(tokens, now)
        return max(stated, self.pace.ready_in(now))

    def closed_for(self, tokens: float, now: float) -> float:
        """Return seconds until the server would let a call of so many tokens through, by its own word."""
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
        permit = Permit(tokens, now, self.let_through, self.tokens)
        self.let_through += 1
        self.tokens += tokens
        self.buckets["requests"].take(1.0, now)
        self.buckets["tokens"].take(tokens, now)
        self.pace.take(now)
        return permit

    def answered(self, permit: Permit, *, status: int | None, headers: Mapping[str, str], now: float) -> None:
        """Learn from an answer.

        Args:
            permit: The call's.
            status: HTTP status, None where none came.
            headers: The answer's headers, names in lower case.
            now: The clock.
        """
        wall = time.time()
        stated = quotas(headers, wall) if headers else {}
        foreseen = self._foreseen()
        for kind, quota in stated.items():
            sent = self.let_through - permit.sent_before - 1
            since = float(sent) if kind == "requests" else self.tokens - permit.tokens_before - permit.tokens
            self.buckets[kind].learn(quota, sent_since=since, age=now - permit.sent_at, now=now)
        wait = retry_after(headers, wall) if status in (429, 503) else None
        if status == 429 or (status == 503 and wait is not None):
            self._refused(permit, stated=bool(stated), foreseen=foreseen, wait=wait, now=now)
            return
        self._accidents.add(refused=False, slow=self.pace.low(permit.sent_at))
        if status is not None and status < 400:
            self._answered += 1
            self._in_a_row = 0
            self.limit = min(self.most, self.limit + (1.0 if self._slow_start else 1.0 / self.limit))

    def _foreseen(self) -> bool:
        bucket = self.buckets["requests"]
        return bucket.known and bucket.level < 0.0

    def _refused(self, permit: Permit, *, stated: bool, foreseen: bool, wait: float | None, now: float) -> None:
        self.throttled += 1
        if wait is not None:
            self.paused_until = max(self.paused_until, now + wait)
        if permit.sent_at <= self._cut_at:
            return  # it left before the last refusal was known: one lesson, not two
        self._accidents.add(refused=True, slow=self.pace.low(permit.sent_at))
        if stated and not foreseen:
            for kind in ("requests", "tokens"):
                if self.buckets[kind].known and self.buckets[kind].level < 1.0:
                    self.buckets[kind].surprised()
        if wait is None and not stated:
            # A lone refusal without a word of when to come back may be an accident; several are a limit.
            if not self._accidents.many(5):
                return
            wait = min(8.0, 0.5 * 2.0**self._in_a_row)
            self.paused_until = max(self.paused_until, now + wait)
        self._cut(stated=stated, pause=wait or 0.0, now=now)

    def _cut(self, *, stated: bool, pause: float, now: float) -> None:
        if not stated:
            began = self._began if self._began is not None else now
            since = now - max(began, self._cut_at)
            self.pace.refused(answered=self._answered, seconds=since, pause=pause, now=now)
            # Where quotas are stated the buckets keep to them, and fewer in flight would only slow a slow network.
            self.limit = max(1.0, 0.7 * self.limit)
            self._slow_start = False
        self._in_a_row += 1
        self._answered = 0
        self._cut_at = now
        self._accidents.learned()
